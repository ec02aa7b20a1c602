// A checked and decoded image: what the virtual machine runs.
#pragma once

#include "runtime/abi/bytecode.h"
#include "runtime/object.h"

#include <map>
#include <span>

namespace bevel::rt {

struct Call;
/// A function of the virtual machine's own ("vm.…"): reads its arguments from the call and sets the result.
using Builtin = Status (*)(Call& call);

struct Arg {
  uint8_t kind = BEVEL_ARG_NONE; // wide integers are decoded to BEVEL_ARG_INT
  union {
    int64_t integer = 0; // or the register, constant or slot
    double number;
    String* string; // owned by the program
  };
};

struct Instruction {
  uint8_t op = 0;
  uint8_t callee = 0;               // BEVEL_CALLEE_*
  bool constantArgs = false;        // no slots among the arguments: a view made once stays right
  uint32_t reg = BEVEL_NO_REGISTER; // destination or condition
  uint32_t index = 0;               // callee, or the instruction to go to
  uint32_t firstArg = 0, numArgs = 0;
  uint32_t site = 0;  // number of the call site in the program: its profile
  uint32_t cache = 0; // number of the call site in its function: what it keeps between runs
  Builtin builtin = nullptr;
  const char* origins = "";
};

struct Param {
  const char* name = "";
  uint32_t kind = BEVEL_PARAM_TENSOR;
  bevel_dtype dtype = {};
  int32_t rank = -1;
  std::vector<int64_t> dims;         // -1: not constant
  std::vector<const char*> dimNames; // null: constant or unnamed
  uint32_t defaultConstant = BEVEL_NO_CONSTANT;
  /// "float32[batch, 3, 224, 224]".
  std::string describe() const;
};

struct Function {
  const char* name = "";
  bool isPrivate = false;
  uint32_t numRegisters = 0, numSlots = 0, numCaches = 0;
  std::vector<Param> params, results;
  std::vector<Instruction> code;
  std::vector<Arg> args; // of all instructions
};

/// A section of kernels.
struct TargetInfo {
  const char* name = "";
  bool native = true;  // a CPU's: code outside of the image
  std::string refusal; // why this machine cannot run it; "": it can
};

struct KernelInfo {
  const char *name = "", *origins = "", *flopsText = "", *bytesText = "";
  uint32_t target = 0;
  uint32_t numBuffers = 0, numDims = 0;
  bool dynamicWorkspace = false;
  uint64_t workspaceShared = 0, workspacePerThread = 0;
  double flops = -1, bytes = -1;
};

struct ConstantInfo {
  const char* name = "";
  bevel_dtype dtype = {};
  std::vector<int64_t> dims;
  uint64_t offset = 0, size = 0;
};

struct Program {
  const char* producer = "";
  std::vector<TargetInfo> targets; // at least one: what the model was compiled for
  std::vector<Function> functions;
  std::vector<KernelInfo> kernels;
  std::vector<const char*> packed;
  std::vector<ConstantInfo> constants;
  std::map<uint32_t, Ref<String>> strings; // that arguments point to, by offset
  uint64_t weightsSize = 0;
  uint32_t numSites = 0;
  uint32_t maxBuffers = 0, maxDims = 0; // over all kernel calls
};

/// Checks every bound of an image and decodes it. The program points into the image's strings.
Status readProgram(const void* image, uint64_t size, Program* program);

/// The builtin of that name, or null.
Builtin findBuiltin(const char* name);

} // namespace bevel::rt

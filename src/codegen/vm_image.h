// Builds the image of an Executable (runtime/abi/image.h): tables, text, shapes and bytecode. It knows
// nothing of the IR.
//
//   ImageBuilder image({.name = "x86-64-v3", .features = "avx2 fma"}, "bevel 0.1");
//   uint32_t add = image.addKernel({.name = "add", .numBuffers = 3, .numDims = 1});
//   FunctionBuilder& f = image.addFunction("main");
//   uint32_t x = f.addParam({.name = "x", .dtype = f32, .dims = {DimSpec("n")}});
//   f.addResult({.name = "y", .dtype = f32, .dims = {DimSpec("n")}});
//   uint32_t n = f.newSlot();
//   f.builtin("vm.match_shape", {reg(x), imm(0), imm(f32), imm(1), imm(BEVEL_DIM_BIND), imm(n)});
//   uint32_t y = f.builtinTo("vm.alloc_output", {imm(0), imm(f32), slot(n)});
//   f.kernel(add, {reg(x), reg(x), reg(y), slot(n)}, "node_of_the_model");
//   f.ret({reg(y)});
//   std::vector<uint64_t> block = image.finish();
#pragma once

#include "base/dtype.h"
#include "runtime/abi/bytecode.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bevel {

class ImageBuilder;

/// An argument of an instruction.
struct ImageArg {
  uint8_t kind = BEVEL_ARG_NONE;
  int64_t integer = 0;
  double number = 0;
  std::string text;
};
namespace image {
inline ImageArg none() {
  return {};
}
inline ImageArg reg(uint32_t r) {
  return {BEVEL_ARG_REGISTER, r, 0, {}};
}
inline ImageArg imm(int64_t i) {
  return {BEVEL_ARG_INT, i, 0, {}};
} // of any size
inline ImageArg flt(double d) {
  return {BEVEL_ARG_FLOAT, 0, d, {}};
}
inline ImageArg constant(uint32_t c) {
  return {BEVEL_ARG_CONST, c, 0, {}};
}
inline ImageArg str(std::string s) {
  return {BEVEL_ARG_STRING, 0, 0, std::move(s)};
}
inline ImageArg slot(uint32_t s) {
  return {BEVEL_ARG_SLOT, s, 0, {}};
}
inline ImageArg heap() {
  return {BEVEL_ARG_HEAP, 0, 0, {}};
}
} // namespace image

/// code | bits << 8 | lanes << 16.
inline constexpr uint32_t imageDtype(int code, int bits) {
  return uint32_t(code) | uint32_t(bits) << 8 | 1u << 16;
}
/// The word for an element type: the compiler's codes are those of the run time. 0 where no tensor has the type.
inline constexpr uint32_t imageDtypeOf(DType t) {
  return t.isVoid() || t.isHandle() ? 0 : imageDtype(int(t.code), t.bits);
}
static_assert(imageDtypeOf(kBool) == imageDtype(BEVEL_BOOL_CODE, 8) &&
              int(TypeCode::kFloat8E4M3FN) == BEVEL_F8E4M3FN_CODE &&
              int(TypeCode::kFloat4E2M1FN) == BEVEL_F4E2M1_CODE &&
              int(TypeCode::kString) == BEVEL_STRING_CODE);

/// A section of kernels. The bytes of a device's code must live until the image is finished.
struct TargetSpec {
  std::string name;
  uint32_t device = kDLCPU;
  std::string features = {};
  std::span<const std::byte> code = {};
};

/// A dimension of a parameter: constant, or a name or expression, or unknown ("").
struct DimSpec {
  DimSpec(int64_t extent) : extent(extent) {}
  DimSpec(std::string_view name) : name(name) {}
  DimSpec(const char* name) : name(name) {}
  int64_t extent = -1;
  std::string name = {};
};

struct ParamSpec {
  std::string name = {};
  uint32_t kind = BEVEL_PARAM_TENSOR;
  uint32_t dtype = 0;
  std::vector<DimSpec> dims = {};
  bool unknownRank = false;
  uint32_t defaultConstant = BEVEL_NO_CONSTANT;
};

struct KernelSpec {
  std::string name = {};
  uint32_t numBuffers = 0, numDims = 0;
  uint64_t workspaceShared = 0, workspacePerThread = 0;
  bool dynamicWorkspace = false;
  std::string origins = {}, flopsText = {}, bytesText = {};
  double flops = -1, bytes = -1;
  uint32_t target = 0;              // its section
  std::vector<int64_t> launch = {}; // of a device's kernel: see bevel_kernel_entry
};

/// Code of one function. Registers, slots and labels are handed out by number.
class FunctionBuilder {
public:
  using Args = std::vector<ImageArg>;
  struct Label {
    uint32_t id;
  };

  /// Parameters first: their registers are 0, 1, …
  uint32_t addParam(ParamSpec spec);
  void addResult(ParamSpec spec);
  void setPrivate() { isPrivate_ = true; }
  uint32_t newRegister() { return numRegisters_++; }
  uint32_t newSlot() { return numSlots_++; }
  uint32_t numSlots() const { return numSlots_; }

  void kernel(uint32_t kernel, const Args& args, std::string_view origins = {});
  /// A builtin or packed function; `destination` may be BEVEL_NO_REGISTER.
  void packed(std::string_view name, const Args& args, uint32_t destination, std::string_view origins = {});
  void builtin(std::string_view name, const Args& args) { packed(name, args, BEVEL_NO_REGISTER); }
  uint32_t builtinTo(std::string_view name, const Args& args, std::string_view origins = {});
  void function(uint32_t callee, const Args& args, uint32_t destination, std::string_view origins = {});

  Label newLabel();
  void bind(Label label);
  /// Goes to the label where the condition is false.
  void branchUnless(uint32_t condition, Label label);
  void jump(Label label);
  void ret(const Args& results);

private:
  friend class ImageBuilder;
  FunctionBuilder(ImageBuilder& image, std::string name, uint32_t index)
      : image_(image), name_(std::move(name)), index_(index) {}
  void call(uint8_t kind, uint32_t index, const Args& args, uint32_t destination, std::string_view origins);
  void words(const Args& args);

  ImageBuilder& image_;
  std::string name_;
  uint32_t index_;
  bool isPrivate_ = false;
  std::vector<ParamSpec> params_, results_;
  uint32_t numRegisters_ = 0, numSlots_ = 0, numInstructions_ = 0;
  std::vector<uint64_t> code_;
  std::vector<size_t> jumps_;    // words of code_ that hold a label, to be replaced by its instruction
  std::vector<uint32_t> labels_; // instruction of each label

public:
  uint32_t index() const { return index_; }
};

class ImageBuilder {
public:
  /// `target`: what the model is compiled for, section 0.
  ImageBuilder(const TargetSpec& target, std::string_view producer);

  /// A further section.
  uint32_t addTarget(const TargetSpec& spec);

  uint32_t addKernel(const KernelSpec& spec);
  /// The bytes must live until the weights are written; text: see encodeTexts.
  uint32_t addConstant(std::string_view name, uint32_t dtype, std::span<const int64_t> dims,
                       std::span<const std::byte> bytes);
  /// The reference stays valid.
  FunctionBuilder& addFunction(std::string_view name);

  uint64_t weightsSize() const { return weightsSize_; }
  /// The weights as one block of weightsSize() bytes, to be aligned to 64: constants, and zeros between them.
  std::vector<std::span<const std::byte>> weightPieces() const;
  void copyWeights(void* to) const;

  /// The block, 8-byte aligned. Labels that were never bound are a bug (the reader refuses the image).
  std::vector<uint64_t> finish();

  static std::vector<std::byte> encodeTexts(std::span<const std::string> texts);

private:
  friend class FunctionBuilder;
  uint32_t text(std::string_view s); // "" is none
  uint32_t textAlways(std::string_view s);
  uint32_t packedIndex(std::string_view name);
  uint64_t addInts(std::span<const int64_t> values);
  bevel_param_entry paramEntry(const ParamSpec& spec);

  uint32_t producer_ = BEVEL_NO_STRING;
  std::string strings_;
  std::map<std::string, uint32_t, std::less<>> stringOffsets_;
  std::vector<int64_t> ints_;
  std::vector<bevel_target_entry> targets_;
  std::vector<std::byte> bytes_;
  std::vector<bevel_kernel_entry> kernels_;
  std::vector<uint32_t> packed_;
  std::map<std::string, uint32_t, std::less<>> packedIndices_;
  std::vector<bevel_constant_entry> constants_;
  struct WeightPart {
    uint64_t offset;
    std::span<const std::byte> bytes;
  };
  std::vector<WeightPart> weights_;
  uint64_t weightsSize_ = 0;
  std::vector<std::unique_ptr<FunctionBuilder>> functions_;
};

} // namespace bevel

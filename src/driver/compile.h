// From a module or a model file to something that runs: in this process, or a native library on disk.
//
//   BEVEL_TRY(Compiled model, compileModel("model.onnx", options));
//   BEVEL_TRY(auto program, load(model));          JIT: program->model() is ready for the run time's C API
//   BEVEL_CHECK(writeLibrary(model, "model.so"));  ahead of time
#pragma once

#include "codegen/vm_emit.h"
#include "driver/pipeline.h"

#include <bevel/runtime.h>

namespace bevel {

/// A compiled program that is not linked yet, and what there is to tell of it.
struct Compiled {
  Module module; // with explicit memory; tensor programs lowered
  VmProgram program;
  Target target;
  std::vector<PassTiming> timings;
  std::vector<ScheduleReport> schedules;
  Trace decisions; // of passes over the module: algorithm, layout, fusion
  std::vector<Note> notes;
  double seconds = 0;   // wall time from module to machine code, without importing
  CompileStats kernels; // filled by load and writeLibrary
  BuildOptions options;
};

/// Compiles a module of graph functions and tensor programs. `main`, when not empty, becomes the first
/// function of the program.
Result<Compiled> compileModule(const Module& module, const BuildOptions& options,
                               const std::string& main = "");
/// The same with imports: ONNX (`.onnx`), or a text module (`.py`, `.bvl`, `.txt`; constants beside it).
Result<Compiled> compileFile(const std::string& path, const BuildOptions& options);
/// Reads the module of a file.
Result<Module> readModel(const std::string& path, const BuildOptions& options);

/// What compileModule does at its end: an image of a module with explicit memory and lowered programs.
Result<Compiled> emitModule(const Module& module, const BuildOptions& options);

/// A program loaded into this process.
class Executable {
public:
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  bevel_model* model() const { return model_; }

private:
  friend Result<std::shared_ptr<Executable>> load(Compiled&);
  Executable() = default;
  std::vector<uint64_t> block_;
  std::vector<bevel_kernel> entries_;
  std::shared_ptr<const JitModule> code_;
  void* weights_ = nullptr;
  bevel_image image_ = {};
  bevel_model* model_ = nullptr;
};

/// Machine code for the program, in memory. The weights move from `compiled` into it.
Result<std::shared_ptr<Executable>> load(Compiled& compiled);

/// Writes a native library that needs only the run time, and beside it a C header of the same stem. Module
/// and weights are released from `compiled` on the way: while the linker works they exist in files only.
Status writeLibrary(Compiled& compiled, const std::string& path);

/// An Error from the run time's last failure on this thread.
Error runtimeError(int32_t status);
/// The same where the status tells of one.
Status runtimeStatus(int32_t status);
/// Seconds of a clock that never goes back.
double now();

} // namespace bevel

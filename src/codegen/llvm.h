// Machine code for lowered tensor programs, by LLVM. No LLVM type appears here.
//
// Input is the flat form (loop/lower.h): 1-D dense buffers, explicit vectors, `parallel` loops, Alloc of
// scopes "local" and "register" only. Each function becomes a C symbol of its name with the signature
// `bevel_kernel` (runtime/abi/kernel.h). Attributes of a PrimFunc that matter here:
//   "may_alias"      1: its buffers may overlap (default: they do not)
//   "fast_math"      1: reassociation, approximate division
//   "auto_vectorize" 1: LLVM's loop and SLP vectorisers run (default: only for functions without explicit
//   vectors)
#pragma once

#include "ir/graph.h"
#include "target/target.h"

#include "runtime/abi/kernel.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bevel {

class KernelCache;

/// A lowered function and the symbol it gets. Its code is for the target that the function carries, else for the one that
/// is given beside it.
struct KernelSource {
  std::string name;
  PrimFunc function;
};

/// Which LLVM passes run; see codegen/llvm_passes.cc for the measurements behind kOwn.
enum class Pipeline : uint8_t { kOwn, kO0, kO1, kO3 };

struct CompileOptions {
  Pipeline pipeline = Pipeline::kOwn;
  bool debugInfo = true;        // line tables: gdb and perf show kernel, ONNX nodes and IR line
  bool useCache = true;         // look in and add to the on-disk kernel cache
  KernelCache* cache = nullptr; // which (codegen/cache.h); null: the one that the environment names
  int threads = 0;              // that compile; 0: one a core
};

/// Times and counts of one compile, for reports.
struct CompileStats {
  int compiled = 0;   // kernels that LLVM compiled
  int fromCache = 0;  // taken from the on-disk cache
  double seconds = 0; // wall time
};

/// Relocatable ELF objects for the target, one a kernel, in order. Compiled on several threads; the bytes do
/// not depend on how many. kUnsupported names a construct that has no machine form, with the node.
Result<std::vector<std::string>> compileObjects(std::span<const KernelSource> kernels, const Target& target,
                                                const CompileOptions& options = {},
                                                CompileStats* stats = nullptr);

/// What code for the target needs of the processor: names of runtime/abi/cpu_features.def with a space between.
Result<std::string> requiredFeatures(const Target& target);

/// LLVM's view of one kernel as text: before and after the passes, and assembly. For people and tests.
enum class LlvmStage : uint8_t { kEmitted, kOptimized, kAssembly };
Result<std::string> llvmText(const KernelSource& kernel, const Target& target, LlvmStage stage,
                             const CompileOptions& options = {});

/// Kernels linked into this process; the code lives as long as the object.
class JitModule {
public:
  virtual ~JitModule() = default;
  /// The kernel of that name, or null.
  virtual bevel_kernel kernel(std::string_view name) const = 0;
};

/// Compiles for `target`, which this machine must be able to run (kUsage otherwise), and links in memory.
/// GDB sees the kernels; perf too when BEVEL_PERF=1 is set.
Result<std::shared_ptr<const JitModule>> compileJit(std::span<const KernelSource> kernels,
                                                    const Target& target, const CompileOptions& options = {},
                                                    CompileStats* stats = nullptr);

} // namespace bevel

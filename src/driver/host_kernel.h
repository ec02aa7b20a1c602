// Tensor programs run on this machine with host tensors: for constants, and for `bevel run` of a single
// program.
#pragma once

#include "codegen/llvm.h"
#include "graph/evaluate.h"

#include <map>

namespace bevel {

struct HostKernel {
  std::string name;
  PrimFunc function; // lowered
  std::shared_ptr<const JitModule> code;
  CompileStats stats;           // of all that were compiled together
  std::vector<Expr> conditions; // on sizes, that run() checks (loop/index_bounds.h)

  /// Compiles lowered programs (on several threads); by name.
  static Result<std::map<std::string, HostKernel>> compile(std::vector<KernelSource> programs,
                                                           const Target& target, int threads, bool useCache);
  /// The same of every program of a module, in order, ready to run.
  static Result<std::vector<RunProgram>> compileAll(const Module& programs, const Target& target, int threads,
                                                    bool useCache);
  /// Runs it: inputs, then outputs, in the order of its buffer parameters. Dimensions follow from the
  /// tensors' shapes, which must agree; `scalars` are the values of its scalar parameters.
  Status run(const std::vector<Tensor>& inputs, const std::vector<Ref<TensorObject>>& outputs, int threads,
             const std::vector<int64_t>& scalars = {}) const;
};

} // namespace bevel

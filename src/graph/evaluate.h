// Calls of constants, run on the machine that compiles: the program of the call is what computes its results.
#pragma once

#include "graph/op.h"

#include <functional>

namespace bevel {

using HostTensors = std::vector<Tensor>;

/// Runs a program on tensors that fit its parameters; the results are written in place.
using RunProgram =
    std::function<Status(HostTensors in, const std::vector<Ref<TensorObject>>& out, int threads)>;
/// Makes programs ready to run, by machine code; one result for each, in order.
using CompilePrograms = std::function<Result<std::vector<RunProgram>>(const std::vector<PrimFunc>&)>;

/// A call whose shapes are all known, with the program that gives its results.
struct ConstantCall {
  PrimFunc program;
  Array<GraphExpr> tensors; // what the call gives to the program's inputs
  std::vector<std::pair<DType, std::vector<int64_t>>> results;
  bool isView = false;  // the result is the memory of the input under another shape
  bool isSmall = false; // the interpreter runs it faster than a compiler compiles it

  /// Of an operator, or of a call_tir of a program of the module (which may be null for an operator). Nothing
  /// where the call has effects, has no tensor program, or has sizes that only the run knows.
  static std::optional<ConstantCall> of(const GraphCall& call, const Module& module);
  /// Runs it: by `machineCode`, else in the interpreter.
  Result<HostTensors> run(const HostTensors& in, const RunProgram& machineCode = nullptr,
                          int threads = 1) const;
};

/// One result as a constant, several as a tuple of constants.
GraphExpr constantsOf(const HostTensors& results, bool isTuple, const std::string& name = "");

} // namespace bevel

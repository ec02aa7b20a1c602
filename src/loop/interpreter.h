// The reference interpreter: runs a tensor program at any stage (with blocks or lowered to flat loops)
// element by element, and checks every access. Slow and simple: the oracle for schedules, lowering passes and
// code generation.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "ir/graph.h"

#include <string_view>
#include <variant>

namespace bevel {

using InterpretScalar = std::variant<int64_t, double>;

struct InterpretOptions {
  /// Not 0: loops whose iterations may run in any order (parallel, vectorized, thread bindings) run in a
  /// shuffled one.
  uint64_t shuffleSeed = 0;
  /// Functions that call_tir calls name. May be null.
  Module module;
  /// call_packed and call_extern: gets the name and the arguments (tensors by value of their buffers' whole
  /// memory).
  FunctionRef<Status(std::string_view name, const std::vector<Ref<TensorObject>>& tensors)>* callee = nullptr;
  /// Statements executed before the run is given up (an endless While); 0: no limit.
  int64_t maxSteps = 0;
  /// Allocated memory holds arbitrary values, as that of a machine, and reading one is no fault: what lanes that are off
  /// compute for nothing.
  bool filled = false;
};

/// Runs f. `tensors`: one for each buffer parameter in order; outputs are written in place. `scalars`: one
/// for each scalar parameter in order. Symbolic dimensions follow from the tensors' shapes. Errors: kInvalid
/// when an argument does not fit its parameter; kInternal with the IR node for an access outside its buffer,
/// a read of an element that was never written, a race between iterations of a parallel loop, an axis value outside its domain, a failed assertion, or an
/// integer division by zero: faults of the program (or of whoever transformed it). A reduction over nothing
/// gives its init. A store of just a loaded element is a copy: of an element that was never written
/// (padding of a layout) it makes another such element. Floating-point results: every operation is computed
/// in double and rounded to its dtype.
Status interpret(const PrimFunc& f, const std::vector<Ref<TensorObject>>& tensors,
                 const std::vector<InterpretScalar>& scalars = {}, const InterpretOptions& options = {});

} // namespace bevel

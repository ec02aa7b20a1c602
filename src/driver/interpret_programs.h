// Tensor programs of a graph run by the reference interpreter, for `bevel run --interpret`: what a model
// gives without code generation.
#pragma once

#include "ir/graph.h"

namespace bevel {

/// Every tensor program becomes a call of a packed function that interprets it:
///
///   def add(A: T.Buffer((n,)), B: T.Buffer((n,))):  …
///     →  def add(A, B):  T.evaluate(T.call_packed("bevel.interpret.add.<hash of the module>", A, B, n))
///
/// The functions are registered with the run time of this process, and stay registered. A fault that the
/// interpreter finds (loop/interpreter.h) fails the run with its message.
Result<Module> interpretPrograms(const Module& module);

} // namespace bevel

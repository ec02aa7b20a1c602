// Values of scalar expressions under values of their variables: the reference that simplification is tested
// against.
#pragma once

#include "ir/build.h"

#include <optional>
#include <unordered_map>

namespace bevel {

using IntEnv = std::unordered_map<Var, int64_t, RefHash>;

struct EvalOptions {
  bool wrapIndex = false; // signed 32 and 64 bit arithmetic wraps instead of being undefined
  int lane = 0;           // which lane of a vector expression
};

/// The value of an integer or bool expression. Nothing when it divides by zero, overflows an index type, or
/// holds what has no value here (floats, loads, unbound variables). Only the chosen side of if_then_else is
/// evaluated.
std::optional<int64_t> evaluate(const Expr& e, const IntEnv& env, const EvalOptions& options = {});

} // namespace bevel

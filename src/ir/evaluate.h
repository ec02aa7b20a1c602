// What scalar operations give, computed on the host. Constant folding, the parser, the rewrite rules and the
// reference interpreter share these definitions.
#pragma once

#include "ir/expr.h"

#include <optional>

namespace bevel {

/// A scalar: integers, bools and wrapped unsigned values in `i`; floats, rounded to their dtype, in `f`.
struct Scalar {
  int64_t i = 0;
  double f = 0;
};

/// Wraps to the integer type's width (sign- or zero-extended); bool is != 0.
int64_t wrapInt(DType t, int64_t v);
/// Rounds to the float type. What is too large for a small format becomes its largest value (`saturate`), or
/// infinity where the format has one.
double roundFloat(DType t, double v, bool saturate = true);
/// The integer or bool of type t that a float converts to: towards zero, the nearest value of the type for
/// one outside its range, 0 for NaN.
int64_t floatToInt(DType t, double v);

struct IntResult {
  int64_t value; // wrapped to the type
  bool exact;    // the type holds the mathematical result
};
/// a op b on values of the integer or bool type t (comparisons: 0 or 1). Nothing for a division by zero. A
/// shift by a negative count, or by the type's width and more, moves every bit out and is not exact.
std::optional<IntResult> evaluateInt(BinaryOp op, int64_t a, int64_t b, DType t);
/// The same where the result is exact.
std::optional<int64_t> exactInt(BinaryOp op, int64_t a, int64_t b, DType t);
/// a op b in double; comparisons give 0 or 1; minimum and maximum keep NaN. For arithmetic and comparisons.
double evaluateFloat(BinaryOp op, double a, double b);

Scalar evaluateUnary(UnaryOp op, Scalar a, DType t);
/// Nothing for a division of integers by zero.
std::optional<Scalar> evaluateBinary(BinaryOp op, Scalar a, Scalar b, DType t);
Scalar evaluateCast(DType to, DType from, Scalar v);

/// One lane of an intrinsic: its arguments, their dtype (of the first) and that of the result.
using HostFunction = Scalar (*)(const Scalar* args, DType operand, DType result);
/// The function for operands of that dtype; null where the intrinsic has no value on the host.
HostFunction hostFunction(Intrin op, DType operand);

} // namespace bevel

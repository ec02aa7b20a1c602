// Words of the notation that printer and parser must agree on.
#pragma once

#include "ir/expr.h"

#include <optional>
#include <string_view>

namespace bevel::detail {

/// Keywords of calls that no attribute may be called by (such attributes are written in `attrs={…}`).
bool isReservedKeyword(std::string_view key);
/// Binding strength of Python's operators.
enum Precedence {
  kPrecLowest,
  kPrecOr,
  kPrecAnd,
  kPrecNot,
  kPrecCompare,
  kPrecBitOr,
  kPrecBitXor,
  kPrecBitAnd,
  kPrecShift,
  kPrecAdd,
  kPrecMul,
  kPrecUnary,
  kPrecAtom
};
struct Operator {
  std::string_view text;
  Precedence precedence;
  std::optional<BinaryOp> op; // nothing: a word of Python without meaning here
};
/// The binary operator of that spelling, or null.
const Operator* operatorOf(std::string_view text);
/// The operator that is written for `op`, or null where it is written as a call. `/` is for floats only.
const Operator* operatorOf(BinaryOp op);
/// The function that `op` is written as: "T.max".
std::string_view functionOf(BinaryOp op);
/// What to write in place of a word of Python that is not part of the notation, or of schedule scripts; "" for other
/// words.
std::string_view adviceFor(std::string_view word, bool script);
/// Whether a call of a schedule script changes nothing.
bool isScriptMark(std::string_view name);

} // namespace bevel::detail

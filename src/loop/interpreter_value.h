// Values and operations of the reference interpreter.
#pragma once

#include "base/tensor.h"
#include "ir/evaluate.h"

#include <optional>
#include <vector>

namespace bevel::interp {

/// A scalar or vector value.
struct Value {
  DType dtype;
  std::vector<Scalar> lanes;
  Value() = default;
  Value(DType t, Scalar x) : dtype(t), lanes(t.lanes, x) {}
  static Value ofInt(DType t, int64_t v);
  static Value ofFloat(DType t, double v);
  int64_t asInt(size_t lane = 0) const { return lanes[lane].i; }
  bool isTrue(size_t lane = 0) const { return dtype.isFloat() ? lanes[lane].f != 0 : lanes[lane].i != 0; }
};

Value unary(UnaryOp op, const Value& a);
/// Nothing on division by zero.
std::optional<Value> binary(BinaryOp op, const Value& a, const Value& b);
Value castValue(DType t, const Value& v);
/// Maths intrinsics; nothing for one that is not a function of values.
std::optional<Value> maths(Intrin op, DType result, const std::vector<Value>& args);

} // namespace bevel::interp

// Values and operations of the reference interpreter.
#pragma once

#include "base/tensor.h"
#include "ir/evaluate.h"

#include <utility>
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

/// Bytes behind a data variable. Views of other element types share them.
struct Memory {
  Ref<TensorObject> bytes;   // as the first buffer declared it
  std::vector<bool> written; // a flag a byte; empty: all written (parameters)
  std::vector<std::pair<DType, Ref<TensorObject>>> views;

  TensorObject& as(DType t) {
    if (bytes->dtype == t) return *bytes;
    for (auto& [type, view] : views)
      if (type == t) return *view;
    int64_t n = t.bits ? bytes->byteSize() * 8 / t.bits : 0;
    views.emplace_back(t, TensorObject::wrap(t, {n}, bytes->bytes(), nullptr));
    return *views.back().second;
  }
  void markWritten(size_t from, size_t bytesOf) {
    for (size_t i = from; i < written.size() && i - from < bytesOf; ++i) written[i] = true;
  }
};

Value unary(UnaryOp op, const Value& a);
/// Nothing on division by zero.
std::optional<Value> binary(BinaryOp op, const Value& a, const Value& b);
Value castValue(DType t, const Value& v);
/// Maths intrinsics; nothing for one that is not a function of values.
std::optional<Value> maths(Intrin op, DType result, const std::vector<Value>& args);

} // namespace bevel::interp

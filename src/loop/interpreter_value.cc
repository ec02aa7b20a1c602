// Operations of the reference interpreter, lane by lane.
#include "loop/interpreter_value.h"

#include "base/function_ref.h"

namespace bevel::interp {

Value Value::ofInt(DType t, int64_t v) {
  return Value(t, Scalar{wrapInt(t, v), 0});
}
Value Value::ofFloat(DType t, double v) {
  return Value(t, Scalar{0, roundFloat(t, v)});
}

namespace {

Value mapLanes(DType t, size_t n, FunctionRef<Scalar(size_t)> f) {
  Value out;
  out.dtype = t;
  out.lanes.reserve(n);
  for (size_t i = 0; i < n; ++i) out.lanes.push_back(f(i));
  return out;
}

} // namespace

Value unary(UnaryOp op, const Value& a) {
  return mapLanes(a.dtype, a.lanes.size(), [&](size_t k) { return evaluateUnary(op, a.lanes[k], a.dtype); });
}

std::optional<Value> binary(BinaryOp op, const Value& a, const Value& b) {
  DType t = a.dtype;
  bool ok = true;
  Value out = mapLanes(isComparison(op) ? DType::Bool(t.lanes) : t, a.lanes.size(), [&](size_t k) {
    auto r = evaluateBinary(op, a.lanes[k], b.lanes[k], t);
    ok &= r.has_value();
    return r.value_or(Scalar{});
  });
  return ok ? std::optional(std::move(out)) : std::nullopt;
}

Value castValue(DType t, const Value& v) {
  return mapLanes(t, v.lanes.size(), [&](size_t k) { return evaluateCast(t, v.dtype, v.lanes[k]); });
}

static std::optional<Value> reduceLanes(Intrin op, const Value& v) {
  static constexpr BinaryOp kOps[] = {BinaryOp::kAdd, BinaryOp::kMul, BinaryOp::kMin, BinaryOp::kMax};
  if (op < Intrin::kVectorReduceAdd || op > Intrin::kVectorReduceMax) return std::nullopt;
  Value r(v.dtype.scalar(), v.lanes[0]);
  for (size_t k = 1; k < v.lanes.size(); ++k)
    r = *binary(kOps[int(op) - int(Intrin::kVectorReduceAdd)], r, Value(v.dtype.scalar(), v.lanes[k]));
  return r;
}

std::optional<Value> maths(Intrin op, DType result, const std::vector<Value>& args) {
  if (args.empty()) return std::nullopt;
  if (auto r = reduceLanes(op, args[0])) return r;
  HostFunction f = hostFunction(op, args[0].dtype);
  if (!f || args.size() > 4) return std::nullopt;
  return mapLanes(result, args[0].lanes.size(), [&](size_t k) {
    Scalar lane[4];
    for (size_t i = 0; i < args.size(); ++i) lane[i] = args[i].lanes[k];
    return f(lane, args[0].dtype, result);
  });
}

} // namespace bevel::interp

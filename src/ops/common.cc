// Shared inference, expression and host helpers of the operator families.
#include "ops/common.h"

#include "arith/dims.h"

#include <cstring>

namespace bevel::ops {

Result<Type> sameAsInput(const OpCall& call, InferContext&) {
  return call.type(0);
}

Status requireSameDType(const OpCall& call, size_t first, size_t last) {
  for (size_t i = first + 1; i < last; ++i)
    if (call.has(i) && call.dtype(i) != call.dtype(first))
      return call.invalid(
          fmt::format("inputs are of {} and {}", call.dtype(first).str(), call.dtype(i).str()));
  return {};
}

Status requireFloat(const OpCall& call, size_t input) {
  if (call.dtype(input).isFloat()) return {};
  return call.invalid(fmt::format("a float tensor is expected, {} given", call.dtype(input).str()));
}

static Result<Array<Expr>> broadcastAll(const OpCall& call, InferContext& context) {
  Array<Expr> shape = call.shape(0);
  for (size_t i = 1; i < call.size(); ++i) {
    if (!call.has(i)) continue;
    BEVEL_TRY(shape, broadcastShapes(call, context, shape, call.shape(i)));
  }
  return shape;
}

Result<Type> broadcastInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireSameDType(call, 0, call.size()));
  BEVEL_TRY(Array<Expr> shape, broadcastAll(call, context));
  return tensorOf(call.dtype(0), shape);
}

Result<Type> compareInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireSameDType(call, 0, call.size()));
  BEVEL_TRY(Array<Expr> shape, broadcastAll(call, context));
  return tensorOf(kBool, shape);
}

Array<Expr> broadcastIndex(const Array<Expr>& from, const Array<Expr>& to, const Array<Var>& index) {
  Array<Expr> out;
  size_t offset = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    const Expr& i = index[offset + d];
    if (isConst(from[d], 1))
      out.push_back(isConst(to[offset + d], 1) ? i : constant(i->dtype, 0));
    else if (same(from[d], to[offset + d]) || asConst(from[d]))
      out.push_back(i);
    else
      out.push_back(select(eq(from[d], constant(from[d]->dtype, 1)), constant(i->dtype, 0), i));
  }
  return out;
}

Expr readBroadcast(const te::Tensor& t, const Array<Expr>& to, const Array<Var>& index) {
  return t(broadcastIndex(t.shape(), to, index));
}

te::Tensor mapTensor(const te::Tensor& x, const std::string& name, FunctionRef<Expr(Expr)> f, DType out) {
  DType t = out.isVoid() ? x.dtype() : out;
  return te::compute(x.shape(), name, [&](const Array<Var>& i) { return castTo(t, f(widen(x(exprs(i))))); });
}

te::Tensor zipTensors(const std::vector<te::Tensor>& in, const Array<Expr>& shape, const std::string& name,
                      FunctionRef<Expr(const std::vector<Expr>&)> f, DType out) {
  DType t = out.isVoid() ? in[0].dtype() : out;
  return te::compute(shape, name, [&](const Array<Var>& i) {
    std::vector<Expr> values;
    for (const te::Tensor& x : in) values.push_back(widen(readBroadcast(x, shape, i)));
    return castTo(t, f(values));
  });
}

static Type inferredResult(const OpCall& call, size_t result) {
  Analyzer analyzer;
  for (size_t i = 0; i < call.size(); ++i)
    if (call.type(i).is<TensorTypeNode>()) bindDims(call.shape(i), analyzer);
  InferContext context(analyzer);
  auto type = call.op.infer(call, context);
  BEVEL_ASSERT(type.has_value(), "a call that was inferred before");
  if (const auto* tuple = (*type).as<TupleTypeNode>()) return tuple->fields_[result];
  return *type;
}

Array<Expr> resultShape(const OpCall& call, size_t result) {
  return inferredResult(call, result).as<TensorTypeNode>()->shape;
}
DType resultDType(const OpCall& call, size_t result) {
  return inferredResult(call, result).as<TensorTypeNode>()->dtype;
}

Array<Expr> exprs(const Array<Var>& index) {
  return Array<Expr>(index);
}

NodeRef ints(const Ints& v) {
  return intList(v);
}

Ints perDimension(const OpCall& call, const char* name, size_t n, int64_t otherwise) {
  Ints v = call.ints(name);
  return v.empty() ? Ints(n, otherwise) : v.size() == 1 ? Ints(n, v[0]) : v;
}

Ints paddingOf(const OpCall& call, size_t n) {
  Ints pads = perDimension(call, "padding", n, 0);
  if (pads.size() == n) pads.insert(pads.end(), pads.begin(), pads.begin() + ptrdiff_t(n));
  return pads;
}

} // namespace bevel::ops

// What the operator families share: inference of usual shapes, tensor expressions element by element, and
// host loops.
#pragma once

#include "arith/analyzer.h"
#include "graph/block_builder.h"
#include "graph/op.h"
#include "graph/shape_util.h"

#include <cmath>
#include <fmt/format.h>

namespace bevel::ops {

using Ints = std::vector<int64_t>;

// ---- inference

inline Type tensorOf(DType dtype, Array<Expr> shape) {
  return make<const TensorTypeNode>(dtype, std::move(shape));
}
/// Type of input 0.
Result<Type> sameAsInput(const OpCall& call, InferContext&);
/// Broadcast of all tensor inputs, dtype of input 0; inputs must share a dtype.
Result<Type> broadcastInfer(const OpCall& call, InferContext& context);
/// The same, giving bool.
Result<Type> compareInfer(const OpCall& call, InferContext& context);
/// Inputs first … last-1 have the dtype of input `first`.
Status requireSameDType(const OpCall& call, size_t first, size_t last);
Status requireFloat(const OpCall& call, size_t input = 0);

// ---- expressions

/// dtype in which arithmetic on t is done: fp32 for floats narrower than 32 bits (each result is then rounded
/// once).
inline DType computeType(DType t) {
  return t.isFloat() && t.bits < 32 ? kFloat32 : t;
}
inline Expr widen(const Expr& e) {
  return castTo(computeType(e->dtype), e);
}
/// One real constant in the dtype of e.
inline Expr real(const Expr& like, double value) {
  return constantFloat(like->dtype, value);
}
/// x / y as a float division.
inline Expr fdiv(const Expr& x, const Expr& y) {
  return binary(BinaryOp::kDiv, x, y);
}
inline Expr callIntrin(Intrin op, const Expr& x) {
  return bevel::call(op, {x});
}

/// Index of a tensor of shape `from` at position `index` of a result of shape `to` that it broadcasts to.
Array<Expr> broadcastIndex(const Array<Expr>& from, const Array<Expr>& to, const Array<Var>& index);
/// Element of t at the position of a broadcast result.
Expr readBroadcast(const te::Tensor& t, const Array<Expr>& to, const Array<Var>& index);
/// Element by element: f gets the widened element, its result is cast to `out` (void: x's dtype).
te::Tensor mapTensor(const te::Tensor& x, const std::string& name, FunctionRef<Expr(Expr)> f,
                     DType out = DType::Void());
/// With broadcasting to `shape`.
te::Tensor zipTensors(const std::vector<te::Tensor>& in, const Array<Expr>& shape, const std::string& name,
                      FunctionRef<Expr(const std::vector<Expr>&)> f, DType out = DType::Void());
/// Result shape of a call, inferred again (for computes).
Array<Expr> resultShape(const OpCall& call, size_t result = 0);
DType resultDType(const OpCall& call, size_t result = 0);
Array<Expr> exprs(const Array<Var>& index);

/// "axis" and the like.
NodeRef ints(const Ints& v);
/// An attribute with one value for each of n dimensions; a single one stands for all.
Ints perDimension(const OpCall& call, const char* name, size_t n, int64_t otherwise);
/// Attribute "padding" as n begins, then n ends; of n values they are both, a single one stands for all.
Ints paddingOf(const OpCall& call, size_t n);

} // namespace bevel::ops

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

// ---- host

/// Row-major position arithmetic over a static shape.
int64_t count(const Ints& shape);
Ints stridesOf(const Ints& shape);
/// Calls f(index) for every index, in row-major order.
void forEachIndex(const Ints& shape, FunctionRef<void(const Ints&)> f);
int64_t offsetOf(const Ints& index, const Ints& strides);
/// Numpy broadcast of static shapes (already checked).
Ints broadcastDims(const Ints& a, const Ints& b);
/// Flat position in `from` of a result index.
int64_t broadcastOffset(const Ints& from, const Ints& index);
/// Static result shape of a call.
Ints hostShape(const OpCall& call, size_t result = 0);
Ints hostDims(const Array<Expr>& shape);

/// Element by element on the host: floats through f, integers and bool through g.
Ref<TensorObject> mapHost(const Tensor& x, DType out, FunctionRef<double(double)> f,
                          FunctionRef<int64_t(int64_t)> g);
/// Copies element j of src to element i of dst (same dtype), any dtype, strings included.
void copyElement(TensorObject& dst, int64_t i, const TensorObject& src, int64_t j);
/// A tensor filled by position: element i of the result is element source(index) of src; -1 gives `fill` (may
/// be null: 0).
Ref<TensorObject> gatherHost(const Tensor& src, const Ints& shape, FunctionRef<int64_t(const Ints&)> source,
                             const Tensor& fill = nullptr);

/// "axis" and the like.
NodeRef ints(const Ints& v);

} // namespace bevel::ops

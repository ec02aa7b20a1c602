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
/// The axis that attribute "axis" names, of a tensor with `more` dimensions than input 0.
Result<size_t> checkedAxis(const OpCall& call, size_t more = 0);
/// The same of a call that inference has seen.
size_t axisOf(const OpCall& call, size_t more = 0);
/// Type of input 0, of which "axis" names an axis.
Result<Type> axisInfer(const OpCall& call, InferContext&);
/// A text attribute is one of these.
Status requireOneOf(const OpCall& call, const char* attr, std::initializer_list<std::string_view> known);
/// A tuple of tensors.
Type tupleOf(Array<Type> fields);

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
/// An operator whose result holds at each index what `element` says.
ComputeFn elements(std::string name, Expr (*element)(const OpCall&, const TeTensors&, const Array<Var>&));
/// `all` without the axes, which are sorted.
Array<Expr> without(const Array<Expr>& all, const Ints& axes);
/// `some` with values inserted at the axes, which are sorted: without(inserted(e, axes, values), axes) is e.
Array<Expr> inserted(const Array<Expr>& some, const Ints& axes, const Array<Expr>& values);
/// Loops i0, i1, … over all indices; axis `own`, if any, is left to the body.
Stmt loopNest(const Array<Expr>& shape, FunctionRef<Stmt(const std::vector<Var>&)> body,
              const char* prefix = "i", std::optional<size_t> own = {});
/// Element v at index i comes before w at k: it is larger (smaller), or the same at a smaller index. NaN comes first
/// or last.
Expr comesBefore(bool largest, bool nanFirst, const Expr& v, const Expr& i, const Expr& w, const Expr& k);
/// Reduces pairs (index, value) to the largest (smallest) value and its first (last) index; NaN wins.
Combiner argCombiner(DType t, bool largest, bool last);
/// In what products of elements of `in` accumulate for a result of `out`: small floats in fp32, small integers in int32.
DType accumulatorOf(DType in, DType out);

/// An attribute with one value for each of n dimensions; a single one stands for all.
Ints perDimension(const OpCall& call, const char* name, size_t n, int64_t otherwise);
/// Windows over spatial dimensions, and where these stand: attributes "strides", "dilation", "padding" (n begins, then
/// n ends; of n values they are both, a single one stands for all) and "data_layout".
struct Window {
  Ints kernel, strides, dilation, before, after;
  size_t channel = 1, spatial = 2; // axes of the data; spatial: the first of them
  size_t rank() const { return kernel.size(); }
  int64_t span(size_t d) const { return (kernel[d] - 1) * dilation[d] + 1; }
  bool isPadded() const;
};
Result<Window> windowOf(const OpCall& call, const Ints& kernel);

} // namespace bevel::ops

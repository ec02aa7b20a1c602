// Short forms that converters share.
#pragma once

#include "arith/analyzer.h"
#include "import/onnx_importer.h"

namespace bevel::onnx {

using Ints = std::vector<int64_t>;

inline Result<GraphExpr> reshapeTo(Node& n, const GraphExpr& e, const Array<Expr>& shape) {
  return n.emit("reshape", {e, Node::shapeArg(shape)});
}
inline Result<GraphExpr> permute(Node& n, const GraphExpr& e, const Ints& axes) {
  return n.emit("permute_dims", {e}, {{"axes", intList(axes)}});
}
inline Result<GraphExpr> unsqueeze(Node& n, const GraphExpr& e, const Ints& axes) {
  return axes.empty() ? Result<GraphExpr>(e) : n.emit("expand_dims", {e}, {{"axis", intList(axes)}});
}
/// e[begin:end] on one axis.
inline Result<GraphExpr> sliceAxis(Node& n, const GraphExpr& e, int64_t axis, const Expr& begin,
                                   const Expr& end) {
  return n.emit("strided_slice",
                {e, Node::shapeArg({begin}), Node::shapeArg({end}), Node::shapeArg({intImm(1)})},
                {{"axes", intList({axis})}});
}
inline Result<GraphExpr> binaryOp(Node& n, const char* op, const GraphExpr& a, const GraphExpr& b) {
  return n.emit(op, {a, b});
}
inline Result<GraphExpr> unaryOp(Node& n, const char* op, const GraphExpr& a) {
  return n.emit(op, {a});
}
inline size_t rankOf(const GraphExpr& e) {
  return shapeOfExpr(e).size();
}
inline Result<int64_t> axisOf(Node& n, int64_t axis, size_t rank) {
  if (axis < -int64_t(rank) || axis >= int64_t(rank))
    return n.invalid(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + int64_t(rank) : axis;
}
inline NodeRef dtypeNode(DType t) {
  return make<const DTypeImmNode>(t);
}
inline NodeRef floatNode(double v) {
  return constantFloat(DType::Float(64), v);
}
/// Axes from attribute "axes", or from input `input` (opset 13 and later, as the operator says). Nothing: not
/// given.
Result<std::optional<Ints>> axesOf(Node& n, size_t input);
/// Numpy broadcast of two shapes, for Expand and the like.
Result<Array<Expr>> broadcastOf(Node& n, const Array<Expr>& a, const Array<Expr>& b);
/// Every element of an integer tensor lies in [low, high]: refused where it is known not to, else checked by the run.
Status checkElements(Node& n, const GraphExpr& e, const Expr& low, const Expr& high, const char* what);
/// Axes that only the run knows lie in [-rank, rank).
Status checkAxes(Node& n, const Array<Expr>& axes, int64_t rank);
/// The values under names of their own, computed once: shapes that use them stay small.
Array<Expr> named(Node& n, const Array<Expr>& values);
/// For each dimension 1 if it is among `axes`, which only the run knows and which name different ones; else 0.
Result<Array<Expr>> namedAxes(Node& n, const Array<Expr>& axes, int64_t rank);
/// The dimensions of `shape` that are not among `axes`, which only the run knows and which name different ones.
Result<Array<Expr>> keptDims(Node& n, const Array<Expr>& axes, const Array<Expr>& shape);
/// Result of `sum`, `max` … over axes (nothing: all).
Result<GraphExpr> reduceOver(Node& n, const char* op, const GraphExpr& e, const std::optional<Ints>& axes,
                             bool keep);

/// One table a family.
std::vector<Conversion> shapeConversions();
std::vector<Conversion> moveConversions();
std::vector<Conversion> mathConversions();
std::vector<Conversion> reduceConversions();
std::vector<Conversion> nnConversions();
std::vector<Conversion> normConversions();
std::vector<Conversion> recurrentConversions();
std::vector<Conversion> resizeConversions();
std::vector<Conversion> attentionConversions();
std::vector<Conversion> selectionConversions();
std::vector<Conversion> randomConversions();
std::vector<Conversion> sequenceConversions();
std::vector<Conversion> controlConversions();

} // namespace bevel::onnx

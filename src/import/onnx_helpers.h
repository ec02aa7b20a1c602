// Short forms that converters share.
#pragma once

#include "arith/analyzer.h"
#include "import/onnx_importer.h"

namespace bevel::onnx {

/// first, first + 1, … last - 1.
inline Ints upTo(int64_t first, int64_t last) {
  Ints out;
  for (int64_t i = first; i < last; ++i) out.push_back(i);
  return out;
}
inline size_t rankOf(const GraphExpr& e) {
  return shapeOfExpr(e).size();
}
inline Result<int64_t> axisOf(Node& n, int64_t axis, size_t rank) {
  if (axis < -int64_t(rank) || axis >= int64_t(rank))
    return n.invalid(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + int64_t(rank) : axis;
}
/// 0, 1, … count - 1 as int64.
inline Term indicesTo(Node& n, const Expr& count) {
  return n.emit("arange", {0, 1, Array<Expr>{count}});
}
inline Term where(Node& n, const Term& condition, const Term& yes, const Term& no) {
  return n.emit("where", {condition, yes, no});
}
/// Axes from attribute "axes", or from input `input` (opset 13 and later, as the operator says). Nothing: not
/// given.
Result<std::optional<Ints>> axesOf(Node& n, size_t input);
/// Numpy broadcast of two shapes, for Expand and the like.
Result<Array<Expr>> broadcastOf(Node& n, const Array<Expr>& a, const Array<Expr>& b);
/// Every element of an integer tensor lies in [low, high]: refused where it is known not to, else checked by the run.
Status checkElements(Node& n, const Term& e, const Expr& low, const Expr& high, const char* what);
/// Axes that only the run knows lie in [-rank, rank).
Status checkAxes(Node& n, const Array<Expr>& axes, int64_t rank);
/// The values under names of their own, computed once: shapes that use them stay small.
Array<Expr> named(Node& n, const Array<Expr>& values);
/// For each dimension 1 if it is among `axes`, which only the run knows and which name different ones; else 0.
Result<Array<Expr>> namedAxes(Node& n, const Array<Expr>& axes, int64_t rank);
/// Whether dimension d of `rank` is among axes that only the run knows.
Expr isAmong(const Array<Expr>& axes, int64_t d, int64_t rank);
/// The dimensions of `shape` that are not among `axes`, which only the run knows and which name different ones.
Result<Array<Expr>> keptDims(Node& n, const Array<Expr>& axes, const Array<Expr>& shape);
/// Input `x` minus the zero point of input `zero`, as int32; a vector of zero points belongs to `axis` of x.
Term centred(Node& n, size_t x, size_t zero, int64_t axis);
/// A float as an integer type, cut at the type's ends.
Term saturated(Node& n, const Term& e, DType t);
/// round(sum * factor) plus the zero point of an input, in the type of that input.
Term requantized(Node& n, const Term& sum, const Term& factor, size_t zero);

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

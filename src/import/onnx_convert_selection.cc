// TopK, NonZero, Compress, bit casts, windows of signal processing.
#include "import/onnx_helpers.h"

#include <cmath>

namespace bevel::onnx {

namespace {

// A kernel takes a pass over the axis for each of the k elements; beyond this many, sorting is faster.
constexpr int64_t kMaxPasses = 32;

Result<Values> topkOf(Node& n, const Value& count) {
  BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", -1), n.rank(0)));
  Attrs attrs = {{"axis", axis}, {"largest", n.attrInt("largest", 1)}};
  Expr k;
  if (count->known) {
    if (count->ints.size() != 1) return n.invalid("k must be a scalar");
    k = count->ints[0];
    BEVEL_CHECK(n.check(logicalAnd(k >= intImm(0), k <= n.shape(0)[size_t(axis)]), "k is out of range"));
    if (auto c = asConst(k); c && *c <= kMaxPasses)
      return n.fields(n.emit("topk", {n.x(0), Array<Expr>{k}}, attrs));
  }
  BEVEL_TRY(GraphExpr number, n.importer.materialise(count));
  BEVEL_TRY(Values out, n.fields(n.emit("topk_large", {n.x(0), number}, attrs)));
  for (Value& v : out) {
    const auto* t = v->type.as<TensorTypeNode>();
    if (!k || !t->known) continue;
    Array<Expr> shape = t->shape;
    shape.set(size_t(axis), k);
    v = n.value(n.builder().matchCast(v->expr, make<const TensorTypeNode>(t->dtype, shape)));
  }
  return out;
}
Result<Values> topk1(Node& n) {
  return topkOf(n, knownInts({intImm(n.attrInt("k", 0))}, {}));
}
Result<Values> topk10(Node& n) {
  return topkOf(n, n.in(1));
}

// The count is computed first and read into a shape; then the positions are written.
Result<Term> positions(Node& n, const Term& x) {
  BEVEL_TRY(Array<Expr> count, n.ints(x.cast(kBool).cast(kInt64).reduce("sum")));
  return n.emit("nonzero", {x, count});
}

Result<Values> nonZero(Node& n) {
  BEVEL_TRY(Term e, positions(n, n.x(0)));
  return e;
}

// Elements (or slices along an axis) where the condition holds.
Result<Values> compress(Node& n) {
  if (n.rank(1) != 1) return n.invalid("the condition must be a vector");
  bool flat = !n.hasAttr("axis");
  int64_t axis = 0;
  if (!flat) {
    BEVEL_TRY(axis, axisOf(n, n.attrInt("axis", 0), n.rank(0)));
  }
  Expr length = flat ? product(n.analyzer(), n.shape(0)) : n.shape(0)[size_t(axis)];
  Term x = flat ? n.x(0).reshape({length}) : n.x(0);
  // The condition may be longer than the axis: what it says there concerns nothing.
  Expr heard = n.analyzer().simplify(min(n.shape(1)[0], length));
  BEVEL_TRY(Term at, positions(n, n.x(1).slice(0, intImm(0), heard)));
  return n.emit("take", {x, at.squeeze({0})}, {{"axis", axis}});
}

Result<Values> bitCast(Node& n) {
  auto t = dtypeOf(int32_t(n.attrInt("to", 0)));
  if (!t || t->bits != n.dtype(0).bits || t->isString()) return n.unsupported("a bit cast to another width");
  return n.x(0).apply("bitcast", {{"dtype", *t}});
}

// a0 - a1 cos(2πi/d) + a2 cos(4πi/d), d = size for periodic windows, else size - 1.
Result<Values> window(double a0, double a1, double a2, Node& n) {
  BEVEL_TRY(Array<Expr> size, n.ints(0));
  if (size.size() != 1) return n.invalid("the size must be a scalar");
  auto t = dtypeOf(int32_t(n.attrInt("output_datatype", 1)));
  if (!t || t->isString()) return n.unsupported("the output type");
  DType real = DType::Float(64);
  Term i = n.emit("arange", {Node::scalarConstant(real, 0), Node::scalarConstant(real, 1), size});
  Expr divisor = n.attrInt("periodic", 1) ? size[0] : size[0] - 1;
  Term d = n.emit("shape_to_tensor", {Array<Expr>{divisor}}).cast(real);
  Term angle = i * (2 * M_PI) / d;
  Term y = a0 - angle.apply("cos") * a1;
  if (a2 != 0) y = y + (angle * 2).apply("cos") * a2;
  return y.cast(*t);
}

} // namespace

std::vector<Conversion> selectionConversions() {
  return {{"TopK", 1, topk1, 1},
          {"TopK", 10, topk10, 2},
          {"NonZero", 9, nonZero, 1},
          {"Compress", 9, compress, 2},
          {"BitCast", 26, bitCast, 1},
          {"HannWindow", 17, std::bind_front(window, 0.5, 0.5, 0.0), 1},
          {"HammingWindow", 17, std::bind_front(window, 25.0 / 46, 1 - 25.0 / 46, 0.0), 1},
          {"BlackmanWindow", 17, std::bind_front(window, 0.42, 0.5, 0.08), 1}};
}

} // namespace bevel::onnx

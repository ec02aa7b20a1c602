// TopK, NonZero, Compress, bit casts, windows of signal processing.
#include "import/onnx_helpers.h"

#include <cmath>

namespace bevel::onnx {

namespace {

// A kernel takes a pass over the axis for each of the k elements; beyond this many, sorting is faster.
constexpr int64_t kMaxPasses = 32;

Result<Values> topkOf(Node& n, const Value& count) {
  BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", -1), n.rank(0)));
  std::vector<std::pair<std::string, NodeRef>> attrs = {{"axis", intImm(axis)},
                                                        {"largest", intImm(n.attrInt("largest", 1))}};
  Expr k;
  if (count->known) {
    if (count->ints.size() != 1) return n.invalid("k must be a scalar");
    k = count->ints[0];
    BEVEL_CHECK(n.check(logicalAnd(k >= intImm(0), k <= n.shape(0)[size_t(axis)]), "k is out of range"));
    if (auto c = asConst(k); c && *c <= kMaxPasses) {
      BEVEL_TRY(GraphExpr both, n.emit("topk", {n.x(0), Node::shapeArg({k})}, dict(std::move(attrs))));
      return n.fields(both);
    }
  }
  BEVEL_TRY(GraphExpr number, n.importer.materialise(count));
  BEVEL_TRY(GraphExpr both, n.emit("topk_large", {n.x(0), number}, dict(std::move(attrs))));
  BEVEL_TRY(Values out, n.fields(both));
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
  BEVEL_CHECK(n.require(1));
  return topkOf(n, knownInts({intImm(n.attrInt("k", 0))}, {}));
}
Result<Values> topk10(Node& n) {
  BEVEL_CHECK(n.require(2));
  return topkOf(n, n.in(1));
}

// The count is computed first and read into a shape; then the positions are written.
Result<GraphExpr> positions(Node& n, const GraphExpr& x) {
  BEVEL_TRY(GraphExpr flags, n.castTo(x, kBool));
  BEVEL_TRY(flags, n.castTo(flags, kInt64));
  BEVEL_TRY(GraphExpr total, reduceOver(n, "sum", flags, std::nullopt, false));
  BEVEL_TRY(Array<Expr> count, n.importer.intsOf(n.value(total)));
  return n.emit("nonzero", {x, Node::shapeArg(count)});
}

Result<Values> nonZero(Node& n) {
  BEVEL_CHECK(n.require(1));
  BEVEL_TRY(GraphExpr e, positions(n, n.x(0)));
  return Values{n.value(e)};
}

// Elements (or slices along an axis) where the condition holds.
Result<Values> compress(Node& n) {
  BEVEL_CHECK(n.require(2));
  if (n.rank(1) != 1) return n.invalid("the condition must be a vector");
  GraphExpr x = n.x(0);
  int64_t axis = 0;
  if (n.hasAttr("axis")) {
    BEVEL_TRY(axis, axisOf(n, n.attrInt("axis", 0), n.rank(0)));
  } else {
    BEVEL_TRY(x, reshapeTo(n, x, {product(n.analyzer(), n.shape(0))}));
  }
  // The condition may be longer than the axis: what it says there concerns nothing.
  const Expr length = shapeOfExpr(x)[size_t(axis)];
  BEVEL_TRY(GraphExpr condition,
            sliceAxis(n, n.x(1), 0, intImm(0), n.analyzer().simplify(min(n.shape(1)[0], length))));
  BEVEL_TRY(GraphExpr at, positions(n, condition));
  BEVEL_TRY(at, n.emit("squeeze", {at}, {{"axis", intList({0})}}));
  return n.one("take", {x, at}, {{"axis", intImm(axis)}});
}

Result<Values> bitCast(Node& n) {
  BEVEL_CHECK(n.require(1));
  auto t = dtypeOf(int32_t(n.attrInt("to", 0)));
  if (!t || t->bits != n.dtype(0).bits || t->isString()) return n.unsupported("a bit cast to another width");
  return n.one("bitcast", {n.x(0)}, {{"dtype", dtypeNode(*t)}});
}

// a0 - a1 cos(2πi/d) + a2 cos(4πi/d), d = size for periodic windows, else size - 1.
Result<Values> window(double a0, double a1, double a2, Node& n) {
  BEVEL_CHECK(n.require(1));
  BEVEL_TRY(Array<Expr> size, n.ints(0));
  if (size.size() != 1) return n.invalid("the size must be a scalar");
  auto t = dtypeOf(int32_t(n.attrInt("output_datatype", 1)));
  if (!t || t->isString()) return n.unsupported("the output type");
  DType real = DType::Float(64);
  BEVEL_TRY(GraphExpr i, n.emit("arange", {Node::scalarConstant(real, 0), Node::scalarConstant(real, 1),
                                           Node::shapeArg(size)}));
  Expr divisor = n.attrInt("periodic", 1) ? size[0] : size[0] - 1;
  BEVEL_TRY(GraphExpr d, n.emit("shape_to_tensor", {Node::shapeArg({divisor})}));
  BEVEL_TRY(d, n.castTo(d, real));
  BEVEL_TRY(GraphExpr angle, binaryOp(n, "multiply", i, Node::scalarConstant(real, 2 * M_PI)));
  BEVEL_TRY(angle, binaryOp(n, "divide", angle, d));
  BEVEL_TRY(GraphExpr c, unaryOp(n, "cos", angle));
  BEVEL_TRY(c, binaryOp(n, "multiply", c, Node::scalarConstant(real, a1)));
  BEVEL_TRY(GraphExpr y, binaryOp(n, "subtract", Node::scalarConstant(real, a0), c));
  if (a2 != 0) {
    BEVEL_TRY(GraphExpr twice, binaryOp(n, "multiply", angle, Node::scalarConstant(real, 2)));
    BEVEL_TRY(twice, unaryOp(n, "cos", twice));
    BEVEL_TRY(twice, binaryOp(n, "multiply", twice, Node::scalarConstant(real, a2)));
    BEVEL_TRY(y, binaryOp(n, "add", y, twice));
  }
  BEVEL_TRY(y, n.castTo(y, *t));
  return Values{n.value(y)};
}

} // namespace

std::vector<Conversion> selectionConversions() {
  return {{"TopK", 1, topk1},
          {"TopK", 10, topk10},
          {"NonZero", 9, nonZero},
          {"Compress", 9, compress},
          {"BitCast", 26, bitCast},
          {"HannWindow", 17, std::bind_front(window, 0.5, 0.5, 0.0)},
          {"HammingWindow", 17, std::bind_front(window, 25.0 / 46, 1 - 25.0 / 46, 0.0)},
          {"BlackmanWindow", 17, std::bind_front(window, 0.42, 0.5, 0.08)}};
}

} // namespace bevel::onnx

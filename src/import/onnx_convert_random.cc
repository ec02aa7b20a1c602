// Random numbers: from the node's seed, or from its name and those of the calls around it, and from the trip of a
// loop. Every run of a model draws the same.
#include "base/hash.h"
#include "import/onnx_helpers.h"

#include <cmath>

namespace bevel::onnx {

namespace {

int64_t seedOf(Node& n, const Origin& origin) {
  const AttributeProto* given = n.attr("seed");
  if (given) return given->type == AttrType::kInt ? given->i : int64_t(std::llround(double(given->f)));
  uint64_t hash = 1;
  for (const std::string& name : origin->nodes) hash = hashText(name, hash);
  return int64_t(hash & 0xffffffff);
}

/// Draws of [0, 1) in float32, `count` of them that have nothing to do with each other.
Result<std::vector<GraphExpr>> uniform(Node& n, const Array<Expr>& shape, int64_t count = 1) {
  Origin origin = n.importer.originOf(n.name);
  int64_t seed = seedOf(n, origin) + n.importer.countDraw(origin) * 0x2545f5;
  std::vector<GraphExpr> out;
  for (int64_t stream = 0; stream < count; ++stream) {
    Array<GraphExpr> args = {Node::shapeArg(shape)};
    if (n.importer.trip) args.push_back(n.importer.trip);
    BEVEL_TRY(GraphExpr e,
              n.emit("random.uniform", args, {{"seed", intImm((seed + stream * 0x51ed27) & 0xffffffff)}}));
    out.push_back(e);
  }
  return out;
}

Result<DType> typeOf(Node& n, DType otherwise) {
  if (!n.hasAttr("dtype")) return otherwise;
  auto t = dtypeOf(int32_t(n.attrInt("dtype", 0)));
  if (!t || !t->isFloat()) return n.unsupported("random numbers of that type");
  return *t;
}

Result<Values> scaled(Node& n, GraphExpr e, double factor, double offset, DType t) {
  BEVEL_TRY(e, binaryOp(n, "multiply", e, Node::scalarConstant(kFloat32, factor)));
  BEVEL_TRY(e, binaryOp(n, "add", e, Node::scalarConstant(kFloat32, offset)));
  BEVEL_TRY(e, n.castTo(e, t));
  return Values{n.value(e)};
}

// The shape and the type that the node states, or those of its input.
struct Drawn {
  Array<Expr> shape;
  DType dtype;
};
Result<Drawn> drawnOf(bool like, Node& n) {
  if (like) BEVEL_CHECK(n.require(1));
  DType otherwise = like && n.dtype(0).isFloat() ? n.dtype(0) : kFloat32;
  BEVEL_TRY(DType t, typeOf(n, otherwise));
  return Drawn{like ? n.shape(0) : dims(n.attrInts("shape")), t};
}

Result<Values> uniformNode(bool like, Node& n) {
  BEVEL_TRY(Drawn d, drawnOf(like, n));
  BEVEL_TRY(std::vector<GraphExpr> u, uniform(n, d.shape));
  double low = n.attrFloat("low", 0);
  return scaled(n, u[0], n.attrFloat("high", 1) - low, low, d.dtype);
}

// sqrt(-2 ln(1 - u)) cos(2 pi v)
Result<Values> normalNode(bool like, Node& n) {
  BEVEL_TRY(Drawn d, drawnOf(like, n));
  BEVEL_TRY(std::vector<GraphExpr> draws, uniform(n, d.shape, 2));
  GraphExpr u = draws[0], v = draws[1];
  BEVEL_TRY(u, binaryOp(n, "subtract", Node::scalarConstant(kFloat32, 1), u));
  BEVEL_TRY(u, unaryOp(n, "log", u));
  BEVEL_TRY(u, binaryOp(n, "multiply", u, Node::scalarConstant(kFloat32, -2)));
  BEVEL_TRY(u, unaryOp(n, "sqrt", u));
  BEVEL_TRY(v, binaryOp(n, "multiply", v, Node::scalarConstant(kFloat32, 2 * M_PI)));
  BEVEL_TRY(v, unaryOp(n, "cos", v));
  BEVEL_TRY(u, binaryOp(n, "multiply", u, v));
  return scaled(n, u, n.attrFloat("scale", 1), n.attrFloat("mean", 0), d.dtype);
}

// One where a draw lies below the input's probability.
Result<Values> bernoulli(Node& n) {
  BEVEL_CHECK(n.require(1));
  auto t = n.hasAttr("dtype") ? dtypeOf(int32_t(n.attrInt("dtype", 0))) : n.dtype(0);
  if (!t) return n.unsupported("the type of the result");
  BEVEL_TRY(std::vector<GraphExpr> u, uniform(n, n.shape(0)));
  BEVEL_TRY(GraphExpr p, n.castTo(n.x(0), kFloat32));
  BEVEL_TRY(GraphExpr hit, binaryOp(n, "less", u[0], p));
  BEVEL_TRY(hit, n.castTo(hit, *t));
  return Values{n.value(hit)};
}

// x / (1 - ratio) where a draw reaches the ratio, else 0; without training x as it is. `training` may be a
// value of the run.
Result<Values> dropout(Node& n) {
  BEVEL_CHECK(n.require(1));
  bool known = !n.has(2);
  bool training = known ? n.opset < 7 && n.hasAttr("is_test") && n.attrInt("is_test", 0) == 0 : false;
  if (auto given = n.scalar(2)) known = true, training = *given != 0;
  auto ratio = n.has(1) ? n.scalar(1) : std::optional<double>(n.attrFloat("ratio", 0.5));
  GraphExpr x = n.x(0), all;
  BEVEL_TRY(all, n.emit("broadcast_to", {Node::scalarConstant(kBool, 1), Node::shapeArg(n.shape(0))}));
  DType maskType = n.opset >= 10 ? kBool : n.dtype(0);
  if (known && (!training || ratio == 0.0)) {
    BEVEL_TRY(all, n.castTo(all, maskType));
    return Values{n.in(0), n.value(all)};
  }
  BEVEL_TRY(std::vector<GraphExpr> u, uniform(n, n.shape(0)));
  GraphExpr r = n.has(1) ? n.x(1) : Node::scalarConstant(kFloat32, *ratio);
  BEVEL_TRY(r, n.castTo(r, kFloat32));
  BEVEL_TRY(GraphExpr mask, binaryOp(n, "greater_equal", u[0], r));
  BEVEL_TRY(GraphExpr kept, binaryOp(n, "subtract", Node::scalarConstant(kFloat32, 1), r));
  BEVEL_TRY(GraphExpr y, n.castTo(x, kFloat32));
  BEVEL_TRY(y, binaryOp(n, "divide", y, kept));
  BEVEL_TRY(y, n.castTo(y, n.dtype(0)));
  BEVEL_TRY(y, n.emit("where", {mask, y, Node::scalarConstant(n.dtype(0), 0)}));
  if (!known) {
    BEVEL_TRY(y, n.emit("where", {n.x(2), y, x}));
    BEVEL_TRY(mask, n.emit("where", {n.x(2), mask, all}));
  }
  BEVEL_TRY(mask, n.castTo(mask, maskType));
  return Values{n.value(y), n.value(mask)};
}

} // namespace

std::vector<Conversion> randomConversions() {
  return {{"RandomUniform", 1, std::bind_front(uniformNode, false)},
          {"RandomNormal", 1, std::bind_front(normalNode, false)},
          {"RandomUniformLike", 1, std::bind_front(uniformNode, true)},
          {"RandomNormalLike", 1, std::bind_front(normalNode, true)},
          {"Bernoulli", 15, bernoulli},
          {"Dropout", 1, dropout}};
}

} // namespace bevel::onnx

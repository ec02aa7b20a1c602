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
std::vector<Term> uniform(Node& n, const Array<Expr>& shape, int64_t count = 1) {
  Origin origin = n.importer.originOf(n.name);
  int64_t seed = seedOf(n, origin) + n.importer.countDraw(origin) * 0x2545f5;
  Array<GraphExpr> args = {Node::shapeArg(shape)};
  if (n.importer.trip) args.push_back(n.importer.trip);
  std::vector<Term> out;
  for (int64_t stream = 0; stream < count; ++stream)
    out.push_back(n.emit("random.uniform", args, {{"seed", (seed + stream * 0x51ed27) & 0xffffffff}}));
  return out;
}

// The shape and the type that the node states, or those of its input.
struct Drawn {
  Array<Expr> shape;
  DType dtype;
};
Result<Drawn> drawnOf(bool like, Node& n) {
  BEVEL_TRY(DType t, n.attrType("dtype", like && n.dtype(0).isFloat() ? n.dtype(0) : kFloat32));
  if (!t.isFloat()) return n.unsupported("random numbers of that type");
  return Drawn{like ? n.shape(0) : dims(n.attrInts("shape")), t};
}

Result<Values> uniformNode(bool like, Node& n) {
  BEVEL_TRY(Drawn d, drawnOf(like, n));
  double low = n.attrFloat("low", 0);
  return (uniform(n, d.shape)[0] * (n.attrFloat("high", 1) - low) + low).cast(d.dtype);
}

// sqrt(-2 ln(1 - u)) cos(2 pi v)
Result<Values> normalNode(bool like, Node& n) {
  BEVEL_TRY(Drawn d, drawnOf(like, n));
  std::vector<Term> draws = uniform(n, d.shape, 2);
  Term u = ((1 - draws[0]).apply("log") * -2).apply("sqrt");
  Term v = (draws[1] * (2 * M_PI)).apply("cos");
  return (u * v * n.attrFloat("scale", 1) + n.attrFloat("mean", 0)).cast(d.dtype);
}

// One where a draw lies below the input's probability.
Result<Values> bernoulli(Node& n) {
  BEVEL_TRY(DType t, n.attrType("dtype", n.dtype(0)));
  Term u = uniform(n, n.shape(0))[0];
  return (u < n.x(0).cast(kFloat32)).cast(t);
}

// x / (1 - ratio) where a draw reaches the ratio, else 0; without training x as it is. `training` may be a
// value of the run.
Result<Values> dropout(Node& n) {
  bool known = !n.has(2);
  bool training = known ? n.opset < 7 && n.hasAttr("is_test") && n.attrInt("is_test", 0) == 0 : false;
  if (auto given = n.scalar(2)) known = true, training = *given != 0;
  auto ratio = n.has(1) ? n.scalar(1) : std::optional<double>(n.attrFloat("ratio", 0.5));
  Term x = n.x(0), all = n.emit("broadcast_to", {Node::scalarConstant(kBool, 1), n.shape(0)});
  DType maskType = n.opset >= 10 ? kBool : n.dtype(0);
  if (known && (!training || ratio == 0.0)) return n.results({x, all.cast(maskType)});
  Term u = uniform(n, n.shape(0))[0];
  Term r = n.has(1) ? n.x(1).cast(kFloat32) : Term(Node::scalarConstant(kFloat32, *ratio));
  Term mask = u >= r, kept = 1 - r;
  Term y = (x.cast(kFloat32) / kept).cast(n.dtype(0));
  y = where(n, mask, y, 0);
  if (!known) {
    y = where(n, n.x(2), y, x);
    mask = where(n, n.x(2), mask, all);
  }
  return n.results({y, mask.cast(maskType)});
}

} // namespace

std::vector<Conversion> randomConversions() {
  return {{"RandomUniform", 1, std::bind_front(uniformNode, false)},
          {"RandomNormal", 1, std::bind_front(normalNode, false)},
          {"RandomUniformLike", 1, std::bind_front(uniformNode, true), 1},
          {"RandomNormalLike", 1, std::bind_front(normalNode, true), 1},
          {"Bernoulli", 15, bernoulli, 1},
          {"Dropout", 1, dropout, 1}};
}

} // namespace bevel::onnx

// Constants, shapes, and operators that only change the shape.
#include "import/onnx_helpers.h"

namespace bevel::onnx {

namespace {

Result<Values> constant(Node& n) {
  auto give = [&](Tensor t) { return Values{n.value(make<const ConstantNode>(std::move(t)))}; };
  if (const AttributeProto* a = n.attr("value"); a && a->t)
    return n.importer.source().decode(*a->t).map(give);
  if (const AttributeProto* a = n.attr("sparse_value"); a && a->sparse)
    return n.importer.source().decode(*a->sparse).map(give);
  if (const AttributeProto* a = n.attr("value_int")) return give(TensorObject::of(kInt64, {}, Ints{a->i}));
  if (const AttributeProto* a = n.attr("value_ints"))
    return give(TensorObject::of(kInt64, {int64_t(a->ints.size())}, a->ints));
  if (const AttributeProto* a = n.attr("value_float"))
    return give(TensorObject::of(kFloat32, {}, std::vector<float>{a->f}));
  if (const AttributeProto* a = n.attr("value_floats"))
    return give(TensorObject::of(kFloat32, {int64_t(a->floats.size())}, a->floats));
  if (const AttributeProto* a = n.attr("value_string")) return give(TensorObject::ofStrings({}, {a->s}));
  if (const AttributeProto* a = n.attr("value_strings"))
    return give(TensorObject::ofStrings({int64_t(a->strings.size())}, a->strings));
  return n.invalid("the constant has no value");
}

Result<Values> constantOfShape(Node& n) {
  BEVEL_TRY(Array<Expr> shape, n.ints(0));
  GraphExpr value = Node::scalarConstant(kFloat32, 0);
  if (const AttributeProto* a = n.attr("value"); a && a->t) {
    BEVEL_TRY(Tensor t, n.importer.source().decode(*a->t));
    if (t->size() != 1) return n.invalid("the value must have one element");
    auto scalar = TensorObject::zeros(t->dtype, {});
    if (t->dtype.isFloat())
      scalar->setDouble(0, t->asDouble(0));
    else if (t->dtype.isString())
      scalar->strings[0] = t->strings[0];
    else
      scalar->setInt(0, t->asInt(0));
    value = make<const ConstantNode>(Tensor(scalar));
  }
  return n.emit("broadcast_to", {value, shape});
}

Result<Values> shape(Node& n) {
  int64_t rank = int64_t(n.rank(0)), start = n.attrInt("start", 0), end = n.attrInt("end", rank);
  auto clamp = [&](int64_t a) { return std::min(std::max<int64_t>(a < 0 ? a + rank : a, 0), rank); };
  start = clamp(start);
  end = std::max(clamp(end), start);
  return Values{knownInts(n.shape(0).slice(size_t(start), size_t(end)), {end - start})};
}

Result<Values> size(Node& n) {
  return Values{knownInts({product(n.analyzer(), n.shape(0))}, {})};
}

Result<Values> reshapeWith(Node& n, Array<Expr> target, bool allowZero) {
  Analyzer& an = n.analyzer();
  const Array<Expr>& from = n.shape(0);
  Expr copied = intImm(1), others = intImm(1);
  bool unknown = false;
  for (size_t i = 0; i < target.size(); ++i) {
    auto c = asConst(target[i]);
    if (c && *c == 0 && !allowZero) {
      if (i >= from.size()) return n.invalid("a dimension of 0 copies one that the input does not have");
      target.set(i, from[i]);
      copied = copied * from[i];
    } else if (c && *c == -1)
      unknown = true;
    else if (c && *c < -1)
      return n.invalid(fmt::format("dimension {} is negative", *c));
    else
      others = others * target[i];
  }
  // -1 beside copied dimensions: leave those out of the division, so that an empty one divides nothing.
  if (unknown && !isConst(copied, 1)) {
    Array<Expr> rest;
    for (size_t i = 0; i < from.size(); ++i)
      if (i >= target.size() || target[i] != from[i]) rest.push_back(from[i]);
    Expr total = product(an, rest);
    auto ct = asConst(total), co = asConst(an.simplify(others));
    if (ct && co && (*co == 0 || *ct % *co != 0)) return n.invalid("the elements do not fit the shape");
    for (size_t i = 0; i < target.size(); ++i)
      if (isConst(target[i], -1)) target.set(i, an.simplify(floordiv(total, others)));
  }
  return n.x(0).reshape(target);
}

Result<Values> reshape1(Node& n) {
  return reshapeWith(n, dims(n.attrInts("shape")), false);
}
// A target that only the run knows may hold 0 and -1: they are resolved by expressions, and the dimensions
// named.
Result<Values> reshapeUnknown(Node& n, const Array<Expr>& target, bool allowZero) {
  const Array<Expr>& from = n.shape(0);
  Expr total = product(n.analyzer(), from), others = intImm(1);
  Array<Expr> copied, resolved, dims;
  for (size_t i = 0; i < target.size(); ++i) {
    bool copies = !allowZero && i < from.size();
    copied.push_back(copies ? select(eq(target[i], intImm(0)), from[i], target[i]) : target[i]);
    others = others * select(copied[i] < intImm(0), intImm(1), copied[i]);
  }
  for (const Expr& d : copied) {
    resolved.push_back(select(d < intImm(0), floordiv(total, max(others, intImm(1))), d));
    dims.push_back(var(n.builder().freshVarName("n"), kInt64));
  }
  n.builder().matchCast(make<const ShapeExprNode>(resolved), make<const ShapeTypeNode>(dims));
  return n.x(0).reshape(dims);
}

Result<Values> reshape5(Node& n) {
  if (!n.has(1)) return n.invalid("the shape is missing");
  bool known = n.in(1)->known, allowZero = n.attrInt("allowzero", 0) != 0;
  BEVEL_TRY(Array<Expr> target, n.ints(1));
  return known || target.empty() ? reshapeWith(n, target, allowZero) : reshapeUnknown(n, target, allowZero);
}

Result<Values> flatten(Node& n) {
  int64_t axis = n.attrInt("axis", 1), rank = int64_t(n.rank(0));
  if (axis < -rank || axis > rank) return n.invalid("the axis is out of range");
  if (axis < 0) axis += rank;
  Array<Expr> to = {product(n.analyzer(), n.shape(0), 0, size_t(axis)),
                    product(n.analyzer(), n.shape(0), size_t(axis))};
  return n.x(0).reshape(to);
}

bool unknownAxes(Node& n) {
  return !n.hasAttr("axes") && n.has(1) && !n.constInts(1);
}

// The axes of the input that are not among the values, in order.
Result<Values> squeezeAt(Node& n) {
  BEVEL_TRY(Array<Expr> axes, n.ints(1));
  BEVEL_TRY(Array<Expr> shape, keptDims(n, axes, n.shape(0)));
  return n.x(0).reshape(shape);
}

// An axis of one where the values say, the input's dimensions elsewhere.
Result<Values> unsqueezeAt(Node& n) {
  BEVEL_TRY(Array<Expr> axes, n.ints(1));
  int64_t rank = int64_t(n.rank(0) + axes.size());
  if (rank > int64_t(kMaxRank)) return n.invalid("too many axes");
  BEVEL_CHECK(checkAxes(n, axes, rank));
  Array<Expr> fresh, before, shape;
  for (int64_t d = 0; d < rank; ++d) fresh.push_back(castTo(kInt64, isAmong(axes, d, rank)));
  fresh = named(n, fresh);
  Expr count = intImm(0);
  for (int64_t d = 0; d < rank; ++d) {
    before.push_back(intImm(d) - count);
    count = count + fresh[size_t(d)];
  }
  BEVEL_CHECK(n.check(eq(count, intImm(int64_t(axes.size()))), "an axis is given twice"));
  before = named(n, before);
  for (size_t d = 0; d < size_t(rank); ++d) {
    Expr extent = intImm(1);
    for (size_t k = 0; k < n.rank(0); ++k)
      extent = select(eq(before[d], intImm(int64_t(k))), n.shape(0)[k], extent);
    shape.push_back(select(eq(fresh[d], intImm(1)), intImm(1), extent));
  }
  return n.x(0).reshape(named(n, shape));
}

Result<Values> squeeze(Node& n) {
  if (unknownAxes(n)) return squeezeAt(n);
  BEVEL_TRY(std::optional<Ints> axes, axesOf(n, 1));
  if (!axes) return n.x(0).apply("squeeze");
  if (axes->empty()) return Values{n.in(0)};
  return n.x(0).squeeze(*axes);
}

Result<Values> unsqueezeNode(Node& n) {
  if (unknownAxes(n)) return unsqueezeAt(n);
  BEVEL_TRY(std::optional<Ints> axes, axesOf(n, 1));
  if (!axes) return n.invalid("the axes are missing");
  if (n.rank(0) + axes->size() > kMaxRank) return n.invalid("too many axes");
  if (axes->empty()) return Values{n.in(0)};
  return n.x(0).unsqueeze(*axes);
}

Result<Values> transpose(Node& n) {
  return n.hasAttr("perm") ? n.x(0).permute(n.attrInts("perm")) : n.x(0).apply("permute_dims");
}

Result<Values> expand(Node& n) {
  BEVEL_TRY(Array<Expr> target, n.ints(1));
  BEVEL_TRY(Array<Expr> shape, broadcastOf(n, n.shape(0), target));
  for (size_t i = 0, o = shape.size() - target.size(); i < target.size(); ++i)
    BEVEL_CHECK(n.check(logicalOr(eq(target[i], intImm(1)), eq(target[i], shape[o + i])),
                        "the shapes cannot be broadcast"));
  return n.x(0).broadcast(shape);
}

Result<Values> identity(Node& n) {
  if (n.inputs.empty()) return n.invalid("the input is missing");
  return Values{n.in(0)};
}

Result<Values> depthToSpace(Node& n) {
  if (n.rank(0) != 4) return n.invalid("four dimensions are expected");
  int64_t b = n.attrInt("blocksize", 0);
  auto c = asConst(n.shape(0)[1]);
  if (b < 1 || b > 4096 || !c || *c % (b * b) != 0)
    return n.invalid("the channels do not divide into blocks");
  const Array<Expr>& s = n.shape(0);
  Expr size = intImm(b), rest = intImm(*c / (b * b));
  bool crd = n.attrStr("mode", "DCR") == "CRD";
  Term blocks = n.x(0).reshape(crd ? Array<Expr>{s[0], rest, size, size, s[2], s[3]}
                                   : Array<Expr>{s[0], size, size, rest, s[2], s[3]});
  Term moved = blocks.permute(crd ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
  return moved.reshape({s[0], rest, s[2] * size, s[3] * size});
}

Result<Values> spaceToDepth(Node& n) {
  int64_t b = n.attrInt("blocksize", 0);
  if (n.rank(0) != 4 || b < 1 || b > 4096)
    return n.invalid("four dimensions and a positive block size are expected");
  const Array<Expr>& s = n.shape(0);
  Expr size = intImm(b);
  Expr h = n.analyzer().simplify(floordiv(s[2], b)), w = n.analyzer().simplify(floordiv(s[3], b));
  bool crd = n.attrStr("mode", "DCR") == "CRD";
  Term moved = n.x(0)
                   .reshape({s[0], s[1], h, size, w, size})
                   .permute(crd ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4});
  return moved.reshape({s[0], n.analyzer().simplify(s[1] * (b * b)), h, w});
}

} // namespace

std::vector<Conversion> shapeConversions() {
  return {{"Constant", 1, constant},
          {"ConstantOfShape", 9, constantOfShape},
          {"Shape", 1, shape, 1},
          {"Size", 1, size, 1},
          {"Reshape", 1, reshape1, 1},
          {"Reshape", 5, reshape5, 1},
          {"Flatten", 1, flatten, 1},
          {"Squeeze", 1, squeeze, 1},
          {"Unsqueeze", 1, unsqueezeNode, 1},
          {"Transpose", 1, transpose, 1},
          {"Expand", 8, expand, 1},
          {"Identity", 1, identity},
          {"DepthToSpace", 1, depthToSpace, 1},
          {"SpaceToDepth", 1, spaceToDepth, 1}};
}

} // namespace bevel::onnx

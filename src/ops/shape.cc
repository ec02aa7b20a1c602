// Operators that change the shape only, and the passage between shapes and tensors.
//
//   reshape [n, 6, 4] → [n, 3, 8]:   out[a, b, c] = x[a, (b*8 + c) // 4, (b*8 + c) % 4]
//
// Input and output dimensions are matched in groups of equal product, so untouched dimensions keep plain
// indices.
#include "ops/common.h"

#include "arith/dims.h"

namespace bevel::ops {

namespace {

// ---- reshape

Result<Type> reshapeInfer(const OpCall& call, InferContext& context) {
  Analyzer& an = context.analyzer;
  Array<Expr> shape = call.values(1);
  Expr total = product(an, call.shape(0)), rest = intImm(1);
  int64_t unknown = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    auto c = asConst(shape[i]);
    if (c && *c == -1) {
      if (unknown >= 0) return call.invalid("more than one dimension is -1");
      unknown = int64_t(i);
    } else if (c && *c < 0)
      return call.invalid(fmt::format("dimension {} is negative", *c));
    else
      rest = rest * shape[i];
  }
  rest = asConst(rest) ? rest : an.simplify(rest);
  if (unknown >= 0) {
    auto ct = asConst(total), cr = asConst(rest);
    if (cr && *cr == 0) return call.invalid("a dimension of -1 beside a dimension of 0");
    if (ct && cr && *ct % *cr != 0) return call.invalid(fmt::format("{} elements do not fit the shape", *ct));
    if (!cr || !ct)
      BEVEL_CHECK(
          context.require(eq(floormod(total, rest), intImm(0)), call, "the elements do not fit the shape"));
    shape.set(size_t(unknown), an.simplify(floordiv(total, rest)));
  } else if (!provedEqual(an, total, rest)) {
    auto ct = asConst(total), cr = asConst(rest);
    if (ct && cr) return call.invalid(fmt::format("{} elements do not fit a shape of {}", *ct, *cr));
    BEVEL_CHECK(context.require(eq(total, rest), call, "the elements do not fit the shape"));
  }
  return tensorOf(call.dtype(0), shape);
}

// Indices into `from` of the element at `index` of `to`, dims [i0, i1) and [j0, j1) of equal product.
void mapGroup(const Array<Expr>& from, const Array<Expr>& to, const Array<Var>& index, size_t i0, size_t i1,
              size_t j0, size_t j1, Array<Expr>& out, Analyzer& an) {
  // Dimensions of one need no arithmetic.
  std::vector<size_t> rows, columns;
  for (size_t i = i0; i < i1; ++i)
    if (!isConst(from[i], 1)) rows.push_back(i);
  for (size_t j = j0; j < j1; ++j)
    if (!isConst(to[j], 1)) columns.push_back(j);
  std::vector<Expr> values(i1 - i0, intImm(0));
  if (rows.size() == 1 && columns.size() == 1)
    values[rows[0] - i0] = index[columns[0]];
  else if (!rows.empty()) {
    Expr flat = intImm(0);
    for (size_t j : columns) flat = flat * to[j] + Expr(index[j]);
    for (size_t k = rows.size(); k-- > 0;) {
      values[rows[k] - i0] = k == 0 ? flat : floormod(flat, from[rows[k]]);
      if (k > 0) flat = floordiv(flat, from[rows[k]]);
    }
  }
  for (const Expr& e : values) out.push_back(an.simplify(e));
}

// Index map of a reshape.
Array<Expr> reshapeIndex(const Array<Expr>& from, const Array<Expr>& to, const Array<Var>& index) {
  Analyzer an;
  bindDims(from, an);
  for (size_t j = 0; j < to.size(); ++j) an.bind(index[j], range(intImm(0), to[j]));
  Array<Expr> out;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t i0 = i, j0 = j;
    Expr p = i < from.size() ? from[i++] : intImm(1), q = j < to.size() ? to[j++] : intImm(1);
    while (!provedEqual(an, p, q) && (i < from.size() || j < to.size())) {
      auto cp = asConst(p), cq = asConst(q);
      bool left = i < from.size() &&
                  (j >= to.size() ||
                   (cp && cq ? *cp < *cq : cp.has_value() || (!cq && from.size() - i >= to.size() - j)));
      if (left)
        p = an.simplify(p * from[i++]);
      else
        q = an.simplify(q * to[j++]);
    }
    mapGroup(from, to, index, i0, i, j0, j, out, an);
  }
  return out;
}

Result<TeTensors> reshapeCompute(const OpCall& call, const TeTensors& in) {
  Array<Expr> to = resultShape(call), from = in[0].shape();
  return TeTensors{
      te::compute(to, "reshape", [&](const Array<Var>& i) { return in[0](reshapeIndex(from, to, i)); })};
}

// ---- expand_dims, squeeze

Result<Type> expandDimsInfer(const OpCall& call, InferContext&) {
  Ints axes = call.ints("axis");
  BEVEL_TRY(Ints sorted, normalizeAxes(call, axes, call.rank(0) + axes.size()));
  return tensorOf(call.dtype(0), inserted(call.shape(0), sorted, dims(Ints(sorted.size(), 1))));
}

Result<Ints> squeezedAxes(const OpCall& call) {
  if (call.hasAttr("axis")) return normalizeAxes(call, call.ints("axis"), call.rank(0));
  Ints axes;
  for (size_t i = 0; i < call.rank(0); ++i)
    if (isConst(call.shape(0)[i], 1)) axes.push_back(int64_t(i));
  return axes;
}

Result<Type> squeezeInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(Ints axes, squeezedAxes(call));
  for (int64_t axis : axes) {
    const Expr& d = call.shape(0)[size_t(axis)];
    if (auto c = asConst(d); c && *c != 1)
      return call.invalid(fmt::format("axis {} has {} elements, not 1", axis, *c));
    BEVEL_CHECK(context.require(eq(d, intImm(1)), call, "a squeezed axis does not have one element"));
  }
  return tensorOf(call.dtype(0), without(call.shape(0), axes));
}

Expr expandDimsElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  return in[0](without(exprs(i), *normalizeAxes(call, call.ints("axis"), i.size())));
}

Expr squeezeElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  Ints axes = *squeezedAxes(call);
  return in[0](inserted(exprs(i), axes, dims(Ints(axes.size(), 0))));
}

// ---- permute_dims

Result<Ints> permutation(const OpCall& call) {
  size_t rank = call.rank(0);
  Ints axes = call.ints("axes");
  if (!call.hasAttr("axes"))
    for (size_t i = rank; i-- > 0;) axes.push_back(int64_t(i));
  if (axes.size() != rank) return call.invalid(fmt::format("{} axes given for rank {}", axes.size(), rank));
  for (int64_t& a : axes) {
    BEVEL_TRY(a, normalizeAxis(call, a, rank));
  }
  BEVEL_CHECK(normalizeAxes(call, axes, rank)); // unique
  return axes;
}

Result<Type> permuteInfer(const OpCall& call, InferContext&) {
  BEVEL_TRY(Ints axes, permutation(call));
  Array<Expr> shape;
  for (int64_t a : axes) shape.push_back(call.shape(0)[size_t(a)]);
  return tensorOf(call.dtype(0), shape);
}

Expr permuteElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  Ints axes = *permutation(call);
  Array<Expr> index = exprs(i);
  for (size_t d = 0; d < axes.size(); ++d) index.set(size_t(axes[d]), i[d]);
  return in[0](index);
}

// ---- broadcast_to

Result<Type> broadcastToInfer(const OpCall& call, InferContext& context) {
  const Array<Expr>&from = call.shape(0), &to = call.values(1);
  if (from.size() > to.size()) return call.invalid("the target has fewer dimensions");
  for (size_t i = 0, o = to.size() - from.size(); i < from.size(); ++i) {
    if (isConst(from[i], 1) || provedEqual(context.analyzer, from[i], to[o + i])) continue;
    auto a = asConst(from[i]), b = asConst(to[o + i]);
    if (a && b) return call.invalid(fmt::format("dimension {} cannot be broadcast to {}", *a, *b));
    BEVEL_CHECK(context.require(logicalOr(eq(from[i], to[o + i]), eq(from[i], intImm(1))), call,
                                "a dimension cannot be broadcast"));
  }
  for (const Expr& d : to)
    if (auto c = asConst(d); c && *c < 0) return call.invalid("a dimension is negative");
  return tensorOf(call.dtype(0), to);
}
Expr broadcastToElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  return readBroadcast(in[0], call.values(1), i);
}

// ---- shapes and tensors

Result<Type> shapeToTensorInfer(const OpCall& call, InferContext&) {
  return tensorOf(kInt64, dims({int64_t(call.values(0).size())}));
}
Expr shapeToTensorElement(const OpCall& call, const TeTensors&, const Array<Var>& i) {
  const Array<Expr>& values = call.values(0);
  Expr e = values.empty() ? intImm(0) : castTo(kInt64, values.back());
  for (size_t k = values.size(); k-- > 1;)
    e = select(i[0] < intImm(int64_t(k)), castTo(kInt64, values[k - 1]), e);
  return e;
}

Result<Type> tensorToShapeInfer(const OpCall& call, InferContext&) {
  if (call.dtype(0) != kInt64) return call.invalid("an int64 vector is expected");
  auto n = asConst(call.shape(0)[0]);
  return Type(make<const ShapeTypeNode>(n ? *n : -1));
}

} // namespace

void register_shape(OpRegistry& r) {
  r.add({.name = "reshape",
         .doc = "The elements in row-major order under another shape; one dimension may be -1. ONNX Reshape.",
         .inputs = {OpInput("x").of(Elements::kAll), {"shape", InputKind::kShape}},
         .infer = reshapeInfer,
         .compute = reshapeCompute,
         .view = true,
         .tests = {"float32[2,3,4] shape(6,4)", "float32[4,6,5] shape(4,3,10)", "float32[7] shape(1,7,1)",
                   "float32[0,3] shape(3,0)", "float32[2,12] shape(3,-1)", "int32[] shape(1)"}});
  r.add({.name = "expand_dims",
         .doc = "Axes of one element are inserted. ONNX Unsqueeze.",
         .inputs = {OpInput("x").of(Elements::kAll)},
         .attrs = {required(intsAttr("axis"))},
         .infer = expandDimsInfer,
         .compute = elements("expand_dims", expandDimsElement),
         .tests = {"float32[2,3] axis=[0,-1]", "float32[] axis=[0]"}});
  r.add({.name = "squeeze",
         .doc = "Axes of one element are removed: those named, else all. ONNX Squeeze.",
         .inputs = {OpInput("x").of(Elements::kAll)},
         .attrs = {intsAttr("axis")},
         .infer = squeezeInfer,
         .compute = elements("squeeze", squeezeElement),
         .tests = {"float32[1,3,1]", "float32[1,3,1] axis=[-1]"}});
  r.add({.name = "permute_dims",
         .doc = "Axes in another order; reversed by default. ONNX Transpose.",
         .inputs = {OpInput("x").of(Elements::kAll)},
         .attrs = {intsAttr("axes")},
         .infer = permuteInfer,
         .compute = elements("transpose", permuteElement),
         .tests = {"float32[2,3,4]", "float32[2,3,4] axes=[1,2,0]", "float32[5,7] axes=[-1,0]"}});
  r.add(
      {.name = "broadcast_to",
       .doc = "Numpy broadcast to a shape. See ONNX Expand, whose target is broadcast with the input first.",
       .inputs = {OpInput("x").of(Elements::kAll), {"shape", InputKind::kShape}},
       .infer = broadcastToInfer,
       .compute = elements("broadcast_to", broadcastToElement),
       .tests = {"float32[3,1] shape(2,3,4)", "float32[] shape(2,0)"}});
  r.add({.name = "shape_to_tensor",
         .doc = "The values of a shape as an int64 vector. ONNX Shape.",
         .inputs = {{"shape", InputKind::kShape}},
         .infer = shapeToTensorInfer,
         .compute = elements("shape_to_tensor", shapeToTensorElement),
         .tests = {"shape(3,5,7)", "shape()"}});
  r.add({.name = "tensor_to_shape",
         .doc = "An int64 vector as a shape value; bind its elements by match_cast.",
         .inputs = {OpInput("x").of(Elements::kInts).rank(1)},
         .infer = tensorToShapeInfer,
         .packed = "vm.builtin.tensor_to_shape"});
}

} // namespace bevel::ops

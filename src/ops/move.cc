// Operators that move elements: concat, slices, tile, flip, padding, where, triangles, ranges.
#include "ops/common.h"

#include "arith/dims.h"

#include <algorithm>
#include <functional>

namespace bevel::ops {

namespace {

// ---- concat

Result<Type> concatInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireSameDType(call, 0, call.size()));
  BEVEL_TRY(size_t axis, checkedAxis(call));
  Array<Expr> shape = call.shape(0);
  Expr total = shape[axis];
  for (size_t i = 1; i < call.size(); ++i) {
    if (call.rank(i) != shape.size()) return call.invalid("inputs have different ranks");
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d == axis) continue;
      const Expr& e = call.shape(i)[d];
      if (provedEqual(context.analyzer, shape[d], e)) continue;
      BEVEL_CHECK(
          context.require(eq(shape[d], e), call, "inputs differ in a dimension that is not concatenated"));
      if (asConst(e)) shape.set(d, e);
    }
    total = total + call.shape(i)[axis];
  }
  shape.set(axis, asConst(total) ? total : context.analyzer.simplify(total));
  return tensorOf(call.dtype(0), shape);
}

Result<TeTensors> concatCompute(const OpCall& call, const TeTensors& in) {
  size_t axis = axisOf(call);
  Analyzer an;
  std::vector<Expr> starts = {intImm(0)};
  for (const te::Tensor& t : in) starts.push_back(an.simplify(starts.back() + t.shape()[axis]));
  return TeTensors{te::compute(resultShape(call), "concat", [&](const Array<Var>& i) {
    // Halves of halves, so that an element finds its input by few comparisons.
    std::function<Expr(size_t, size_t)> among = [&](size_t first, size_t end) -> Expr {
      if (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        return ifThenElse(i[axis] < starts[middle], among(first, middle), among(middle, end));
      }
      Array<Expr> index = exprs(i);
      index.set(axis, Expr(i[axis]) - starts[first]);
      return in[first](index);
    };
    return among(0, in.size());
  })};
}

// ---- strided_slice

struct Slice {
  Expr begin, step, extent;
};

// A longer step than any dimension takes one element, as kLongStep does, and would overflow.
constexpr int64_t kLongStep = int64_t(1) << 40;

Expr clampExpr(Analyzer& an, const Expr& e, const Expr& lo, const Expr& hi) {
  if (an.prove(e >= lo) && an.prove(e <= hi)) return e;
  return an.simplify(max(min(e, hi), lo));
}

// The same with a step that only the run knows: its sign chooses the limits. A step of zero gives nothing.
Slice sliceByStep(Analyzer& an, const Expr& dim, const Expr& begin, const Expr& end, const Expr& given) {
  Expr step = max(min(given, intImm(kLongStep)), intImm(-kLongStep));
  Expr zero = intImm(0), forward = step > zero;
  Expr low = select(forward, zero, intImm(-1)), high = select(forward, dim, dim - 1);
  auto bound = [&](const Expr& e) { return max(min(select(e < zero, e + dim, e), high), low); };
  Expr b = bound(begin), e = bound(end);
  Expr up = floordiv(e - b + step - 1, max(step, intImm(1))),
       down = floordiv(b - e - step - 1, max(negate(step), intImm(1)));
  Expr count = select(eq(step, zero), zero, max(select(forward, up, down), zero));
  return {an.simplify(b), step, an.simplify(count)};
}

// ONNX's rules: negative bounds count from the end, then both are clamped.
Result<Slice> sliceOf(const OpCall& call, Analyzer& an, const Expr& dim, const Expr& begin, const Expr& end,
                      const Expr& step) {
  auto cs = asConst(step);
  if (!cs) return sliceByStep(an, dim, begin, end, step);
  if (*cs == 0) return call.invalid("a step of zero");
  int64_t stride = std::clamp(*cs, -kLongStep, kLongStep);
  auto fromEnd = [&](const Expr& e) -> Expr {
    if (auto c = asConst(e)) {
      // Exporters write such numbers for "to the end"; a dimension that only the run knows is taken to be
      // smaller.
      constexpr int64_t kFar = 1000000000;
      if (*c >= kFar && !asConst(dim)) return dim;
      if (*c < -kLongStep) return intImm(-1); // before any start; clamped below
      return *c < 0 ? an.simplify(dim + e) : e;
    }
    if (an.prove(e >= intImm(0))) return e;
    return select(e < intImm(0), e + dim, e);
  };
  bool far = asConst(end) && *asConst(end) < -kLongStep;
  Expr b = fromEnd(begin), e = fromEnd(end), zero = intImm(0);
  Slice s;
  s.step = intImm(stride);
  if (stride > 0) {
    s.begin = clampExpr(an, b, zero, dim);
    e = clampExpr(an, e, zero, dim);
    Expr n = an.simplify(e - s.begin);
    if (stride > 1) n = an.simplify(floordiv(n + intImm(stride - 1), s.step));
    s.extent = an.prove(n >= zero) ? n : an.simplify(max(n, zero));
  } else {
    Expr last = an.simplify(dim - 1);
    s.begin = clampExpr(an, b, intImm(-1), last);
    e = far ? intImm(-1) : clampExpr(an, e, intImm(-1), last);
    Expr n = an.simplify(s.begin - e);
    if (stride < -1) n = an.simplify(floordiv(n + intImm(-stride - 1), intImm(-stride)));
    s.extent = an.prove(n >= zero) ? n : an.simplify(max(n, zero));
  }
  return s;
}

Result<std::vector<Slice>> slicesOf(const OpCall& call, Analyzer& an) {
  size_t rank = call.rank(0);
  const Array<Expr>&begin = call.values(1), &end = call.values(2);
  Ints axes = call.ints("axes");
  if (!call.hasAttr("axes"))
    for (size_t i = 0; i < begin.size(); ++i) axes.push_back(int64_t(i));
  bool steps = call.has(3);
  if (begin.size() != axes.size() || end.size() != axes.size() ||
      (steps && call.values(3).size() != axes.size()))
    return call.invalid("begin, end, strides and axes have different lengths");
  BEVEL_CHECK(normalizeAxes(call, axes, rank));
  std::vector<Slice> out;
  for (size_t d = 0; d < rank; ++d) out.push_back({intImm(0), intImm(1), call.shape(0)[d]});
  for (size_t k = 0; k < axes.size(); ++k) {
    BEVEL_TRY(int64_t axis, normalizeAxis(call, axes[k], rank));
    Expr step = steps ? call.values(3)[k] : intImm(1);
    BEVEL_TRY(out[size_t(axis)], sliceOf(call, an, call.shape(0)[size_t(axis)], begin[k], end[k], step));
  }
  return out;
}

Result<Type> sliceInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(std::vector<Slice> slices, slicesOf(call, context.analyzer));
  Array<Expr> shape;
  for (const Slice& s : slices) shape.push_back(s.extent);
  return tensorOf(call.dtype(0), shape);
}

Result<TeTensors> sliceCompute(const OpCall& call, const TeTensors& in) {
  Analyzer an;
  bindDims(in[0].shape(), an);
  BEVEL_TRY(std::vector<Slice> slices, slicesOf(call, an));
  Array<Expr> shape;
  for (const Slice& s : slices) shape.push_back(s.extent);
  return TeTensors{te::compute(shape, "strided_slice", [&](const Array<Var>& i) {
    Array<Expr> index;
    for (size_t d = 0; d < slices.size(); ++d) index.push_back(slices[d].begin + Expr(i[d]) * slices[d].step);
    return in[0](index);
  })};
}

// ---- split

// Where the parts begin and end.
Result<std::vector<std::pair<Expr, Expr>>> partsOf(const OpCall& call, Analyzer& an) {
  BEVEL_TRY(size_t axis, checkedAxis(call));
  Expr size = call.shape(0)[axis], begin = intImm(0);
  std::vector<std::pair<Expr, Expr>> parts;
  auto endAt = [&](const Expr& wanted) {
    Expr end = an.simplify(max(min(wanted, size), begin));
    parts.emplace_back(begin, end);
    begin = end;
  };
  constexpr int64_t kMost = 4096;
  int64_t sections = call.i("sections");
  if (call.hasAttr("indices") == (sections != 0)) return call.invalid("it needs either sections or indices");
  if (sections < 0 || sections > kMost) return call.invalid(fmt::format("{} sections", sections));
  Expr width = sections ? floordiv(size + intImm(sections - 1), intImm(sections)) : nullptr;
  for (int64_t k = 1; k < sections; ++k) endAt(width * k);
  if (call.ints("indices").size() >= size_t(kMost)) return call.invalid("too many indices");
  for (int64_t i : call.ints("indices")) endAt(i < 0 ? size + intImm(i) : intImm(i));
  endAt(size);
  return parts;
}

Result<Type> splitInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(auto parts, partsOf(call, context.analyzer));
  Array<Type> types;
  for (const auto& [begin, end] : parts) {
    Array<Expr> shape = call.shape(0);
    shape.set(axisOf(call), context.analyzer.simplify(end - begin));
    types.push_back(tensorOf(call.dtype(0), shape));
  }
  return tupleOf(types);
}

Result<GraphExpr> splitDecompose(const OpCall& call, BlockBuilder& builder) {
  BEVEL_TRY(auto parts, partsOf(call, builder.analyzer()));
  Array<GraphExpr> items;
  for (const auto& [begin, end] : parts) {
    auto bound = [](const Expr& e) { return make<const ShapeExprNode>(Array<Expr>{e}); };
    BEVEL_TRY(GraphExpr part, builder.emit(opCall("strided_slice", {call.args[0], bound(begin), bound(end)},
                                                  dict({{"axes", intList({int64_t(axisOf(call))})}}))));
    items.push_back(std::move(part));
  }
  return GraphExpr(make<const TupleNode>(items));
}

// ---- tile, flip

Result<Type> tileInfer(const OpCall& call, InferContext& context) {
  const Array<Expr>& repeats = call.values(1);
  if (repeats.size() != call.rank(0)) return call.invalid("one repeat a dimension is needed");
  Array<Expr> shape;
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (auto c = asConst(repeats[d]); c && *c < 0) return call.invalid("a repeat is negative");
    shape.push_back(context.analyzer.simplify(call.shape(0)[d] * repeats[d]));
  }
  return tensorOf(call.dtype(0), shape);
}
Expr tileElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  Array<Expr> index;
  for (size_t d = 0; d < i.size(); ++d)
    index.push_back(isConst(call.values(1)[d], 1) ? Expr(i[d]) : floormod(i[d], in[0].shape()[d]));
  return in[0](index);
}

Expr flipElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  size_t axis = axisOf(call);
  Array<Expr> index = exprs(i);
  index.set(axis, in[0].shape()[axis] - 1 - Expr(i[axis]));
  return in[0](index);
}

// ---- pad

Result<Type> padInfer(const OpCall& call, InferContext& context) {
  size_t rank = call.rank(0);
  const Array<Expr>& pads = call.values(1);
  if (pads.size() != 2 * rank)
    return call.invalid(fmt::format("{} pads given for rank {}", pads.size(), rank));
  std::string mode = call.s("mode");
  BEVEL_CHECK(requireOneOf(call, "mode", {"constant", "reflect", "edge", "wrap"}));
  if (call.has(2) && call.dtype(2) != call.dtype(0)) return call.invalid("the value has another dtype");
  Array<Expr> shape;
  for (size_t d = 0; d < rank; ++d) {
    constexpr int64_t kMost = int64_t(1) << 42; // sums of longer pads would wrap
    for (const Expr& pad : {pads[d], pads[rank + d]})
      BEVEL_CHECK(context.require(logicalAnd(pad >= intImm(-kMost), pad <= intImm(kMost)), call,
                                  "a pad is out of range"));
    Expr n = context.analyzer.simplify(call.shape(0)[d] + pads[d] + pads[rank + d]);
    if (auto c = asConst(n); c && *c < 0) return call.invalid("a dimension becomes negative");
    if (mode != "constant" && !(isConst(pads[d], 0) && isConst(pads[rank + d], 0)))
      BEVEL_CHECK(context.require(call.shape(0)[d] > intImm(0), call,
                                  "an empty dimension cannot be padded from itself"));
    shape.push_back(n);
  }
  return tensorOf(call.dtype(0), shape);
}

// Source index of position i - begin for the modes that copy elements; bounces more than once when the pad is
// longer than the tensor.
Expr sourceIndex(const std::string& mode, const Expr& i, const Expr& n) {
  if (mode == "edge") return min(max(i, intImm(0)), n - 1);
  if (mode == "wrap") return floormod(i, n);
  Expr period = max((n - 1) * 2, intImm(1)), m = floormod(i, period);
  return select(m < n, m, period - m);
}

Expr padElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  std::string mode = call.s("mode");
  const Array<Expr>& pads = call.values(1);
  const te::Tensor& x = in[0];
  Array<Expr> index;
  Expr inside = boolImm(true);
  for (size_t d = 0; d < x.rank(); ++d) {
    const Expr &before = pads[d], &after = pads[x.rank() + d], &n = x.shape()[d];
    if (isConst(before, 0) && isConst(after, 0)) {
      index.push_back(i[d]);
      continue;
    }
    Expr k = Expr(i[d]) - before;
    if (mode == "constant") {
      inside = logicalAnd(inside, logicalAnd(k >= intImm(0), k < n));
      index.push_back(k);
    } else
      index.push_back(sourceIndex(mode, k, n));
  }
  if (isConst(inside, 1)) return x(index);
  Expr fill = call.has(2) ? in[2](call.rank(2) == 0 ? Array<Expr>{} : Array<Expr>{intImm(0)})
                          : constant(x.dtype(), 0);
  return ifThenElse(inside, x(index), fill);
}

// ---- where

Result<Type> whereInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireSameDType(call, 1, 3));
  BEVEL_TRY(Array<Expr> shape, broadcastShapes(call, context, call.shape(1), call.shape(2)));
  BEVEL_TRY(shape, broadcastShapes(call, context, call.shape(0), shape));
  return tensorOf(call.dtype(1), shape);
}
Expr whereElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  Array<Expr> shape = resultShape(call);
  auto element = [&](size_t k) { return readBroadcast(in[k], shape, i); };
  return select(element(0), element(1), element(2));
}

// ---- trilu, arange, eye

Result<Type> triluInfer(const OpCall& call, InferContext&) {
  if (call.values(1).size() != 1) return call.invalid("one diagonal is needed");
  return call.type(0);
}
Expr triluElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  size_t rank = i.size();
  Expr k = call.values(1)[0], distance = Expr(i[rank - 1]) - Expr(i[rank - 2]);
  return select(call.i("upper") ? distance >= k : distance <= k, in[0](exprs(i)), constant(in[0].dtype(), 0));
}

Result<Type> arangeInfer(const OpCall& call, InferContext&) {
  BEVEL_CHECK(requireSameDType(call, 0, 2));
  if (call.values(2).size() != 1) return call.invalid("scalars are expected");
  return tensorOf(call.dtype(0), call.values(2));
}
Expr arangeElement(const OpCall&, const TeTensors& in, const Array<Var>& i) {
  DType t = computeType(in[0].dtype());
  return castTo(in[0].dtype(), widen(in[0]({})) + castTo(t, i[0]) * widen(in[1]({})));
}

Result<Type> eyeInfer(const OpCall& call, InferContext&) {
  if (call.values(0).size() != 2) return call.invalid("two dimensions are needed");
  return tensorOf(call.dtypeAttr("dtype"), call.values(0));
}
Expr eyeElement(const OpCall& call, const TeTensors&, const Array<Var>& i) {
  DType t = call.dtypeAttr("dtype");
  return castTo(t, eq(Expr(i[0]) + intImm(call.i("k")), i[1]));
}

/// Operators that make a tensor by its indices.
void registerMakers(OpRegistry& r) {
  r.add({.name = "trilu",
         .doc = "The upper or lower triangle from diagonal k on; zeros elsewhere. ONNX Trilu.",
         .inputs = {OpInput("x").rank(2, 64), {"k", InputKind::kShape}},
         .attrs = {intAttr("upper", 1)},
         .infer = triluInfer,
         .compute = elements("trilu", triluElement),
         .tests = {"float32[3,4] shape(0)", "float32[2,4,3] shape(-1) upper=0", "float32[3,3] shape(9)"}});
  r.add({.name = "arange",
         .doc = "start + i * step for i below count. ONNX Range.",
         .inputs = {OpInput("start").of(Elements::kNumbers).rank(0),
                    OpInput("step").of(Elements::kNumbers).rank(0),
                    {"count", InputKind::kShape}},
         .infer = arangeInfer,
         .compute = elements("arange", arangeElement),
         .tests = {"int64[]:int9 int64[]:int9 shape(5)", "float32[] float32[] shape(0)"}});
  r.add({.name = "eye",
         .doc = "Ones on diagonal k, zeros elsewhere. ONNX EyeLike.",
         .inputs = {{"shape", InputKind::kShape}},
         .attrs = {intAttr("k", 0), dtypeAttr("dtype", kFloat32)},
         .infer = eyeInfer,
         .compute = elements("eye", eyeElement),
         .tests = {"shape(3,4) k=1", "shape(2,2) k=-1 dtype=int32"}});
}

} // namespace

void register_move(OpRegistry& r) {
  r.add({.name = "concat",
         .doc = "Tensors one after the other along an axis. ONNX Concat.",
         .inputs = {OpInput("tensors", InputKind::kVariadic).of(Elements::kAll)},
         .attrs = {intAttr("axis", 0)},
         .infer = concatInfer,
         .compute = concatCompute,
         .tests = {"float32[2,3] float32[2,1] axis=1", "int64[2]:int9 int64[0]:int9 int64[3]:int9",
                   "float32[2,2] axis=-1"}});
  r.add(
      {.name = "strided_slice",
       .doc = "x[begin:end:strides] on the named axes; negative bounds count from the end, then all are "
              "clamped. ONNX Slice.",
       .inputs = {OpInput("x").of(Elements::kAll),
                  {"begin", InputKind::kShape},
                  {"end", InputKind::kShape},
                  {"strides", InputKind::kOptionalShape}},
       .attrs = {intsAttr("axes")},
       .infer = sliceInfer,
       .compute = sliceCompute,
       .tests = {"float32[7,5] shape(1) shape(6) shape(2) axes=[0]",
                 "float32[7,5] shape(-1,0) shape(-9,3) shape(-2,1)", "float32[5] shape(4) shape(2) shape(1)",
                 "float32[5] shape(10) shape(-100) shape(-1)", "float32[5] shape(1) shape(4)"}});
  r.add({.name = "split",
         .doc = "Parts of a tensor along an axis, as a tuple: `sections` parts, of which the last may be "
                "shorter, or parts "
                "that begin at `indices`.",
         .inputs = {OpInput("x").of(Elements::kAll)},
         .attrs = {intAttr("sections", 0), intsAttr("indices"), intAttr("axis", 0)},
         .infer = splitInfer,
         .decompose = splitDecompose});
  r.add({.name = "tile",
         .doc = "The tensor repeated along each axis. ONNX Tile-6.",
         .inputs = {OpInput("x").of(Elements::kAll), {"repeats", InputKind::kShape}},
         .infer = tileInfer,
         .compute = elements("tile", tileElement),
         .tests = {"float32[2,3] shape(2,1)", "float32[2,3] shape(0,3)"}});
  r.add({.name = "flip",
         .doc = "Elements in reverse order along an axis.",
         .inputs = {OpInput("x").of(Elements::kAll)},
         .attrs = {intAttr("axis", 0)},
         .infer = axisInfer,
         .compute = elements("flip", flipElement),
         .tests = {"float32[3,5] axis=-1"}});
  r.add({.name = "nn.pad",
         .doc = "Elements added before and after (pads: all begins, then all ends; negative removes) by mode "
                "constant,\n"
                "reflect, edge or wrap. ONNX Pad.",
         .inputs = {"x", {"pads", InputKind::kShape}, OpInput("value", InputKind::kOptional).rank(0)},
         .attrs = {strAttr("mode", "constant")},
         .infer = padInfer,
         .compute = elements("pad", padElement),
         .tests = {"float32[3,4] shape(1,0,0,2)", "float32[3,4] shape(0,-1,2,3) float32[]",
                   "float32[1,4] shape(0,3,0,2) mode=reflect", "float32[5] shape(7,6) mode=reflect",
                   "float32[3] shape(2,4) mode=wrap", "float32[3] shape(2,4) mode=edge"}});
  r.add({.name = "where",
         .doc = "Element of x where the condition holds, else of y, with numpy broadcasting. ONNX Where.",
         .inputs = {OpInput("condition").of(Elements::kBools), OpInput("x").of(Elements::kAll),
                    OpInput("y").of(Elements::kAll)},
         .infer = whereInfer,
         .compute = elements("where", whereElement),
         .layout = LayoutKind::kAny,
         .onnx = {{"Where", 9}},
         .tests = {"bool[3,1] float32[4] float32[2,1,1]", "bool[] int32[2]:int9 int32[2]:int9"}});
  registerMakers(r);
}

} // namespace bevel::ops

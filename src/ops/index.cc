// Indexing by tensors: take, gather_elements, gather_nd, scatter_elements, scatter_nd, one_hot.
//
// Negative indices count from the end. An index out of range is refused where it is a constant. Of values of the
// run, compiled code never leaves the buffer: reads are clamped to the nearest element, which needs an axis that
// is not empty (checked before the kernel runs); updates are dropped.
#include "ops/common.h"

#include <algorithm>

namespace bevel::ops {

namespace {

// Indices [first, first + step, …] of an input lie in [-n, n) where they are constants.
Status requireInside(const OpCall& call, InferContext& context, size_t input, const Expr& n,
                     int64_t first = 0, int64_t step = 1) {
  const auto* c = call.args[input].as<ConstantNode>();
  if (!c) return {};
  int64_t low = 0, high = -1;
  for (int64_t k = first; k < c->value->size(); k += step) {
    low = std::min(low, c->value->asInt(k));
    high = std::max(high, c->value->asInt(k));
  }
  auto outside = [&](int64_t index) { return fmt::format("index {} is out of range", index); };
  if (high >= 0) BEVEL_CHECK(context.require(n > intImm(high), call, outside(high)));
  if (low < 0)
    BEVEL_CHECK(context.require(n >= intImm(low == INT64_MIN ? INT64_MAX : -low), call, outside(low)));
  return {};
}

// An axis of n elements is not empty where elements of a result of this shape are read from it.
Status requireElements(const OpCall& call, InferContext& context, const Expr& n, const Array<Expr>& result) {
  Expr fine = n > intImm(0);
  for (const Expr& d : result)
    if (auto c = asConst(d); !c || *c == 0) fine = logicalOr(fine, eq(d, intImm(0)));
  return context.require(fine, call, "an index into an empty axis");
}

// A valid position in [0, n): negative from the end, clamped.
Expr position(const Expr& raw, const Expr& n) {
  Expr i = castTo(kInt64, raw);
  if (!raw->dtype.isUInt()) i = select(i < intImm(0), i + n, i);
  return max(min(i, n - 1), intImm(0));
}

// ---- take

Result<Type> takeInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(size_t axis, checkedAxis(call));
  Array<Expr> shape = call.shape(0).slice(0, axis);
  shape.append(call.shape(1));
  shape.append(call.shape(0).slice(axis + 1, call.rank(0)));
  BEVEL_CHECK(requireInside(call, context, 1, call.shape(0)[axis]));
  BEVEL_CHECK(requireElements(call, context, call.shape(0)[axis], shape));
  return tensorOf(call.dtype(0), shape);
}

Expr takeElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  size_t a = axisOf(call), k = call.rank(1);
  Array<Expr> all = exprs(i), index = all.slice(0, a);
  index.push_back(position(in[1](all.slice(a, a + k)), in[0].shape()[a]));
  index.append(all.slice(a + k, all.size()));
  return in[0](index);
}

// ---- gather_elements

// Off the axis, indices lie over the first elements of x.
Status requireWithin(const OpCall& call, InferContext& context, size_t axis) {
  for (size_t d = 0; d < call.rank(1); ++d)
    if (d != axis)
      BEVEL_CHECK(context.require(call.shape(1)[d] <= call.shape(0)[d], call,
                                  fmt::format("the indices are longer than the data in dimension {}", d)));
  return {};
}

Result<Type> gatherElementsInfer(const OpCall& call, InferContext& context) {
  if (call.rank(0) != call.rank(1) || call.rank(0) == 0)
    return call.invalid("data and indices must have one rank, at least 1");
  BEVEL_TRY(size_t axis, checkedAxis(call));
  BEVEL_CHECK(requireWithin(call, context, axis));
  BEVEL_CHECK(requireInside(call, context, 1, call.shape(0)[axis]));
  BEVEL_CHECK(requireElements(call, context, call.shape(0)[axis], call.shape(1)));
  return tensorOf(call.dtype(0), call.shape(1));
}

Expr gatherElementsElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  size_t axis = axisOf(call);
  Array<Expr> index = exprs(i);
  index.set(axis, position(in[1](exprs(i)), in[0].shape()[axis]));
  return in[0](index);
}

// ---- gather_nd

Result<int64_t> tupleLength(const OpCall& call, size_t batch) {
  if (call.rank(1) == 0) return call.invalid("the indices are a scalar");
  auto n = asConst(call.shape(1).back());
  if (!n) return call.unsupported("the last dimension of the indices is symbolic");
  if (*n < 0 || batch + size_t(*n) > call.rank(0))
    return call.invalid(fmt::format("index tuples of {} for rank {}", *n, call.rank(0)));
  return *n;
}

Result<Type> gatherNdInfer(const OpCall& call, InferContext& context) {
  size_t batch = size_t(std::max<int64_t>(call.i("batch_dims"), 0));
  if (call.i("batch_dims") < 0 || batch >= std::max<size_t>(call.rank(1), 1) || batch > call.rank(0))
    return call.invalid("batch_dims is out of range");
  BEVEL_TRY(int64_t n, tupleLength(call, batch));
  Array<Expr> shape = call.shape(1).slice(0, call.rank(1) - 1);
  shape.append(call.shape(0).slice(batch + size_t(n), call.rank(0)));
  for (size_t d = 0; d < batch; ++d)
    BEVEL_CHECK(context.require(call.shape(1)[d] <= call.shape(0)[d], call, "batch dimensions differ"));
  for (int64_t t = 0; t < n; ++t) {
    BEVEL_CHECK(requireInside(call, context, 1, call.shape(0)[batch + size_t(t)], t, n));
    BEVEL_CHECK(requireElements(call, context, call.shape(0)[batch + size_t(t)], shape));
  }
  return tensorOf(call.dtype(0), shape);
}

Expr gatherNdElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  size_t batch = size_t(call.i("batch_dims")), k = call.rank(1) - 1;
  Array<Expr> all = exprs(i), index = all.slice(0, batch);
  for (int64_t t = 0; t < *tupleLength(call, batch); ++t) {
    Array<Expr> at = all.slice(0, k);
    at.push_back(intImm(t));
    index.push_back(position(in[1](at), in[0].shape()[batch + size_t(t)]));
  }
  index.append(all.slice(k, all.size()));
  return in[0](index);
}

// ---- scatter

Status checkReduction(const OpCall& call) {
  return requireOneOf(call, "reduction", {"none", "add", "mul", "max", "min"});
}

Expr combined(const std::string& r, const Expr& old, const Expr& update) {
  DType t = computeType(old->dtype);
  Expr a = castTo(t, old), b = castTo(t, update);
  if (old->dtype.isBool())
    return r == "mul" || r == "min" ? logicalAnd(old, update) : r == "none" ? update : logicalOr(old, update);
  return castTo(old->dtype, r == "add"   ? a + b
                            : r == "mul" ? a * b
                            : r == "max" ? max(a, b)
                            : r == "min" ? min(a, b)
                                         : b);
}

Result<Type> scatterElementsInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(checkReduction(call));
  if (call.rank(0) != call.rank(1) || call.rank(1) != call.rank(2) || call.rank(0) == 0)
    return call.invalid("ranks differ");
  if (call.dtype(0) != call.dtype(2)) return call.invalid("data and updates have different dtypes");
  for (size_t d = 0; d < call.rank(1); ++d)
    BEVEL_CHECK(context.require(eq(call.shape(1)[d], call.shape(2)[d]), call,
                                "indices and updates have different shapes"));
  BEVEL_TRY(size_t axis, checkedAxis(call));
  BEVEL_CHECK(requireWithin(call, context, axis));
  BEVEL_CHECK(requireInside(call, context, 1, call.shape(0)[axis]));
  return call.type(0);
}

// A copy, then the updates in order; one statement, because updates may meet.
Result<TeTensors> scatterProgram(const te::Tensor& data, const te::Tensor& indices, const te::Tensor& updates,
                                 const std::string& name, FunctionRef<Array<Expr>(const Array<Expr>&)> target,
                                 const std::string& reduction) {
  Buffer out = buffer(name, data.dtype(), data.shape());
  Stmt copy = loopNest(data.shape(), [&](const std::vector<Var>& loops) {
    Array<Expr> i(loops.begin(), loops.end());
    return store(out, data(i), i);
  });
  auto updateAt = [&](const std::vector<Var>& loops) {
    Array<Expr> u(loops.begin(), loops.end());
    Array<Expr> at = target(u);
    Expr inside = boolImm(true);
    for (size_t d = 0; d < at.size(); ++d)
      if (!at[d].is<VarNode>())
        inside = logicalAnd(inside, logicalAnd(at[d] >= intImm(0), at[d] < data.shape()[d]));
    Stmt put = store(out, combined(reduction, load(out, at), updates(u)), at);
    return Stmt(make<const IfNode>(inside, put));
  };
  return te::externOp({out}, {data, indices, updates}, name,
                      seq({copy, loopNest(updates.shape(), updateAt, "u")}));
}

Expr fromEnd(const Expr& raw, const Expr& n) {
  Expr i = castTo(kInt64, raw);
  return select(i < intImm(0), i + n, i);
}

Result<TeTensors> scatterElementsCompute(const OpCall& call, const TeTensors& in) {
  size_t axis = axisOf(call);
  auto target = [&](const Array<Expr>& u) {
    Array<Expr> at = u;
    at.set(axis, fromEnd(in[1](u), in[0].shape()[axis]));
    return at;
  };
  return scatterProgram(in[0], in[1], in[2], "scatter_elements", target, call.s("reduction"));
}

Result<Type> scatterNdInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(checkReduction(call));
  if (call.dtype(0) != call.dtype(2)) return call.invalid("data and updates have different dtypes");
  BEVEL_TRY(int64_t n, tupleLength(call, 0));
  Array<Expr> expected = call.shape(1).slice(0, call.rank(1) - 1);
  expected.append(call.shape(0).slice(size_t(n), call.rank(0)));
  if (expected.size() != call.rank(2))
    return call.invalid("the updates have another rank than the indices ask for");
  for (size_t d = 0; d < expected.size(); ++d)
    BEVEL_CHECK(context.require(eq(expected[d], call.shape(2)[d]), call,
                                "the updates have another shape than the indices ask for"));
  for (int64_t t = 0; t < n; ++t)
    BEVEL_CHECK(requireInside(call, context, 1, call.shape(0)[size_t(t)], t, n));
  return call.type(0);
}

Result<TeTensors> scatterNdCompute(const OpCall& call, const TeTensors& in) {
  BEVEL_TRY(int64_t n, tupleLength(call, 0));
  size_t k = call.rank(1) - 1;
  auto target = [&](const Array<Expr>& u) {
    Array<Expr> at;
    for (int64_t t = 0; t < n; ++t) {
      Array<Expr> index = u.slice(0, k);
      index.push_back(intImm(t));
      at.push_back(fromEnd(in[1](index), in[0].shape()[size_t(t)]));
    }
    at.append(u.slice(k, u.size()));
    return at;
  };
  return scatterProgram(in[0], in[1], in[2], "scatter_nd", target, call.s("reduction"));
}

// ---- one_hot

Result<Type> oneHotInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(size_t axis, checkedAxis(call, 1));
  if (call.values(2).size() != 1) return call.invalid("one depth is expected");
  BEVEL_CHECK(context.require(eq(call.shape(1)[0], intImm(2)), call, "two values [off, on] are expected"));
  return tensorOf(call.dtype(1), inserted(call.shape(0), {int64_t(axis)}, call.values(2)));
}

Expr oneHotElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  size_t axis = axisOf(call, 1);
  Expr hot = fromEnd(in[0](without(exprs(i), {int64_t(axis)})), call.values(2)[0]);
  return select(eq(hot, i[axis]), in[1]({intImm(1)}), in[1]({intImm(0)}));
}

} // namespace

void register_index(OpRegistry& r) {
  r.add({.name = "take",
         .doc = "Slices of x along an axis, by index. ONNX Gather.",
         .inputs = {OpInput("x").of(Elements::kAll), OpInput("indices").of(Elements::kInts)},
         .attrs = {intAttr("axis", 0)},
         .infer = takeInfer,
         .compute = elements("take", takeElement),
         .onnx = {{"Gather"}},
         .tests = {"float32[5,3] int64[2,2]:idx5", "float32[2,5,3] int32[]:idx5 axis=1",
                   "float32[5] int64[0]:idx5"}});
  r.add({.name = "gather_elements",
         .doc = "Element by element along an axis. ONNX GatherElements.",
         .inputs = {OpInput("x").of(Elements::kAll), OpInput("indices").of(Elements::kInts)},
         .attrs = {intAttr("axis", 0)},
         .infer = gatherElementsInfer,
         .compute = elements("gather_elements", gatherElementsElement),
         .onnx = {{"GatherElements", 11}},
         .tests = {"float32[3,5] int64[3,4]:idx5 axis=1"}});
  r.add({.name = "gather_nd",
         .doc = "Slices by index tuples. ONNX GatherND.",
         .inputs = {OpInput("x").of(Elements::kAll), OpInput("indices").of(Elements::kInts)},
         .attrs = {intAttr("batch_dims", 0)},
         .infer = gatherNdInfer,
         .compute = elements("gather_nd", gatherNdElement),
         .onnx = {{"GatherND", 11}},
         .tests = {"float32[5,5,2] int64[3,2]:idx5", "float32[2,5,3] int64[2,4,1]:idx5 batch_dims=1"}});
  r.add({.name = "scatter_elements",
         .doc = "A copy of x with elements updated along an axis. ONNX ScatterElements.",
         .inputs = {OpInput("x").of(Elements::kAll), OpInput("indices").of(Elements::kInts),
                    OpInput("updates").of(Elements::kAll)},
         .attrs = {intAttr("axis", 0), strAttr("reduction", "none")},
         .infer = scatterElementsInfer,
         .compute = scatterElementsCompute,
         .onnx = {{"ScatterElements", 11}, {"Scatter", 9}},
         .tests = {"float32[5,3] int64[2,3]:idx5 float32[2,3] reduction=add",
                   "float32[2,5] int64[2,1]:idx5 float32[2,1] axis=1"}});
  r.add({.name = "scatter_nd",
         .doc = "A copy of x with slices updated by index tuples. ONNX ScatterND.",
         .inputs = {OpInput("x").of(Elements::kAll), OpInput("indices").of(Elements::kInts),
                    OpInput("updates").of(Elements::kAll)},
         .attrs = {strAttr("reduction", "none")},
         .infer = scatterNdInfer,
         .compute = scatterNdCompute,
         .onnx = {{"ScatterND", 11}},
         .tests = {"float32[5,3] int64[2,1]:idx5 float32[2,3]",
                   "float32[5,5] int64[4,2]:idx5 float32[4] reduction=max"}});
  r.add({.name = "one_hot",
         .doc = "values[1] where the position on the new axis is the index, else values[0]. ONNX OneHot.",
         .inputs = {OpInput("indices").of(Elements::kNumbers),
                    OpInput("values").of(Elements::kAll).rank(1),
                    {"depth", InputKind::kShape}},
         .attrs = {intAttr("axis", -1)},
         .infer = oneHotInfer,
         .compute = elements("one_hot", oneHotElement),
         .tests = {"int64[4]:idx5 float32[2] shape(5)", "int32[2,3]:idx5 int32[2]:int9 shape(4) axis=0"}});
}

} // namespace bevel::ops

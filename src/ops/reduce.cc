// Reductions over axes: sum, prod, max, min, mean, all, any, argmax, argmin, cumsum.
//
// Half and bfloat16 accumulate in fp32. An empty domain gives the identity (sum 0, prod 1, max -inf or the
// smallest integer); the mean of nothing is NaN, and argmax of nothing is refused.
#include "ops/common.h"

namespace bevel::ops {

namespace {

enum class Kind { kSum, kProd, kMax, kMin, kMean, kAll, kAny };

Result<Ints> reducedAxes(const OpCall& call) {
  if (call.hasAttr("axis")) return normalizeAxes(call, call.ints("axis"), call.rank(0));
  Ints axes;
  for (size_t i = 0; i < call.rank(0); ++i) axes.push_back(int64_t(i));
  return axes;
}

Array<Expr> reducedShape(const Array<Expr>& shape, const Ints& axes, bool keep) {
  Array<Expr> kept = without(shape, axes);
  return keep ? inserted(kept, axes, dims(Ints(axes.size(), 1))) : kept;
}

Result<Type> reduceInfer(const OpCall& call, InferContext&) {
  BEVEL_TRY(Ints axes, reducedAxes(call));
  return tensorOf(call.dtype(0), reducedShape(call.shape(0), axes, call.i("keepdims") != 0));
}

// Index of the source at a result position and reduction variables.
Array<Expr> sourceIndex(const Ints& axes, bool keep, const Array<Var>& i, const Array<IterVar>& reduce) {
  Array<Expr> vars;
  for (const IterVar& k : reduce) vars.push_back(k->var);
  return inserted(keep ? without(exprs(i), axes) : exprs(i), axes, vars);
}

// The largest of bools is true when any is, the smallest when all are.
Expr reduction(Kind k, const Expr& x, const Array<IterVar>& axes) {
  if (x->dtype.isBool()) return k == Kind::kMax || k == Kind::kAny ? te::any(x, axes) : te::all(x, axes);
  switch (k) {
  case Kind::kSum:
  case Kind::kMean:
    return te::sum(x, axes);
  case Kind::kProd:
    return te::prod(x, axes);
  case Kind::kMax:
    return te::max(x, axes);
  case Kind::kMin:
    return te::min(x, axes);
  case Kind::kAll:
    return te::all(x, axes);
  case Kind::kAny:
    return te::any(x, axes);
  }
  return x;
}

// The mean divides the sum of `n` elements; what accumulated in a wider type is rounded.
TeTensors finished(Kind k, const OpCall& call, const te::Tensor& total, const Expr& n) {
  bool mean = k == Kind::kMean;
  if (!mean && total.dtype() == call.dtype(0)) return {total};
  return {mapTensor(
      total, call.op.name + "_of", [&](Expr e) { return mean ? fdiv(e, castTo(e->dtype, n)) : e; },
      call.dtype(0))};
}

Result<TeTensors> reduceCompute(Kind k, const OpCall& call, const TeTensors& in) {
  BEVEL_TRY(Ints axes, reducedAxes(call));
  const te::Tensor& x = in[0];
  bool keep = call.i("keepdims") != 0;
  Array<Expr> shape = reducedShape(x.shape(), axes, keep);
  if (axes.empty()) return TeTensors{mapTensor(x, call.op.name, [](Expr e) { return e; })};
  DType acc = computeType(x.dtype());
  te::Tensor total = te::compute(shape, call.op.name, [&](const Array<Var>& i) {
    Array<IterVar> reduce;
    for (int64_t a : axes) reduce.push_back(te::reduceAxis(x.shape()[size_t(a)], fmt::format("k{}", a)));
    return reduction(k, castTo(acc, x(sourceIndex(axes, keep, i, reduce))), reduce);
  });
  Expr n = intImm(1);
  for (int64_t a : axes) n = n * x.shape()[size_t(a)];
  return finished(k, call, total, n);
}

// ---- axes that only the run knows: sum_at and the like

// Of each axis, `kept` indices of the result with `reduced` elements each; one of the two is 1.
Result<Type> reduceAtInfer(const OpCall& call, InferContext& context) {
  const Array<Expr>&x = call.shape(0), &kept = call.values(1), &reduced = call.values(2);
  if (kept.size() != x.size() || reduced.size() != x.size())
    return call.invalid("as many extents as dimensions are expected");
  for (size_t d = 0; d < x.size(); ++d) {
    Expr fits = logicalAnd(eq(kept[d] * reduced[d], x[d]),
                           logicalOr(eq(kept[d], intImm(1)), eq(reduced[d], intImm(1))));
    BEVEL_CHECK(context.require(fits, call, "the extents do not fit the dimension"));
  }
  return tensorOf(call.dtype(0), kept);
}

Result<TeTensors> reduceAtCompute(Kind k, const OpCall& call, const TeTensors& in) {
  const te::Tensor& x = in[0];
  const Array<Expr>& reduced = call.values(2);
  DType acc = computeType(x.dtype());
  te::Tensor total = te::compute(call.values(1), call.op.name, [&](const Array<Var>& i) {
    Array<IterVar> reduce;
    Array<Expr> index;
    for (size_t d = 0; d < i.size(); ++d) {
      reduce.push_back(te::reduceAxis(reduced[d], fmt::format("k{}", d)));
      index.push_back(Expr(i[d]) + Expr(reduce.back()->var));
    }
    return reduction(k, castTo(acc, x(index)), reduce);
  });
  Expr n = intImm(1);
  for (const Expr& extent : reduced) n = n * extent;
  return finished(k, call, total, n);
}

// ---- argmax, argmin

Result<Type> argInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  BEVEL_CHECK(context.require(call.shape(0)[size_t(axis)] > intImm(0), call, "the axis is empty"));
  return tensorOf(kInt64, reducedShape(call.shape(0), {axis}, call.i("keepdims") != 0));
}

Result<TeTensors> argCompute(bool largest, const OpCall& call, const TeTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  bool keep = call.i("keepdims") != 0, last = call.i("select_last_index") != 0;
  const te::Tensor& x = in[0];
  DType t = x.dtype().isBool() ? DType::UInt(8) : computeType(x.dtype());
  Combiner c = argCombiner(t, largest, last);
  auto both = te::computeMany(reducedShape(x.shape(), {axis}, keep), call.op.name, [&](const Array<Var>& i) {
    IterVar k = te::reduceAxis(x.shape()[size_t(axis)], "k");
    Expr value = castTo(t, x(sourceIndex({axis}, keep, i, {k})));
    Array<Expr> source = {castTo(kInt64, k->var), value};
    return Array<Expr>{te::reduce(c, source, {k}, 0), te::reduce(c, source, {k}, 1)};
  });
  return TeTensors{both[0]};
}

// ---- cumsum

// One hand-written loop along the axis.
Result<TeTensors> cumCompute(bool product, const OpCall& call, const TeTensors& in) {
  size_t a = axisOf(call);
  bool exclusive = call.i("exclusive") != 0, reverse = call.i("reverse") != 0;
  const te::Tensor& x = in[0];
  DType acc = computeType(x.dtype());
  Buffer out = buffer(call.op.name, x.dtype(), x.shape()), running = buffer("running", acc, {intImm(1)});
  Array<Expr> zero = {intImm(0)};
  Stmt body = loopNest(
      x.shape(),
      [&](const std::vector<Var>& loops) {
        Array<Expr> index(loops.begin(), loops.end());
        Expr n = x.shape()[a];
        if (reverse) index.set(a, n - 1 - Expr(loops[a]));
        Expr state = load(running, zero), value = castTo(acc, x(index));
        Stmt add = store(running, product ? state * value : state + value, zero);
        Stmt put = store(out, castTo(x.dtype(), load(running, zero)), index);
        Stmt along = forLoop(loops[a], n, exclusive ? seq({put, add}) : seq({add, put}));
        Stmt start = store(running, constant(acc, product ? 1 : 0), zero);
        return Stmt(make<const AllocNode>(running, seq({start, along})));
      },
      "i", a);
  return te::externOp({out}, {x}, call.op.name, body);
}

} // namespace

void register_reduce(OpRegistry& r) {
  struct Row {
    Kind kind;
    std::string name;
    const char* doc;
    std::vector<std::string> tests;
  };
  const std::vector<Row> rows = {
      {Kind::kSum,
       "sum",
       "Sum. ONNX ReduceSum",
       {"float32[2,3,4]", "float32[2,3,4] axis=[1,-1] keepdims=1", "float32[2,0,4] axis=[1]", "int32[5]:int9",
        "float32[] keepdims=1", "float32[2,3] axis=[]"}},
      {Kind::kProd, "prod", "Product. ONNX ReduceProd", {"float32[2,3] axis=[0]", "int64[0]:int9"}},
      {Kind::kMax,
       "max",
       "Largest; NaN wins. ONNX ReduceMax",
       {"float32[2,3,4] axis=[2]", "float32[9]:special", "uint8[5]:int9", "float32[0]", "bool[4]",
        "bool[2,0] axis=[1]"}},
      {Kind::kMin, "min", "Smallest; NaN wins. ONNX ReduceMin", {"float32[2,3,4] axis=[2]", "int8[7]:int9"}},
      {Kind::kMean,
       "mean",
       "Arithmetic mean. ONNX ReduceMean",
       {"float32[2,3,4] axis=[1] keepdims=1", "float16[2,64] axis=[1]"}},
      {Kind::kAll, "all", "Whether all hold.", {"bool[2,3] axis=[1]"}},
      {Kind::kAny, "any", "Whether any holds.", {"bool[2,3] axis=[1]"}}};
  for (const Row& row : rows) {
    Kind k = row.kind;
    bool logic = k == Kind::kAll || k == Kind::kAny, order = k == Kind::kMax || k == Kind::kMin;
    OpInput x = OpInput("x").of(logic ? Elements::kBools : order ? Elements::kPlain : Elements::kNumbers);
    r.add({.name = row.name,
           .doc = fmt::format("{}, over the axes named (all by default).", row.doc),
           .inputs = {x},
           .attrs = {intsAttr("axis"), intAttr("keepdims", 0)},
           .infer = reduceInfer,
           .compute = std::bind_front(reduceCompute, k),
           .tests = row.tests});
    if (k > Kind::kMean) continue;
    r.add(
        {.name = row.name + "_at",
         .doc =
             "The reduction of that name over axes that only the run knows: of each axis, either all is kept "
             "(reduced is 1) or all is reduced (kept is 1). ONNX Reduce*-18 with computed axes.",
         .inputs = {x, {"kept", InputKind::kShape}, {"reduced", InputKind::kShape}},
         .infer = reduceAtInfer,
         .compute = std::bind_front(reduceAtCompute, k),
         .tests = {"float32[2,3,4] shape(2,1,4) shape(1,3,1)", "float32[2,3,4] shape(1,3,1) shape(2,1,4)",
                   "int32[2,3] shape(2,3) shape(1,1)"}});
  }
  for (bool largest : {true, false}) {
    const char* onnx = largest ? "ArgMax" : "ArgMin";
    r.add({.name = largest ? "argmax" : "argmin",
           .doc = fmt::format("Index of the {} element; NaN wins. ONNX {}", largest ? "largest" : "smallest",
                              onnx),
           .inputs = {"x"},
           .attrs = {intAttr("axis", 0), intAttr("keepdims", 1), intAttr("select_last_index", 0)},
           .infer = argInfer,
           .compute = std::bind_front(argCompute, largest),
           .onnx = {{onnx}},
           .tests = {"float32[3,5] axis=1", "float32[9]:special keepdims=0",
                     "int32[7]:idx5 select_last_index=1"}});
  }
  for (bool product : {false, true})
    r.add({.name = product ? "cumprod" : "cumsum",
           .doc = "Running sum or product along an axis. ONNX CumSum.",
           .inputs = {OpInput("x").of(Elements::kNumbers)},
           .attrs = {intAttr("axis", 0), intAttr("exclusive", 0), intAttr("reverse", 0)},
           .infer = axisInfer,
           .compute = std::bind_front(cumCompute, product),
           .tests = {"float32[3,4] axis=1", "int32[5]:int9 exclusive=1 reverse=1", "float32[0,2]"}});
}

} // namespace bevel::ops

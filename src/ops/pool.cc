// Pooling over windows of one to three (or any number of) spatial dimensions, channels first, or last with
// data_layout "NHWC" (chosen by select/layout).
//
// ceil_mode: a last window that starts in the padding behind the input is dropped (ONNX 19 and later).
// Averages divide by the number of cells inside the input, or inside input and padding with
// count_include_pad; never by cells beyond.
#include "ops/common.h"

namespace bevel::ops {

namespace {

Result<Window> poolWindow(const OpCall& call) {
  size_t n = call.ints("kernel").size();
  if (call.rank(0) != n + 2 || n == 0)
    return call.invalid(fmt::format("a kernel of {} dimensions for rank {}", n, call.rank(0)));
  BEVEL_TRY(Window w, windowOf(call, call.ints("kernel")));
  for (size_t d = 0; d < n; ++d) {
    if (w.before[d] < 0 || w.after[d] < 0) return call.invalid("the padding is negative");
    if (w.before[d] >= w.span(d) || w.after[d] >= w.span(d)) // a window would lie in the padding alone
      return call.invalid("the padding is as long as the kernel");
  }
  return w;
}

Result<Array<Expr>> pooledShape(const OpCall& call, Analyzer& an, const Window& w) {
  Array<Expr> shape = call.shape(0);
  for (size_t d = 0; d < w.rank(); ++d) {
    int64_t s = w.strides[d];
    Expr in = shape[w.spatial + d], room = in + (w.before[d] + w.after[d] - w.span(d));
    bool up = call.i("ceil_mode") != 0;
    Expr n = floordiv(up ? room + (s - 1) : room, s) + 1;
    // Drop a last window that would start behind the input and its front padding.
    if (up) n = n - castTo(kInt64, (n - 1) * s >= in + intImm(w.before[d]));
    shape.set(w.spatial + d, an.simplify(n));
  }
  return shape;
}

Result<Type> poolInfer(bool indices, const OpCall& call, InferContext& context) {
  BEVEL_TRY(Window w, poolWindow(call));
  BEVEL_TRY(Array<Expr> shape, pooledShape(call, context.analyzer, w));
  for (size_t d = 0; d < w.rank(); ++d)
    BEVEL_CHECK(context.require(shape[w.spatial + d] > intImm(0), call,
                                "the window is larger than the padded input"));
  Type value = tensorOf(call.dtype(0), shape);
  return indices ? tupleOf({value, tensorOf(kInt64, shape)}) : value;
}

// Positions of a window and whether they lie inside the input.
struct Taps {
  Array<IterVar> axes;
  Array<Expr> index;
  Expr inside = boolImm(true);
};

Taps tapsOf(const te::Tensor& x, const Window& w, const Array<Var>& i) {
  Taps t;
  t.index = exprs(i);
  for (size_t d = 0; d < w.rank(); ++d) {
    t.axes.push_back(te::reduceAxis(intImm(w.kernel[d]), fmt::format("k{}", d)));
    Expr p = Expr(i[w.spatial + d]) * w.strides[d] + Expr(t.axes.back()->var) * w.dilation[d] -
             intImm(w.before[d]);
    t.index.set(w.spatial + d, p);
    // With floor rounding every window ends inside the padded input.
    t.inside = logicalAnd(t.inside, logicalAnd(p >= intImm(0), p < x.shape()[w.spatial + d]));
  }
  return t;
}

bool neverOutside(const OpCall& call, const Window& w) {
  return !w.isPadded() && call.i("ceil_mode") == 0;
}

Result<TeTensors> maxPoolCompute(const OpCall& call, const TeTensors& in) {
  BEVEL_TRY(Window w, poolWindow(call));
  const te::Tensor& x = in[0];
  bool plain = neverOutside(call, w);
  return TeTensors{te::compute(resultShape(call), "max_pool", [&](const Array<Var>& i) {
    Taps t = tapsOf(x, w, i);
    Expr e = plain ? x(t.index) : ifThenElse(t.inside, x(t.index), te::lowest(x.dtype()));
    return te::max(e, t.axes);
  })};
}

Result<TeTensors> avgPoolCompute(const OpCall& call, const TeTensors& in) {
  BEVEL_TRY(Window w, poolWindow(call));
  const te::Tensor& x = in[0];
  DType acc = computeType(x.dtype());
  bool plain = neverOutside(call, w), include = call.i("count_include_pad") != 0;
  te::Tensor total = te::compute(resultShape(call), "avg_pool_sum", [&](const Array<Var>& i) {
    Taps t = tapsOf(x, w, i);
    Expr e = castTo(acc, plain ? x(t.index) : ifThenElse(t.inside, x(t.index), constant(x.dtype(), 0)));
    return te::sum(e, t.axes);
  });
  auto ceilDiv = [](const Expr& a, int64_t b) { return b == 1 ? a : floordiv(a + intImm(b - 1), b); };
  return TeTensors{te::compute(total.shape(), "avg_pool", [&](const Array<Var>& i) {
    Expr n = intImm(1);
    for (size_t d = 0; d < w.rank(); ++d) {
      if (plain) {
        n = n * intImm(w.kernel[d]);
        continue;
      }
      Expr start = Expr(i[w.spatial + d]) * w.strides[d] - intImm(w.before[d]);
      Expr low = intImm(include ? -w.before[d] : 0),
           high = include ? x.shape()[w.spatial + d] + intImm(w.after[d]) : x.shape()[w.spatial + d];
      Expr last = min(ceilDiv(high - start, w.dilation[d]), intImm(w.kernel[d])),
           first = max(ceilDiv(low - start, w.dilation[d]), intImm(0));
      n = n * max(last - first, intImm(0));
    }
    return castTo(x.dtype(), fdiv(total(exprs(i)), castTo(acc, n)));
  })};
}

// Flat index of a window's largest element: row-major, or column-major over the spatial dimensions.
Expr flatIndex(const te::Tensor& x, const Array<Expr>& index, bool columnMajor) {
  Expr at = index[0] * x.shape()[1] + index[1], area = intImm(1), inner = intImm(0);
  size_t n = x.rank() - 2;
  for (size_t d = 0; d < n; ++d) area = area * x.shape()[d + 2];
  for (size_t d = 0; d < n; ++d) {
    size_t k = columnMajor ? n - 1 - d : d;
    inner = inner * x.shape()[k + 2] + index[k + 2];
  }
  return at * area + inner;
}

Result<TeTensors> maxIndicesCompute(const OpCall& call, const TeTensors& in) {
  BEVEL_TRY(Window w, poolWindow(call));
  const te::Tensor& x = in[0];
  Combiner c = argCombiner(x.dtype(), true, false);
  auto both = te::computeMany(resultShape(call), "max_pool", [&](const Array<Var>& i) {
    Taps t = tapsOf(x, w, i);
    Expr value = ifThenElse(t.inside, x(t.index), te::lowest(x.dtype()));
    Expr at = select(t.inside, flatIndex(x, t.index, call.i("storage_order") != 0), intImm(INT64_MAX));
    return Array<Expr>{te::reduce(c, {at, value}, t.axes, 0), te::reduce(c, {at, value}, t.axes, 1)};
  });
  return TeTensors{both[1], both[0]};
}

} // namespace

void register_pool(OpRegistry& r) {
  std::vector<OpAttr> attrs = {required(intsAttr("kernel")), intsAttr("strides"), intsAttr("dilation"),
                               intsAttr("padding", "begins, then ends"), intAttr("ceil_mode", 0)};
  std::vector<OpAttr> average = attrs, indexed = attrs;
  for (auto* list : {&attrs, &average})
    list->push_back(strAttr("data_layout", "NCHW", "NHWC: channels last, whatever the number of dimensions"));
  r.add({.name = "nn.max_pool",
         .doc = "Largest element of each window. ONNX MaxPool.",
         .inputs = {OpInput("x").of(Elements::kNumbers).rank(3, 64)},
         .attrs = attrs,
         .infer = std::bind_front(poolInfer, false),
         .compute = maxPoolCompute,
         .layout = LayoutKind::kContraction,
         .tests = {"float32[1,2,7,8] kernel=[3,2] strides=[2,2] padding=[1,0,1,1]",
                   "float32[2,7,8,3] kernel=[3,2] strides=[2,2] padding=[1,0,1,1] data_layout=NHWC",
                   "float32[1,2,9] kernel=[2] strides=[2] ceil_mode=1",
                   "uint8[1,1,5,5]:int9 kernel=[3,3] dilation=[2,1]"}});
  average.push_back(intAttr("count_include_pad", 0));
  r.add({.name = "nn.avg_pool",
         .doc = "Mean of each window. ONNX AveragePool.",
         .inputs = {OpInput("x").of(Elements::kFloats).rank(3, 64)},
         .attrs = average,
         .infer = std::bind_front(poolInfer, false),
         .compute = avgPoolCompute,
         .layout = LayoutKind::kContraction,
         .tests = {"float32[1,1,17,17] kernel=[2,2] strides=[2,2] padding=[1,1,1,1] ceil_mode=1",
                   "float32[1,1,12] kernel=[7] strides=[3] padding=[0,3] ceil_mode=1 count_include_pad=1",
                   "float32[1,2,6,6] kernel=[3,3] dilation=[2,2] padding=[1,1,0,0]",
                   "float32[1,6,5,3] kernel=[3,3] strides=[2,1] padding=[1,1,0,0] ceil_mode=1 "
                   "count_include_pad=1 data_layout=NHWC"}});
  indexed.push_back(intAttr("storage_order", 0));
  r.add({.name = "nn.max_pool_with_indices",
         .doc = "Largest element of each window and its flat index in the input. ONNX MaxPool with Indices.",
         .inputs = {OpInput("x").of(Elements::kNumbers).rank(3, 64)},
         .attrs = indexed,
         .infer = std::bind_front(poolInfer, true),
         .compute = maxIndicesCompute,
         .tests = {"float32[1,2,5,5] kernel=[2,2] strides=[2,2] padding=[1,1,1,1]",
                   "float32[1,1,3,9]:special kernel=[2,2]"}});
}

} // namespace bevel::ops

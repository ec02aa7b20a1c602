// Convolutions and transposed convolutions of one to three spatial dimensions, channels first, or last with
// data_layout "NHWC" (chosen by select/layout).
//
// Padding is a stage of its own, so that schedules see a plain contraction; half accumulates in fp32, 8-bit
// in int32.
#include "ops/common.h"

namespace bevel::ops {

namespace {

// A weight of one input channel a group, output channels last: [kernel…, O].
bool outputsLast(const OpCall& call) {
  return call.s("kernel_layout") == "HWO";
}

Result<Window> convWindow(const OpCall& call) {
  size_t n = call.rank(0) - 2; // as the operator declares it
  bool hwo = outputsLast(call);
  if (call.hasAttr("kernel_layout")) BEVEL_CHECK(requireOneOf(call, "kernel_layout", {"OIHW", "HWO"}));
  if (call.rank(1) != n + (hwo ? 1 : 2)) return call.invalid("the weight's rank does not fit its layout");
  Ints kernel;
  for (size_t d = 0; d < n; ++d) {
    auto k = asConst(call.shape(1)[hwo ? d : d + 2]);
    if (!k) return call.unsupported("a symbolic kernel size");
    kernel.push_back(*k);
  }
  return windowOf(call, kernel);
}

DType resultOf(const OpCall& call) {
  DType t = call.dtypeAttr("out_dtype");
  return t.isVoid() ? call.dtype(0) : t;
}
// Windows that fit: floor((n + pads - span) / stride) + 1.
Expr outputExtent(Analyzer& an, const Expr& n, const Window& w, size_t d) {
  return an.simplify(floordiv(n + (w.before[d] + w.after[d] - w.span(d)), w.strides[d]) + 1);
}

Result<Type> convInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(Window w, convWindow(call));
  const Array<Expr>&x = call.shape(0), &k = call.shape(1);
  int64_t groups = call.i("groups");
  auto outputs = asConst(outputsLast(call) ? k.back() : k[0]),
       perGroup = outputsLast(call) ? std::optional<int64_t>(1) : asConst(k[1]);
  if (!outputs || !perGroup) return call.unsupported("a symbolic number of channels");
  if (groups < 1 || *outputs % groups != 0)
    return call.invalid("the output channels do not divide into the groups");
  int64_t channels = 0;
  if (__builtin_mul_overflow(*perGroup, groups, &channels)) return call.invalid("too many channels");
  BEVEL_CHECK(context.require(eq(x[w.channel], intImm(channels)), call,
                              fmt::format("the input does not have {} channels", channels)));
  if (call.dtypeAttr("out_dtype").isVoid()) BEVEL_CHECK(requireSameDType(call, 0, 2));
  Array<Expr> shape = x;
  shape.set(w.channel, intImm(*outputs));
  for (size_t d = 0; d < w.rank(); ++d) {
    Expr n = outputExtent(context.analyzer, x[w.spatial + d], w, d);
    BEVEL_CHECK(context.require(n > intImm(0), call, "the kernel is larger than the padded input"));
    shape.set(w.spatial + d, n);
  }
  return tensorOf(resultOf(call), shape);
}

// The input with zeros around its spatial dimensions, or the input itself.
te::Tensor padded(const te::Tensor& x, const Window& w) {
  if (!w.isPadded()) return x;
  size_t first = w.spatial;
  Array<Expr> shape = x.shape();
  for (size_t d = 0; d < w.rank(); ++d)
    shape.set(first + d, x.shape()[first + d] + (w.before[d] + w.after[d]));
  return te::compute(shape, "pad", [&](const Array<Var>& i) {
    Array<Expr> index = exprs(i);
    Expr inside = boolImm(true);
    for (size_t d = 0; d < w.rank(); ++d) {
      if (w.before[d] == 0 && w.after[d] == 0) continue;
      Expr k = Expr(i[first + d]) - intImm(w.before[d]);
      index.set(first + d, k);
      inside = logicalAnd(inside, logicalAnd(k >= intImm(0), k < x.shape()[first + d]));
    }
    return ifThenElse(inside, x(index), constant(x.dtype(), 0));
  });
}

Result<TeTensors> convCompute(const OpCall& call, const TeTensors& in) {
  BEVEL_TRY(Window w, convWindow(call));
  DType out = resultOf(call), acc = accumulatorOf(in[0].dtype(), out);
  bool hwo = outputsLast(call);
  int64_t groups = call.i("groups"), perIn = hwo ? 1 : *asConst(in[1].shape()[1]);
  int64_t perOut = *asConst(hwo ? in[1].shape().back() : in[1].shape()[0]) / groups;
  te::Tensor x = padded(in[0], w);
  te::Tensor y = te::compute(resultShape(call), "conv", [&](const Array<Var>& i) {
    Array<IterVar> axes;
    const Var& oc = i[w.channel];
    Expr ic = intImm(0), channel = intImm(0);
    if (perIn > 1) {
      axes.push_back(te::reduceAxis(intImm(perIn), "ic"));
      ic = axes[0]->var;
    }
    if (groups > 1) channel = (perOut == 1 ? Expr(oc) : floordiv(oc, perOut)) * perIn;
    Array<Expr> source = exprs(i), weight = hwo ? Array<Expr>{} : Array<Expr>{oc, ic};
    source.set(w.channel, channel + ic);
    for (size_t d = 0; d < w.rank(); ++d) {
      axes.push_back(te::reduceAxis(intImm(w.kernel[d]), fmt::format("k{}", d)));
      source.set(w.spatial + d,
                 Expr(i[w.spatial + d]) * w.strides[d] + Expr(axes.back()->var) * w.dilation[d]);
      weight.push_back(axes.back()->var);
    }
    if (hwo) weight.push_back(oc);
    return te::sum(castTo(acc, x(source)) * castTo(acc, in[1](weight)), axes);
  });
  return TeTensors{acc == out ? y : mapTensor(y, "conv_cast", [](Expr e) { return e; }, out)};
}

// ---- transposed

Result<Type> transposeInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(Window w, convWindow(call));
  BEVEL_CHECK(requireSameDType(call, 0, 2));
  const Array<Expr>&x = call.shape(0), &k = call.shape(1);
  int64_t groups = call.i("groups");
  auto inputs = asConst(k[0]), perOut = asConst(k[1]);
  if (!inputs || !perOut) return call.unsupported("a symbolic number of channels");
  int64_t outputs = 0;
  if (groups < 1 || *inputs % groups != 0 || __builtin_mul_overflow(*perOut, groups, &outputs))
    return call.invalid("the channels do not divide into the groups");
  BEVEL_CHECK(context.require(eq(x[w.channel], intImm(*inputs)), call,
                              fmt::format("the input does not have {} channels", *inputs)));
  Ints extra = perDimension(call, "output_padding", w.rank(), 0);
  if (extra.size() != w.rank()) return call.invalid("output_padding does not fit the spatial dimensions");
  Array<Expr> shape = x;
  shape.set(w.channel, intImm(outputs));
  for (size_t d = 0; d < w.rank(); ++d) {
    Expr n = context.analyzer.simplify((x[w.spatial + d] - 1) * w.strides[d] +
                                       (extra[d] + w.span(d) - w.before[d] - w.after[d]));
    BEVEL_CHECK(context.require(n >= intImm(0), call, "an output dimension is negative"));
    shape.set(w.spatial + d, n);
  }
  return tensorOf(call.dtype(0), shape);
}

Result<TeTensors> transposeCompute(const OpCall& call, const TeTensors& in) {
  BEVEL_TRY(Window w, convWindow(call));
  const te::Tensor& x = in[0];
  DType acc = accumulatorOf(x.dtype(), x.dtype());
  int64_t groups = call.i("groups"), perIn = *asConst(in[1].shape()[0]) / groups,
          perOut = *asConst(in[1].shape()[1]);
  te::Tensor y = te::compute(resultShape(call), "conv_transpose", [&](const Array<Var>& i) {
    Array<IterVar> axes = {te::reduceAxis(intImm(perIn), "ic")};
    Expr ic = Expr(axes[0]->var), oc = i[w.channel];
    if (groups > 1) {
      ic = floordiv(i[w.channel], perOut) * perIn + ic;
      oc = floormod(i[w.channel], perOut);
    }
    Array<Expr> source = exprs(i), weight = {ic, oc};
    source.set(w.channel, ic);
    Expr valid = boolImm(true);
    for (size_t d = 0; d < w.rank(); ++d) {
      axes.push_back(te::reduceAxis(intImm(w.kernel[d]), fmt::format("k{}", d)));
      Expr t = Expr(i[w.spatial + d]) + intImm(w.before[d]) - Expr(axes.back()->var) * w.dilation[d];
      Expr p = w.strides[d] == 1 ? t : floordiv(t, w.strides[d]);
      valid = logicalAnd(valid, logicalAnd(p >= intImm(0), p < x.shape()[w.spatial + d]));
      if (w.strides[d] != 1) valid = logicalAnd(valid, eq(floormod(t, w.strides[d]), intImm(0)));
      source.set(w.spatial + d, p);
      weight.push_back(axes.back()->var);
    }
    // A tap that does not exist is no product with zero: the weight may be infinite.
    Expr term = castTo(acc, x(source)) * castTo(acc, in[1](weight));
    return te::sum(ifThenElse(valid, term, constant(acc, 0)), axes);
  });
  return TeTensors{acc == x.dtype() ? y : mapTensor(y, "conv_cast", [](Expr e) { return e; }, x.dtype())};
}

} // namespace

void register_conv(OpRegistry& r) {
  const char* spatial[] = {"", "[9]", "[6,7]", "[4,5,3]"};
  for (int n = 1; n <= 3; ++n) {
    auto shape = [&](const char* channels, const std::string& dims) {
      return fmt::format("float32[{}{}]", channels, dims);
    };
    std::string area = std::string(spatial[n]).substr(1, std::string(spatial[n]).size() - 2),
                kernel = n == 1   ? "3"
                         : n == 2 ? "3,2"
                                  : "2,2,2";
    OpInput input = OpInput("x").of(Elements::kNumbers).rank(n + 2),
            weight = OpInput("weight").of(Elements::kNumbers).rank(n + 1, n + 2);
    std::vector<OpAttr> attrs = {
        intsAttr("strides"), intsAttr("padding", "begins, then ends; or one value a dimension"),
        intsAttr("dilation"), intAttr("groups", 1),
        strAttr("data_layout", "NCHW", "NHWC: channels last, whatever the number of dimensions")};
    std::vector<OpAttr> direct = attrs;
    direct.push_back(dtypeAttr("out_dtype"));
    direct.push_back(
        strAttr("kernel_layout", "OIHW", "HWO: weight [kernel, O], for one input channel a group"));
    std::string x = shape("2,4,", area),
                pads = n == 1   ? "[1,2]"
                       : n == 2 ? "[1,0,2,1]"
                                : "[1,0,0,1,1,0]",
                twos = n == 1   ? "[2]"
                       : n == 2 ? "[2,2]"
                                : "[2,1,2]";
    r.add({.name = fmt::format("nn.conv{}d", n),
           .doc = "Convolution (correlation), x [N, C, …], weight [O, C/groups, …]; padding with zeros. ONNX "
                  "Conv, without bias.",
           .inputs = {input, weight},
           .attrs = direct,
           .infer = convInfer,
           .compute = convCompute,
           .layout = LayoutKind::kContraction,
           .tests = {x + " " + shape("6,4,", kernel),
                     shape("2,", area + ",4") + " " + shape("6,2,", kernel) + " groups=2 padding=" + pads +
                         " strides=" + twos + " data_layout=NHWC",
                     shape("2,", area + ",3") + " " + shape("", kernel + ",6") + " groups=3 padding=" + pads +
                         " data_layout=NHWC kernel_layout=HWO",
                     x + " " + shape("6,2,", kernel) + " groups=2 padding=" + pads + " strides=" + twos,
                     x + " " + shape("4,1,", kernel) + " groups=4 dilation=" + twos}});
    std::vector<OpAttr> transposed = attrs;
    transposed.push_back(intsAttr("output_padding"));
    r.add({.name = fmt::format("nn.conv_transpose{}d", n),
           .doc = "Gradient of a convolution with respect to its input, x [N, C, …], weight [C, O/groups, "
                  "…]. ONNX ConvTranspose, without bias.",
           .inputs = {input, weight},
           .attrs = transposed,
           .infer = transposeInfer,
           .compute = transposeCompute,
           .layout = LayoutKind::kContraction,
           .tests = {shape("2,", area + ",4") + " " + shape("4,3,", kernel) + " groups=2 padding=" + pads +
                         " strides=" + twos + " data_layout=NHWC",
                     x + " " + shape("4,3,", kernel) + " strides=" + twos,
                     x + " " + shape("4,3,", kernel) + " groups=2 padding=" + pads + " strides=" + twos}});
  }
}

} // namespace bevel::ops

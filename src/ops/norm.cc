// Softmax and the normalisations. Each is a few tensor expressions that one kernel fuses; variance is never
// E[x²] - E[x]².
#include "ops/common.h"

namespace bevel::ops {

namespace {

// ---- softmax, log_softmax

Result<TeTensors> softmaxCompute(bool logarithm, const OpCall& call, const TeTensors& in) {
  size_t a = axisOf(call);
  Ints axis = {int64_t(a)};
  const te::Tensor& x = in[0];
  DType t = computeType(x.dtype());
  Array<Expr> outer = without(x.shape(), axis);
  te::Tensor top = te::compute(outer, "softmax_max", [&](const Array<Var>& i) {
    IterVar k = te::reduceAxis(x.shape()[a], "k");
    return te::max(castTo(t, x(inserted(exprs(i), axis, {k->var}))), {k});
  });
  te::Tensor e = te::compute(x.shape(), "softmax_exp", [&](const Array<Var>& i) {
    Expr d = castTo(t, x(exprs(i))) - top(without(exprs(i), axis));
    return callIntrin(Intrin::kExp, d);
  });
  te::Tensor total = te::compute(outer, "softmax_sum", [&](const Array<Var>& i) {
    IterVar k = te::reduceAxis(x.shape()[a], "k");
    return te::sum(e(inserted(exprs(i), axis, {k->var})), {k});
  });
  if (!logarithm) {
    te::Tensor scale = te::compute(outer, "softmax_scale", [&](const Array<Var>& i) { // one division a row
      return fdiv(constantFloat(t, 1), total(exprs(i)));
    });
    return TeTensors{te::compute(x.shape(), "softmax", [&](const Array<Var>& i) {
      return castTo(x.dtype(), e(exprs(i)) * scale(without(exprs(i), axis)));
    })};
  }
  return TeTensors{te::compute(x.shape(), "log_softmax", [&](const Array<Var>& i) {
    Array<Expr> o = without(exprs(i), axis);
    return castTo(x.dtype(), castTo(t, x(exprs(i))) - top(o) - callIntrin(Intrin::kLog, total(o)));
  })};
}

// ---- layer_norm, rms_norm: over the last axes

// Axes from `axis` on are normalised; gamma and beta broadcast to them.
Result<Type> layerNormInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(checkedAxis(call));
  for (size_t i = 1; i < call.size(); ++i) {
    if (!call.has(i)) continue;
    if (call.rank(i) > call.rank(0))
      return call.invalid("a scale or bias has more dimensions than the input");
    BEVEL_TRY(Array<Expr> shape, broadcastShapes(call, context, call.shape(0), call.shape(i)));
    for (size_t d = 0; d < shape.size(); ++d)
      BEVEL_CHECK(context.require(eq(shape[d], call.shape(0)[d]), call,
                                  "a scale or bias does not broadcast to the input"));
  }
  return call.type(0);
}

// Mean at each outer index of f(element, outer index) over the inner indices, which `index` joins to one of x.
te::Tensor meanOver(const te::Tensor& x, const Array<Expr>& outer, const Array<Expr>& inner,
                    const std::string& name,
                    FunctionRef<Array<Expr>(const Array<Expr>& outer, const Array<Expr>& inner)> index,
                    FunctionRef<Expr(Expr, const Array<Expr>&)> f) {
  DType t = computeType(x.dtype());
  size_t first = x.rank() - inner.size();
  te::Tensor total = te::compute(outer, name + "_sum", [&](const Array<Var>& i) {
    Array<IterVar> ks;
    Array<Expr> at;
    for (size_t d = 0; d < inner.size(); ++d) {
      ks.push_back(te::reduceAxis(inner[d], fmt::format("k{}", first + d)));
      at.push_back(ks.back()->var);
    }
    return te::sum(f(castTo(t, x(index(exprs(i), at))), exprs(i)), ks);
  });
  Expr n = intImm(1);
  for (const Expr& extent : inner) n = n * extent;
  return te::compute(outer, name, [&](const Array<Var>& i) { return fdiv(total(exprs(i)), castTo(t, n)); });
}

Result<TeTensors> layerNormCompute(bool centred, const OpCall& call, const TeTensors& in) {
  size_t a = axisOf(call);
  const te::Tensor& x = in[0];
  DType t = computeType(x.dtype());
  Array<Expr> outer = x.shape().slice(0, a), inner = x.shape().slice(a, x.rank());
  auto joined = [](Array<Expr> o, const Array<Expr>& k) {
    o.append(k);
    return o;
  };
  te::Tensor mean;
  if (centred) mean = meanOver(x, outer, inner, "mean", joined, [](Expr e, const Array<Expr>&) { return e; });
  te::Tensor variance = meanOver(x, outer, inner, "variance", joined, [&](Expr e, const Array<Expr>& o) {
    Expr d = centred ? e - mean(o) : e;
    return d * d;
  });
  double epsilon = call.f("epsilon");
  te::Tensor scale = te::compute(variance.shape(), "inverse", [&](const Array<Var>& i) {
    Expr v = variance(exprs(i));
    return fdiv(real(v, 1), callIntrin(Intrin::kSqrt, v + real(v, epsilon)));
  });
  te::Tensor y = te::compute(x.shape(), centred ? "layer_norm" : "rms_norm", [&](const Array<Var>& i) {
    Array<Expr> o = exprs(i).slice(0, a);
    Expr e = castTo(t, x(exprs(i)));
    e = (centred ? e - mean(o) : e) * scale(o);
    if (call.has(1)) e = e * castTo(t, readBroadcast(in[1], x.shape(), i));
    if (call.has(2)) e = e + castTo(t, readBroadcast(in[2], x.shape(), i));
    return castTo(x.dtype(), e);
  });
  return TeTensors{y};
}

// ---- batch_norm (inference), instance_norm, group_norm: channels on axis 1

Status requireChannels(const OpCall& call, InferContext& context, size_t first, size_t last) {
  if (call.rank(0) < 2) return call.invalid("at least two dimensions are needed");
  for (size_t i = first; i < last; ++i)
    BEVEL_CHECK(context.require(eq(call.shape(i)[0], call.shape(0)[1]), call, "the channel count differs"));
  return {};
}

Result<Type> batchNormInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireChannels(call, context, 1, 5));
  return call.type(0);
}

Result<TeTensors> batchNormCompute(const OpCall& call, const TeTensors& in) {
  const te::Tensor& x = in[0];
  DType t = computeType(x.dtype()); // or that of a wider parameter: statistics keep their type
  for (const te::Tensor& p : in)
    if (p.dtype().bits > t.bits) t = p.dtype();
  double epsilon = call.f("epsilon");
  te::Tensor scale = te::compute({x.shape()[1]}, "bn_scale", [&](const Array<Var>& c) {
    Expr v = castTo(t, in[4](exprs(c)));
    return fdiv(castTo(t, in[1](exprs(c))), callIntrin(Intrin::kSqrt, v + real(v, epsilon)));
  });
  te::Tensor shift = te::compute({x.shape()[1]}, "bn_shift", [&](const Array<Var>& c) {
    return castTo(t, in[2](exprs(c))) - castTo(t, in[3](exprs(c))) * scale(exprs(c));
  });
  return TeTensors{te::compute(x.shape(), "batch_norm", [&](const Array<Var>& i) {
    return castTo(x.dtype(), castTo(t, x(exprs(i))) * scale({i[1]}) + shift({i[1]}));
  })};
}

// Groups of channels, normalised over their channels and all further axes. instance_norm: one channel a
// group.
Result<Type> groupNormInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireChannels(call, context, 1, 3));
  auto c = asConst(call.shape(0)[1]);
  int64_t groups = call.i("num_groups");
  if (groups < 1 || (c && *c % groups != 0))
    return call.invalid("the channels do not divide into the groups");
  if (!c) return call.unsupported("a symbolic channel count");
  return call.type(0);
}

Result<TeTensors> groupNormCompute(const OpCall& call, const TeTensors& in) {
  const te::Tensor& x = in[0];
  DType t = computeType(x.dtype());
  int64_t groups = call.i("num_groups"), per = *asConst(x.shape()[1]) / groups;
  double epsilon = call.f("epsilon");
  Array<Expr> outer = {x.shape()[0], intImm(groups)}, inner = x.shape().slice(1, x.rank());
  inner.set(0, intImm(per));
  auto joined = [&](const Array<Expr>& o, Array<Expr> k) {
    k.set(0, o[1] * intImm(per) + k[0]);
    return inserted(k, {0}, {o[0]});
  };
  te::Tensor m = meanOver(x, outer, inner, "mean", joined, [](Expr e, const Array<Expr>&) { return e; });
  te::Tensor v = meanOver(x, outer, inner, "variance", joined, [&](Expr e, const Array<Expr>& o) {
    Expr d = e - m(o);
    return d * d;
  });
  return TeTensors{te::compute(x.shape(), "group_norm", [&](const Array<Var>& i) {
    Array<Expr> o = {i[0], floordiv(i[1], per)};
    Expr var = v(o);
    Expr e = fdiv(castTo(t, x(exprs(i))) - m(o), callIntrin(Intrin::kSqrt, var + real(var, epsilon)));
    return castTo(x.dtype(), e * castTo(t, in[1]({i[1]})) + castTo(t, in[2]({i[1]})));
  })};
}

// ---- lrn

Result<Type> lrnInfer(const OpCall& call, InferContext&) {
  if (call.i("size") < 1) return call.invalid("a positive size is needed");
  if (call.i("size") > 1 << 20 && !asConst(call.shape(0)[1]))
    return call.unsupported("so many neighbours of channels whose number only the run knows");
  return call.type(0);
}
Result<TeTensors> lrnCompute(const OpCall& call, const TeTensors& in) {
  const te::Tensor& x = in[0];
  DType t = computeType(x.dtype());
  int64_t size = call.i("size"), before = (size - 1) / 2;
  if (auto channels = asConst(x.shape()[1])) { // what lies beyond the channels adds nothing
    int64_t behind = std::min(size - 1 - before, *channels);
    before = std::min(before, *channels);
    size = before + 1 + behind;
  }
  te::Tensor squares = te::compute(x.shape(), "lrn_sum", [&](const Array<Var>& i) {
    IterVar k = te::reduceAxis(intImm(size), "k");
    Expr c = Expr(i[1]) + Expr(k->var) - intImm(before);
    Array<Expr> index = exprs(i);
    index.set(1, c);
    Expr e =
        castTo(t, ifThenElse(logicalAnd(c >= intImm(0), c < x.shape()[1]), x(index), constant(x.dtype(), 0)));
    return te::sum(e * e, {k});
  });
  return TeTensors{te::compute(x.shape(), "lrn", [&](const Array<Var>& i) {
    Expr s = squares(exprs(i));
    Expr d = bevel::call(Intrin::kPow,
                         {real(s, call.f("bias")) + real(s, call.f("alpha") / double(call.i("size"))) * s,
                          real(s, call.f("beta"))});
    return castTo(x.dtype(), fdiv(castTo(t, x(exprs(i))), d));
  })};
}

} // namespace

void register_norm(OpRegistry& r) {
  for (bool logarithm : {false, true})
    r.add({.name = logarithm ? "nn.log_softmax" : "nn.softmax",
           .doc = "Softmax (or its logarithm) along an axis, the maximum subtracted first. ONNX Softmax-13, "
                  "LogSoftmax-13.",
           .inputs = {OpInput("x").of(Elements::kFloats)},
           .attrs = {intAttr("axis", -1)},
           .infer = axisInfer,
           .compute = std::bind_front(softmaxCompute, logarithm),
           .layout = LayoutKind::kChannelwise,
           .tests = {"float32[3,7]", "float32[2,3,4] axis=1", "float32[0,3]"}});
  for (bool centred : {true, false})
    r.add({.name = centred ? "nn.layer_norm" : "nn.rms_norm",
           .doc = "Normalises the axes from `axis` on: by mean and variance, or by the mean square alone. "
                  "ONNX LayerNormalization-17, RMSNormalization-23.",
           .inputs = {OpInput("x").of(Elements::kFloats).rank(1, 64),
                      OpInput("scale", InputKind::kOptional).of(Elements::kFloats),
                      OpInput("bias", InputKind::kOptional).of(Elements::kFloats)},
           .attrs = {intAttr("axis", -1), floatAttr("epsilon", 1e-5)},
           .infer = layerNormInfer,
           .compute = std::bind_front(layerNormCompute, centred),
           .tests = {"float32[3,8] float32[8] float32[8]", "float32[2,3,4] float32[3,4] axis=1",
                     "float16[2,16] float16[16] float16[16]"}});
  r.add({.name = "nn.batch_norm",
         .doc = "(x - mean) * scale / sqrt(var + epsilon) + bias per channel (axis 1). ONNX "
                "BatchNormalization, inference.",
         .inputs = {OpInput("x").of(Elements::kFloats).rank(1, 64),
                    OpInput("scale").of(Elements::kFloats).rank(1),
                    OpInput("bias").of(Elements::kFloats).rank(1),
                    OpInput("mean").of(Elements::kFloats).rank(1),
                    OpInput("var").of(Elements::kFloats).rank(1)},
         .attrs = {floatAttr("epsilon", 1e-5)},
         .infer = batchNormInfer,
         .compute = batchNormCompute,
         .tests = {"float32[2,3,4,5] float32[3] float32[3] float32[3] float32[3]:pos"}});
  r.add({.name = "nn.group_norm",
         .doc = "Normalises groups of channels over their channels and all further axes; scale and bias per "
                "channel.\n"
                "ONNX GroupNormalization, InstanceNormalization.",
         .inputs = {OpInput("x").of(Elements::kFloats).rank(2, 64),
                    OpInput("scale").of(Elements::kFloats).rank(1),
                    OpInput("bias").of(Elements::kFloats).rank(1)},
         .attrs = {required(intAttr("num_groups", 1)), floatAttr("epsilon", 1e-5)},
         .infer = groupNormInfer,
         .compute = groupNormCompute,
         .tests = {"float32[2,6,3,2] float32[6] float32[6] num_groups=3"}});
  r.add({.name = "nn.lrn",
         .doc = "x / (bias + alpha/size * sum of squares of neighbouring channels) ^ beta. ONNX LRN.",
         .inputs = {OpInput("x").of(Elements::kFloats).rank(2, 64)},
         .attrs = {required(intAttr("size", 1)), floatAttr("alpha", 1e-4), floatAttr("beta", 0.75),
                   floatAttr("bias", 1)},
         .infer = lrnInfer,
         .compute = lrnCompute,
         .onnx = {{"LRN"}},
         .tests = {"float32[2,5,3] size=3", "float32[1,5,3] size=4"}});
}

} // namespace bevel::ops

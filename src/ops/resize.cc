// Resampling along one axis; resizing several axes is one after the other (interpolation is separable).
//
// Source coordinates follow the *given* scale where there is one, else the quotient of the extents; they are
// computed in fp64. Taps outside the input repeat the edge, or are left out with exclude_outside.
#include "ops/common.h"

namespace bevel::ops {

namespace {

constexpr int64_t kMaxTaps = 128;

Result<Type> resizeInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(size_t axis, checkedAxis(call));
  if (call.values(1).size() != 1) return call.invalid("one extent is expected");
  if (auto c = asConst(call.values(1)[0]); c && *c < 0) return call.invalid("the extent is negative");
  for (size_t i = 2; i < 4; ++i)
    if (call.has(i) && !call.dtype(i).isFloat()) return call.invalid("scale and roi must be floats");
  if (call.dtype(0).isBool() && call.s("mode") != "nearest")
    return call.unsupported("is not defined on " + call.dtype(0).str());
  Expr in = call.shape(0)[axis];
  BEVEL_CHECK(context.require(logicalOr(in > intImm(0), eq(call.values(1)[0], intImm(0))), call,
                              "an empty axis cannot be resized"));
  Array<Expr> shape = call.shape(0);
  shape.set(axis, call.values(1)[0]);
  return tensorOf(call.dtype(0), shape);
}

Expr f64(double v) {
  return constantFloat(DType::Float(64), v);
}
Expr f64(const Expr& e) {
  return castTo(DType::Float(64), e);
}

// Source coordinate of output position d.
Expr coordinate(const std::string& mode, const Expr& d, const Expr& in, const Expr& out, const Expr& scale,
                const Expr& start, const Expr& end) {
  Expr width = scale * in, isOne = eq(width, f64(1)); // may be fractional
  if (mode == "asymmetric") return fdiv(d, scale);
  if (mode == "align_corners") return select(isOne, f64(0), fdiv(d * (in - f64(1)), width - f64(1)));
  if (mode == "tf_half_pixel_for_nn") return fdiv(d + f64(0.5), scale);
  if (mode == "tf_crop_and_resize") {
    Expr span = (end - start) * (in - f64(1));
    return select(isOne, span * f64(0.5), fdiv(d * span, width - f64(1))) + start * (in - f64(1));
  }
  Expr half = fdiv(d + f64(0.5), scale) - f64(0.5);
  if (mode == "pytorch_half_pixel") return select(isOne, f64(-0.5), half);
  if (mode == "half_pixel_symmetric") return in * f64(0.5) * (f64(1) - fdiv(out, width)) + half;
  return half;
}

Expr nearest(const std::string& mode, const Expr& x) {
  if (mode == "floor") return callIntrin(Intrin::kFloor, x);
  if (mode == "ceil") return callIntrin(Intrin::kCeil, x);
  if (mode == "round_prefer_ceil") return callIntrin(Intrin::kFloor, x + f64(0.5));
  return callIntrin(Intrin::kCeil, x - f64(0.5));
}

// Weight of a tap at distance `t` (tap position minus coordinate), before normalisation.
Expr weight(const std::string& mode, const Expr& t, double a) {
  Expr x = callIntrin(Intrin::kFabs, t);
  if (mode == "linear") return select(x < f64(1), f64(1) - x, f64(0));
  Expr inner = ((f64(a + 2) * x - f64(a + 3)) * x) * x + f64(1),
       outer = ((f64(a) * x - f64(5 * a)) * x + f64(8 * a)) * x - f64(4 * a);
  return select(x <= f64(1), inner, select(x < f64(2), outer, f64(0)));
}

struct Taps {
  int64_t first, count;
  double stretch; // of the kernel, below 1 when it is widened by antialiasing
};

Result<Taps> tapsOf(const OpCall& call) {
  bool cubic = call.s("mode") == "cubic";
  Taps t{cubic ? -1 : 0, cubic ? 4 : 2, 1};
  if (call.i("antialias") == 0) return t;
  double scale = call.f("scale");
  if (scale <= 0) {
    auto in = asConst(call.shape(0)[axisOf(call)]), out = asConst(call.values(1)[0]);
    if (call.has(2) || !in || !out || *in == 0 || *out == 0)
      return call.unsupported("antialiasing with a scale that only the run knows");
    scale = double(*out) / double(*in);
  }
  t.stretch = std::min(scale, 1.0);
  double first = std::floor(-(cubic ? 2 : 1) / t.stretch) + 1;
  if (first < -double(kMaxTaps)) return call.unsupported("antialiasing over so many elements");
  t.first = int64_t(first);
  t.count = 2 - 2 * t.first;
  return t;
}

Result<TeTensors> resizeCompute(const OpCall& call, const TeTensors& in) {
  size_t a = axisOf(call);
  const te::Tensor& x = in[0];
  std::string mode = call.s("mode"), transform = call.s("coordinate_transformation_mode");
  BEVEL_TRY(Taps taps, tapsOf(call));
  Expr n = x.shape()[a], out = call.values(1)[0];
  return TeTensors{te::compute(resultShape(call), "resize", [&](const Array<Var>& i) {
    Expr scale = call.has(2)           ? f64(in[2]({}))
                 : call.f("scale") > 0 ? f64(call.f("scale"))
                                       : fdiv(f64(out), f64(n));
    Expr zero = f64(0);
    Expr start = call.has(3) ? f64(in[3]({intImm(0)})) : zero,
         end = call.has(3) ? f64(in[3]({intImm(1)})) : zero;
    Expr at = coordinate(transform, f64(i[a]), f64(n), f64(out), scale, start, end);
    auto read = [&](const Expr& k) {
      Array<Expr> index = exprs(i);
      index.set(a, max(min(k, n - 1), intImm(0)));
      return x(index);
    };
    Expr value;
    if (mode == "nearest") at = f64(castTo(kFloat32, at)); // a scale such as 0.7f is meant to hit the halves
    if (mode == "nearest")
      value = read(castTo(kInt64, nearest(call.s("nearest_mode"), at)));
    else {
      Expr base = callIntrin(Intrin::kFloor, at), ratio = at - base, total = zero, sum = zero,
           whole = castTo(kInt64, base);
      for (int64_t k = 0; k < taps.count; ++k) {
        Expr distance = f64(double(taps.first + k)) - ratio;
        Expr w = weight(mode, distance * f64(taps.stretch), call.f("cubic_coeff_a"));
        Expr position = whole + intImm(taps.first + k);
        if (call.i("exclude_outside")) w = select(logicalAnd(position >= intImm(0), position < n), w, zero);
        total = total + w;
        sum = sum + w * f64(read(position));
      }
      bool normal = call.i("exclude_outside") == 0 && taps.stretch == 1;
      value = castTo(x.dtype(), castTo(computeType(x.dtype()), normal ? sum : fdiv(sum, total)));
    }
    if (transform != "tf_crop_and_resize") return value;
    Expr outside = logicalOr(at<zero, at> f64(n - 1));
    return select(outside, constantFloat(x.dtype(), call.f("extrapolation_value")), value);
  })};
}

} // namespace

void register_resize(OpRegistry& r) {
  r.add(
      {.name = "image.resize_axis",
       .doc = "Resamples one axis to an extent. scale: factor that the coordinates follow (input, else "
              "attribute, else extent / input\n"
              "extent); roi: [start, end] for tf_crop_and_resize. ONNX Resize, Upsample.",
       .inputs = {OpInput("x").of(Elements::kNumbers).rank(1, 64),
                  {"extent", InputKind::kShape},
                  OpInput("scale", InputKind::kOptional).of(Elements::kFloats),
                  OpInput("roi", InputKind::kOptional).of(Elements::kFloats).rank(1)},
       .attrs = {intAttr("axis", -1), strAttr("mode", "nearest", "nearest, linear or cubic"),
                 floatAttr("scale", 0), strAttr("coordinate_transformation_mode", "half_pixel"),
                 strAttr("nearest_mode", "round_prefer_floor"), floatAttr("cubic_coeff_a", -0.75),
                 intAttr("exclude_outside", 0), floatAttr("extrapolation_value", 0), intAttr("antialias", 0)},
       .infer = resizeInfer,
       .compute = resizeCompute,
       .tests = {"float32[2,3] shape(7) scale=2.5", "float32[2,4] shape(7) mode=linear",
                 "float32[5] shape(3) mode=cubic exclude_outside=1",
                 "float32[4] shape(7) mode=linear coordinate_transformation_mode=align_corners",
                 "float32[8] shape(3) mode=linear antialias=1",
                 "float32[3,4] shape(6) axis=0 coordinate_transformation_mode=asymmetric nearest_mode=floor",
                 "uint8[4]:int9 shape(9)"}});
}

} // namespace bevel::ops

// Naive host evaluation of the operators of src/ops/resize.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

constexpr int64_t kMaxTaps = 128;

// Arithmetic that the tensor expression and the host loop share: E is Expr or double.
struct Numbers {
  static Expr of(const Expr&, double v) { return constantFloat(DType::Float(64), v); }
  static double of(double, double v) { return v; }
  static Expr floor(const Expr& x) { return callIntrin(Intrin::kFloor, x); }
  static double floor(double x) { return std::floor(x); }
  static Expr ceil(const Expr& x) { return callIntrin(Intrin::kCeil, x); }
  static double ceil(double x) { return std::ceil(x); }
  static Expr div(const Expr& a, const Expr& b) { return fdiv(a, b); }
  static double div(double a, double b) { return a / b; }
  static Expr abs(const Expr& x) { return callIntrin(Intrin::kFabs, x); }
  static double abs(double x) { return std::fabs(x); }
  static Expr choose(const Expr& c, const Expr& a, const Expr& b) { return select(c, a, b); }
  static double choose(bool c, double a, double b) { return c ? a : b; }
  static Expr isOne(const Expr& x) { return eq(x, constantFloat(DType::Float(64), 1)); }
  static bool isOne(double x) { return x == 1; }
};

using N = Numbers;

// Source coordinate of output position d.
template <class E>
E coordinate(const std::string& mode, const E& d, const E& in, const E& out, const E& scale, const E& start,
             const E& end) {
  auto c = [&](double v) { return N::of(d, v); };
  E width = scale * in; // may be fractional
  if (mode == "asymmetric") return N::div(d, scale);
  if (mode == "align_corners") return N::choose(N::isOne(width), c(0), N::div(d * (in - c(1)), width - c(1)));
  if (mode == "tf_half_pixel_for_nn") return N::div(d + c(0.5), scale);
  if (mode == "tf_crop_and_resize") {
    E span = (end - start) * (in - c(1));
    return N::choose(N::isOne(width), span * c(0.5), N::div(d * span, width - c(1))) + start * (in - c(1));
  }
  E half = N::div(d + c(0.5), scale) - c(0.5);
  if (mode == "pytorch_half_pixel") return N::choose(N::isOne(width), c(-0.5), half);
  if (mode == "half_pixel_symmetric") return in * c(0.5) * (c(1) - N::div(out, width)) + half;
  return half;
}

template <class E> E nearest(const std::string& mode, const E& x) {
  auto c = [&](double v) { return N::of(x, v); };
  if (mode == "floor") return N::floor(x);
  if (mode == "ceil") return N::ceil(x);
  if (mode == "round_prefer_ceil") return N::floor(x + c(0.5));
  return N::ceil(x - c(0.5));
}

// Weight of a tap at distance `t` (tap position minus coordinate), before normalisation.
template <class E> E weight(const std::string& mode, const E& t, double a) {
  auto c = [&](double v) { return N::of(t, v); };
  E x = N::abs(t);
  if (mode == "linear") return N::choose(x < c(1), c(1) - x, c(0));
  E inner = ((c(a + 2) * x - c(a + 3)) * x) * x + c(1),
    outer = ((c(a) * x - c(5 * a)) * x + c(8 * a)) * x - c(4 * a);
  return N::choose(x <= c(1), inner, N::choose(x < c(2), outer, c(0)));
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
    BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
    auto in = asConst(call.shape(0)[size_t(axis)]), out = asConst(call.values(1)[0]);
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

Result<HostTensors> resizeEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0)));
  BEVEL_TRY(Taps taps, tapsOf(call));
  std::string mode = call.s("mode"), transform = call.s("coordinate_transformation_mode");
  Ints shape = in[0]->shape, strides = stridesOf(shape);
  int64_t n = shape[size_t(axis)], out = (*constValues(call, 1))[0], k = 0;
  shape[size_t(axis)] = out;
  auto y = TensorObject::zeros(in[0]->dtype, shape);
  double scale = call.has(2)           ? in[2]->asDouble(0)
                 : call.f("scale") > 0 ? call.f("scale")
                                       : double(out) / double(n);
  double start = call.has(3) ? in[3]->asDouble(0) : 0, end = call.has(3) ? in[3]->asDouble(1) : 0;
  forEachIndex(shape, [&](const Ints& i) {
    double at =
        coordinate<double>(transform, double(i[size_t(axis)]), double(n), double(out), scale, start, end);
    if (mode == "nearest") at = double(float(at));
    int64_t row = offsetOf(i, strides) - i[size_t(axis)] * strides[size_t(axis)],
            step = strides[size_t(axis)];
    auto element = [&](double p) { return row + std::min(std::max<int64_t>(int64_t(p), 0), n - 1) * step; };
    if (transform == "tf_crop_and_resize" && (at < 0 || at > double(n - 1)))
      y->setDouble(k++, call.f("extrapolation_value"));
    else if (mode == "nearest")
      copyElement(*y, k++, *in[0], element(nearest<double>(call.s("nearest_mode"), at)));
    else {
      double base = std::floor(at), total = 0, sum = 0;
      for (int64_t t = 0; t < taps.count; ++t) {
        double p = base + double(taps.first + t),
               w = weight<double>(mode, (p - at) * taps.stretch, call.f("cubic_coeff_a"));
        if (call.i("exclude_outside") && (p < 0 || p >= double(n))) continue;
        total += w;
        sum += w * in[0]->asDouble(element(p));
      }
      double v = call.i("exclude_outside") || taps.stretch != 1 ? sum / total : sum;
      y->setDouble(k++, y->dtype.isFloat() ? v : std::trunc(v));
    }
  });
  return HostTensors{y};
}

} // namespace

void add_resize(Oracles& oracles) {
  oracles["image.resize_axis"] = resizeEval;
}

} // namespace bevel::test

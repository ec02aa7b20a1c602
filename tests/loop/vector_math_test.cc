// Expanded functions against fp64 over the whole range of fp32: the bounds of docs/numerics.md, and special
// values.
#include "loop/vector_math.h"

#include "loop/interpreter.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace bevel {
namespace {

// The expansion of op applied to every value, through the interpreter.
std::vector<float> applyTo(Intrin op, const std::vector<float>& xs) {
  int64_t n = int64_t(xs.size());
  Buffer a = buffer("A", kFloat32, {intImm(n)}), b = buffer("B", kFloat32, {intImm(n)});
  Var i = var("i");
  Expr e = call(op, {load(a, {i})});
  Expr expanded = expandIntrinsic(cast<CallNode>(e));
  EXPECT_TRUE(expanded) << intrinInfo(op).name;
  Stmt body = forLoop(i, intImm(n), store(b, expanded, {i}));
  PrimFunc f = make<const PrimFuncNode>(Array<Var>{a->data, b->data}, Array<Buffer>{a, b}, body);
  auto in = TensorObject::zeros(kFloat32, {n}), out = TensorObject::zeros(kFloat32, {n});
  std::memcpy(in->mutableBytes(), xs.data(), xs.size() * 4);
  auto s = interpret(f, {in, out});
  EXPECT_TRUE(s.has_value()) << (s ? "" : s.error().str());
  auto v = out->view<float>();
  return {v.begin(), v.end()};
}

// Distance in units of the last place of the exact value (subnormals: of the smallest normal's spacing).
double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  float rounded = float(want);
  if (std::isinf(rounded)) return got == rounded || std::fabs(got) > 3.4e38f ? 0 : 1e9;
  if (std::isinf(got) || std::isnan(got)) return 1e9;
  int e = std::max(std::ilogb(want == 0 ? 1e-300 : want), -126);
  return std::fabs(double(got) - want) / std::ldexp(1.0, e - 23);
}

struct Case {
  Intrin op;
  double (*exact)(double);
  double bound;
};
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double exp10d(double x) {
  return std::pow(10.0, x);
}
double rsqrtd(double x) {
  return 1 / std::sqrt(x);
}

const Case kCases[] = {
    {Intrin::kExp, std::exp, 1.5},     {Intrin::kExp2, std::exp2, 1.5}, {Intrin::kExp10, exp10d, 3},
    {Intrin::kExpm1, std::expm1, 3},   {Intrin::kLog, std::log, 2},     {Intrin::kLog2, std::log2, 2.5},
    {Intrin::kLog10, std::log10, 2.5}, {Intrin::kLog1p, std::log1p, 3}, {Intrin::kTanh, std::tanh, 2.5},
    {Intrin::kSigmoid, sigmoid, 3},    {Intrin::kErf, std::erf, 2.5},   {Intrin::kSinh, std::sinh, 3},
    {Intrin::kCosh, std::cosh, 3},     {Intrin::kAtan, std::atan, 2.5}, {Intrin::kAsin, std::asin, 3},
    {Intrin::kAcos, std::acos, 3},     {Intrin::kAsinh, std::asinh, 4}, {Intrin::kAcosh, std::acosh, 4},
    {Intrin::kAtanh, std::atanh, 4},   {Intrin::kRsqrt, rsqrtd, 1.5},
};

// Every sign and exponent with a few mantissas, and a dense sweep of the interesting part.
std::vector<float> samples() {
  std::vector<float> xs = {0.f,  -0.f, INFINITY, -INFINITY, NAN,   1.f,
                           -1.f, 89.f, -88.95f,  3e-12f,    3e22f, 50.f};
  for (int e = -149; e < 128; ++e)
    for (double m : {1.0, 1.25, 1.4142, 1.7, 1.999}) {
      float v = float(std::ldexp(m, e));
      xs.push_back(v);
      xs.push_back(-v);
    }
  for (int k = -12000; k <= 12000; ++k) xs.push_back(float(k) * 0.00917f);
  for (int k = -2000; k <= 2000; ++k) xs.push_back(float(k) * 0.000637f);
  return xs;
}

TEST(VectorMath, StaysWithinItsBoundOverTheWholeRange) {
  std::vector<float> xs = samples();
  for (const Case& c : kCases) {
    std::vector<float> ys = applyTo(c.op, xs);
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < xs.size(); ++i) {
      double want = c.exact(double(xs[i]));
      // sigmoid gives 0 where exp(-x) overflows and the true value is subnormal
      double u = c.op == Intrin::kSigmoid && std::fabs(want) < 1.2e-38 ? (ys[i] < 1.3e-38f ? 0 : 1e9)
                                                                       : ulps(ys[i], want);
      if (!(u <= worst)) worst = u, at = xs[i];
    }
    EXPECT_LE(worst, c.bound) << intrinInfo(c.op).name << " at " << at;
    RecordProperty(intrinInfo(c.op).name, std::to_string(worst));
    if (std::getenv("BEVEL_PRINT_ULPS")) std::printf("%-8s %.2f at %g\n", intrinInfo(c.op).name, worst, at);
  }
}

TEST(VectorMath, KeepsTheSignOfZero) {
  for (Intrin op : {Intrin::kTanh, Intrin::kErf, Intrin::kSinh, Intrin::kAtan, Intrin::kAsin, Intrin::kAsinh,
                    Intrin::kAtanh, Intrin::kExpm1}) {
    std::vector<float> y = applyTo(op, {-0.f, 0.f});
    EXPECT_TRUE(std::signbit(y[0])) << intrinInfo(op).name;
    EXPECT_FALSE(std::signbit(y[1])) << intrinInfo(op).name;
  }
}

TEST(VectorMath, LeavesDoublePrecisionToTheLibrary) {
  Expr x = constantFloat(DType::Float(64), 0.5);
  EXPECT_FALSE(expandIntrinsic(cast<CallNode>(call(Intrin::kExp, {x}))));
}

TEST(VectorMath, PowersOfSmallWholeExponentsAreProducts) {
  Expr x = var("x", kFloat32);
  EXPECT_TRUE(expandIntrinsic(cast<CallNode>(call(Intrin::kPow, {x, constantFloat(kFloat32, 2)}))));
  EXPECT_FALSE(expandIntrinsic(cast<CallNode>(call(Intrin::kPow, {x, constantFloat(kFloat32, 2.5)}))));
}

} // namespace
} // namespace bevel

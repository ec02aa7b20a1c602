// Expansions of the fp32 transcendental functions.
//
// All share three pieces: powers of e by reduction to |r| <= ln(2)/2 and a polynomial of degree 6, scaled by
// two factors of 2^(n/2) so that subnormal and nearly overflowing results are right; logarithms by splitting
// off the exponent with the mantissa in [sqrt(1/2), sqrt(2)); odd polynomials near zero. Coefficients are
// minimax fits (Remez) of this project, relative error below 4e-9 in exact arithmetic.
#include "loop/vector_math.h"

#include "ir/structural.h"

#include <algorithm>
#include <cmath>

namespace bevel {
namespace {

// Builds an expression of one dtype; values used more than once are bound by Let.
class Maths {
public:
  explicit Maths(DType t) : t_(t), int_(DType::Int(32, t.lanes)) {}

  Expr num(double v) const { return constantFloat(t_, v); }
  Expr integer(int64_t v) const { return constant(int_, v); }
  Expr bind(const Expr& value, const char* name = "t") {
    if (value.is<VarNode>() || value.is<FloatImmNode>()) return value;
    Var v = var(name, value->dtype);
    lets_.emplace_back(v, value);
    return v;
  }
  Expr finish(Expr body) const {
    for (size_t i = lets_.size(); i-- > 0;) body = make<const LetNode>(lets_[i].first, lets_[i].second, body);
    return body;
  }
  Expr fma(const Expr& a, const Expr& b, const Expr& c) const { return call(Intrin::kFma, {a, b, c}); }
  Expr fabs(const Expr& a) const { return call(Intrin::kFabs, {a}); }
  Expr copySign(const Expr& magnitude, const Expr& sign) const {
    return call(Intrin::kCopySign, {magnitude, sign});
  }
  Expr sqrt(const Expr& a) const { return call(Intrin::kSqrt, {a}); }
  Expr div(const Expr& a, const Expr& b) const { return make<const BinaryNode>(BinaryOp::kDiv, a, b); }
  // NaN passes through a comparison that fails.
  Expr clampAbove(const Expr& x, double high) const { return select(x > num(high), num(high), x); }
  Expr clampBelow(const Expr& x, double low) const { return select(x < num(low), num(low), x); }
  /// c0 + c1 x + c2 x² + …
  Expr poly(const Expr& x, std::initializer_list<double> c) const {
    auto it = std::rbegin(c);
    Expr sum = num(*it++);
    for (; it != std::rend(c); ++it) sum = fma(sum, x, num(*it));
    return sum;
  }
  /// x + x^3 (c0 + c1 x² + …), of z = x².
  Expr odd(const Expr& x, const Expr& z, std::initializer_list<double> c) {
    return fma(bind(z * x), poly(z, c), x);
  }
  Expr asInt(const Expr& x) const { return callAs(int_, Intrin::kReinterpret, {x}); }
  Expr asFloat(const Expr& x) const { return callAs(t_, Intrin::kReinterpret, {x}); }
  Expr shiftLeft(const Expr& x, int n) const { return bevel::binary(BinaryOp::kShl, x, integer(n)); }
  Expr shiftRight(const Expr& x, int n) const { return bevel::binary(BinaryOp::kShr, x, integer(n)); }
  /// 2^n for n in [-126, 127].
  Expr powerOfTwo(const Expr& n) const { return asFloat(shiftLeft(n + integer(127), 23)); }

  // Nearest integer of x * scale as float and as int32: adding 1.5*2^23 leaves it in the low mantissa bits.
  std::pair<Expr, Expr> roundToInt(const Expr& x, double scale) {
    const double magic = 12582912.0;
    Expr shifted = bind(fma(x, num(scale), num(magic)));
    return {bind(shifted - num(magic)), bind(asInt(shifted) - integer(0x4B400000))};
  }
  Expr scale(const Expr& p, const Expr& n) {
    Expr half = bind(shiftRight(n, 1));
    return p * powerOfTwo(half) * powerOfTwo(n - half);
  }

  Expr exp(const Expr& x) { return scaledExp(x, 0); }
  /// exp(x) * 2^shift.
  Expr scaledExp(const Expr& x0, int shift) {
    Expr x = bind(clampBelow(clampAbove(x0, 89.5 - 0.6931 * shift), -104.5), "x");
    auto [f, n] = roundToInt(x, 1.44269504088896341);
    Expr r = bind(fma(f, num(-1.42860677e-6), fma(f, num(-0.693145751953125), x)), "r");
    Expr q = poly(r, {0.4999999263, 0.1666650872, 0.04166852828, 0.008370134935, 0.001381166216});
    Expr p = bind(fma(bind(r * r), q, r) + num(1), "p");
    return scale(p, shift ? bind(n + integer(shift)) : n);
  }
  Expr exp2(const Expr& x0) {
    Expr x = bind(clampBelow(clampAbove(x0, 129), -151), "x");
    auto [f, n] = roundToInt(x, 1);
    Expr r = bind(x - f, "r");
    Expr q =
        poly(r, {0.6931472195, 0.2402265306, 0.05550301854, 0.009617654985, 0.001340974188, 0.000156028614});
    return scale(bind(fma(r, q, num(1)), "p"), n);
  }
  Expr exp10(const Expr& x0) { // 10^x = e^(r ln 10) 2^n with r = x - n log10(2)
    Expr x = bind(clampBelow(clampAbove(x0, 39), -46), "x");
    auto [f, n] = roundToInt(x, 3.32192809488736235);
    Expr r = bind(fma(f, num(-4.605038981195214e-6), fma(f, num(-0.301025390625), x)), "r10");
    Expr s = bind(r * num(2.302585092994046), "r");
    Expr q = poly(s, {0.4999999263, 0.1666650872, 0.04166852828, 0.008370134935, 0.001381166216});
    return scale(bind(fma(bind(s * s), q, s) + num(1), "p"), n);
  }
  Expr expm1(const Expr& x0) {
    Expr x = bind(x0, "x");
    Expr small = fma(
        bind(x * x),
        poly(x, {0.5000000446, 0.1666666674, 0.04166526151, 0.008333266584, 0.001399945169, 0.0001992891454}),
        x);
    Expr tiny = select(eq(x, num(0)), x, small); // keeps -0
    return select(fabs(x) < num(0.5), tiny, exp(x) - num(1));
  }

  struct Split {
    Expr mantissa, exponent; // mantissa - 1 in [sqrt(1/2)-1, sqrt(2)-1], exponent as float
  };
  Split split(const Expr& x) {
    Expr subnormal = x < num(1.17549435e-38);
    Expr scaled = bind(select(subnormal, x * num(8388608.0), x));
    Expr bits = bind(asInt(scaled) - integer(0x3F3504F3)); // sqrt(1/2)
    Expr e = bind(shiftRight(bits, 23));
    Expr m = bind(asFloat(asInt(scaled) - shiftLeft(e, 23)) - num(1), "f");
    Expr exponent = castTo(t_, e) - select(subnormal, num(23), num(0));
    return {m, bind(exponent, "e")};
  }
  // log(1 + f) = f - f²/2 + f³ P(f)
  Expr logTail(const Expr& f) {
    Expr f2 = bind(f * f);
    Expr p = poly(f, {0.3333331045, -0.249999866, 0.2000222625, -0.1666925049, 0.1421866432, -0.1238435878,
                      0.1187294546, -0.1178973215, 0.06915336644});
    return bind(fma(f2, num(-0.5), f2 * f * p));
  }
  Expr logSpecial(const Expr& x, const Expr& value) {
    Expr inf = num(INFINITY);
    Expr finite = select(x < inf, value, x); // +inf and NaN give themselves
    return select(x > num(0), finite, select(eq(x, num(0)), num(-INFINITY), select(x < num(0), num(NAN), x)));
  }
  Expr log(const Expr& x0) {
    Expr x = bind(x0, "x");
    auto [f, e] = split(x);
    Expr tail = fma(e, num(-2.12194440e-4), logTail(f));
    return logSpecial(x, fma(e, num(0.693359375), f + tail));
  }
  /// log_b(x) = e log_b(2) + ln(1+f) log_b(e)
  Expr logBase(const Expr& x0, double perE, double ofE) {
    double high = double(float(ofE)), low = ofE - high;
    Expr x = bind(x0, "x");
    auto [f, e] = split(x);
    Expr tail = bind(logTail(f));
    Expr sum = fma(f, num(low), fma(tail, num(high), fma(f, num(high), num(0))));
    return logSpecial(x, fma(e, num(perE), sum));
  }
  Expr log2(const Expr& x) { return logBase(x, 1, 1.44269504088896341); }
  Expr log10(const Expr& x) { return logBase(x, 0.30102999566398120, 0.43429448190325183); }
  Expr log1p(const Expr& x0) {
    Expr x = bind(x0, "x1");
    Expr u = bind(x + num(1), "u");
    Expr corrected = log(u) + div(x - (u - num(1)), u);
    Expr plain = select(eq(u, num(1)), x, corrected);
    return select(eq(x, num(INFINITY)), x, select(eq(u, num(0)), num(-INFINITY), plain));
  }

  Expr tanh(const Expr& x0) {
    Expr x = bind(x0, "x");
    Expr z = bind(x * x);
    Expr small = odd(x, z, {-0.3333328392, 0.1333149127, -0.05374349708, 0.02065058427, -0.005717041905});
    Expr a = bind(fabs(x));
    Expr big = num(1) - div(num(2), exp(clampAbove(a + a, 30)) + num(1));
    return copySign(select(a < num(0.625), small, big), x); // also keeps -0
  }
  Expr sigmoid(const Expr& x) { return div(num(1), num(1) + exp(negate(x))); }
  Expr erf(const Expr& x0) {
    Expr x = bind(x0, "x");
    Expr z = bind(x * x);
    Expr small = x * poly(z, {1.128379166, -0.3761263228, 0.1128367253, -0.02685810383, 0.005197796312,
                              -0.0008105957451, 8.215397346e-05});
    Expr a = bind(clampAbove(fabs(x), 4));
    Expr q = poly(a, {0.0001692054401, -1.129488408, -0.6334008455, -0.1082203912, 0.02508062193,
                      -0.004156257286, 0.0004313941144, -2.082867063e-05});
    Expr big = num(1) - exp(q);
    return select(a < num(0.92), small, copySign(big, x));
  }
  Expr sinh(const Expr& x0) {
    Expr x = bind(x0, "x0"), a = bind(fabs(x)), z = bind(x * x);
    Expr small = odd(x, z, {0.1666666649, 0.008333350598, 0.0001983606627, 2.817439511e-06});
    Expr big = scaledExp(a, -1) - scaledExp(negate(a), -1);
    return select(a < num(1), small, copySign(big, x));
  }
  Expr cosh(const Expr& x0) {
    Expr a = bind(fabs(x0));
    return scaledExp(a, -1) + scaledExp(negate(a), -1);
  }

  // atan on [0, 1] values with |w| <= tan(pi/8) after one reduction.
  Expr atan(const Expr& x0) {
    Expr x = bind(x0, "x"), a = bind(fabs(x));
    Expr large = bind(a > num(2.414213562)), middle = bind(a > num(0.4142135624));
    Expr w = bind(select(large, div(num(-1), a), select(middle, div(a - num(1), a + num(1)), a)), "w");
    Expr z = bind(w * w);
    Expr p = odd(w, z, {-0.3333331534, 0.1999847855, -0.1424362857, 0.1059427683, -0.06078857782});
    Expr base = select(large, num(1.5707963267948966), select(middle, num(0.78539816339744831), num(0)));
    return copySign(base + p, x);
  }
  // asin(a) for a <= 1/2 directly, else pi/2 - 2 asin(sqrt((1-a)/2)); acos likewise.
  Expr asinAcos(const Expr& x0, bool acos) {
    Expr x = bind(x0, "x"), a = bind(fabs(x));
    Expr big = bind(a > num(0.5));
    Expr z = bind(select(big, num(0.5) - a * num(0.5), a * a));
    Expr v = bind(select(big, sqrt(z), a));
    Expr p = bind(
        odd(v, z, {0.1666665987, 0.07500510924, 0.04451571903, 0.03181762215, 0.01440256554, 0.03756525811}));
    const double pi = 3.14159265358979323846;
    if (!acos) return copySign(select(big, fma(num(-2), p, num(pi / 2)), p), x);
    Expr twice = bind(p + p);
    Expr whenBig = select(x < num(0), num(pi) - twice, twice);
    return select(big, whenBig, num(pi / 2) - copySign(p, x));
  }

  Expr asin(const Expr& x) { return asinAcos(x, false); }
  Expr acos(const Expr& x) { return asinAcos(x, true); }
  Expr rsqrt(const Expr& x) { return div(num(1), sqrt(x)); }

  Expr asinh(const Expr& x0) {
    Expr y = bind(x0, "y"), a = bind(fabs(y));
    Expr huge = bind(a > num(4096));
    Expr b = bind(select(huge, num(1), a)); // keeps the unused side finite
    Expr s = bind(b * b);
    Expr t = b + div(s, num(1) + sqrt(s + num(1)));
    // log1p of t, or of a - 1 with ln 2 added for large arguments
    Expr r = log1p(select(huge, a - num(1), t)) + select(huge, num(0.6931471805599453), num(0));
    return copySign(r, y);
  }
  Expr acosh(const Expr& x0) {
    Expr y = bind(x0, "y");
    Expr huge = bind(y > num(4096));
    Expr t = bind(select(huge, num(1), y - num(1)));
    Expr r = log1p(select(huge, y - num(1), t + sqrt(fma(t, t, t + t))));
    return select(y < num(1), num(NAN), r + select(huge, num(0.6931471805599453), num(0)));
  }
  Expr atanh(const Expr& x0) {
    Expr y = bind(x0, "y"), a = bind(fabs(y));
    Expr r = log1p(div(a + a, num(1) - a)) * num(0.5);
    return copySign(r, y);
  }
  /// x^k for a small whole or half exponent; null for others.
  Expr powConstant(const Expr& x0, double k) {
    Expr x = bind(x0, "x");
    if (k == 0) return num(1);
    if (k == 1) return x;
    if (k == 2) return x * x;
    if (k == 3) return x * x * x;
    if (k == 4) {
      Expr s = bind(x * x);
      return s * s;
    }
    if (k == -1) return div(num(1), x);
    return nullptr;
  }

private:
  DType t_, int_;
  std::vector<std::pair<Var, Expr>> lets_;
};

std::optional<double> constantLanes(const Expr& e) {
  if (const auto* b = e.as<BroadcastNode>()) return constantLanes(b->value);
  if (const auto* f = e.as<FloatImmNode>()) return f->value;
  return std::nullopt;
}

struct Expansion {
  Intrin op;
  Expr (Maths::*build)(const Expr&);
};
constexpr Expansion kExpansions[] = {
    {Intrin::kExp, &Maths::exp},         {Intrin::kExp2, &Maths::exp2},   {Intrin::kExp10, &Maths::exp10},
    {Intrin::kExpm1, &Maths::expm1},     {Intrin::kLog, &Maths::log},     {Intrin::kLog2, &Maths::log2},
    {Intrin::kLog10, &Maths::log10},     {Intrin::kLog1p, &Maths::log1p}, {Intrin::kTanh, &Maths::tanh},
    {Intrin::kSigmoid, &Maths::sigmoid}, {Intrin::kErf, &Maths::erf},     {Intrin::kSinh, &Maths::sinh},
    {Intrin::kCosh, &Maths::cosh},       {Intrin::kAtan, &Maths::atan},   {Intrin::kAsin, &Maths::asin},
    {Intrin::kAcos, &Maths::acos},       {Intrin::kAsinh, &Maths::asinh}, {Intrin::kAcosh, &Maths::acosh},
    {Intrin::kAtanh, &Maths::atanh},     {Intrin::kRsqrt, &Maths::rsqrt}};

} // namespace

Expr expandIntrinsic(const Call& call) {
  if (!call->dtype.scalar().isIeee(32) || call->args.empty()) return nullptr;
  const auto* first = call->args[0].as<ExprNode>();
  if (!first || !(first->dtype == call->dtype)) return nullptr;
  Maths m(call->dtype);
  Expr x = m.bind(Expr(first), "x"), value;
  if (call->op == Intrin::kPow) {
    auto k = constantLanes(call->arg(1));
    value = k ? m.powConstant(x, *k) : nullptr;
  } else if (auto row = std::ranges::find(kExpansions, call->op, &Expansion::op);
             row != std::end(kExpansions))
    value = (m.*row->build)(x);
  return value ? m.finish(value) : nullptr;
}

} // namespace bevel

// Scalar operations on the host: integers exactly in 128 bits, floats in double.
#include "ir/evaluate.h"

#include "base/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace bevel {
namespace {

using Wide = __int128;

Wide widen(int64_t v, DType t) {
  return t.isUInt() && t.bits == 64 ? Wide(uint64_t(v)) : Wide(v);
}

bool divides(BinaryOp op) {
  return op >= BinaryOp::kDiv && op <= BinaryOp::kFloorMod;
}

Wide divide(BinaryOp op, Wide x, Wide y) {
  Wide quotient = x / y, rest = x % y;
  bool floors = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
  bool down = floors && rest != 0 && (rest < 0) != (y < 0); // the quotient towards minus infinity is one less
  return op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv ? quotient - down : rest + (down ? y : 0);
}

template <class T> bool compare(BinaryOp op, T a, T b) {
  const bool results[] = {a == b, a != b, a<b, a <= b, a> b, a >= b}; // in the order of the operators
  return results[int(op) - int(BinaryOp::kEq)];
}

} // namespace

int64_t wrapInt(DType t, int64_t v) {
  if (t.isBool()) return v != 0;
  if (!t.isInteger() || t.bits >= 64) return v;
  int shift = 64 - t.bits;
  return t.isInt() ? int64_t(uint64_t(v) << shift) >> shift : int64_t(uint64_t(v) << shift >> shift);
}

double roundFloat(DType t, double v, bool saturate) {
  if (t.isIeee(64)) return v;
  if (t.isIeee(32)) return double(float(v));
  return decodeFloat(t.scalar(), encodeFloat(t.scalar(), v, saturate));
}

int64_t floatToInt(DType t, double v) {
  if (t.isBool()) return v != 0;
  if (std::isnan(v)) return 0;
  double whole = std::trunc(v);
  if (t.isUInt() && t.bits == 64)
    return int64_t(whole <= 0 ? 0 : whole >= 18446744073709551616.0 ? ~uint64_t(0) : uint64_t(whole));
  if (whole <= double(minValue(t))) return minValue(t);
  return whole >= double(maxValue(t)) ? maxValue(t) : int64_t(whole);
}

std::optional<IntResult> evaluateInt(BinaryOp op, int64_t a, int64_t b, DType t) {
  Wide x = widen(a, t), y = widen(b, t);
  if (isComparison(op)) return IntResult{compare(op, x, y), true};
  if (divides(op) && y == 0) return std::nullopt;
  bool exact = true, whole = !t.isBool();
  auto exactly = [&]() -> Wide {
    bool out = y < 0 || y >= t.bits; // of a shift
    Wide product = 0;
    switch (op) {
    case BinaryOp::kAdd:
      return x + y;
    case BinaryOp::kSub:
      return x - y;
    case BinaryOp::kMul:
      exact = !__builtin_mul_overflow(x, y, &product);
      return product;
    case BinaryOp::kMin:
      return std::min(x, y);
    case BinaryOp::kMax:
      return std::max(x, y);
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd:
      return whole ? x & y : x && y;
    case BinaryOp::kOr:
    case BinaryOp::kBitOr:
      return whole ? x | y : x || y;
    case BinaryOp::kBitXor:
      return x ^ y;
    case BinaryOp::kShl:
      exact = !out;
      return out ? 0 : x * (Wide(1) << int(y));
    case BinaryOp::kShr:
      exact = !out;
      return out ? -Wide(x < 0) : x >> int(y);
    default:
      return divide(op, x, y);
    }
  };
  Wide r = exactly();
  int64_t value = wrapInt(t, int64_t(r));
  return IntResult{value, exact && widen(value, t) == r};
}

std::optional<int64_t> exactInt(BinaryOp op, int64_t a, int64_t b, DType t) {
  auto r = evaluateInt(op, a, b, t);
  return r && r->exact ? std::optional(r->value) : std::nullopt;
}

double evaluateFloat(BinaryOp op, double a, double b) {
  bool nan = std::isnan(a) || std::isnan(b);
  switch (op) {
  case BinaryOp::kAdd:
    return a + b;
  case BinaryOp::kSub:
    return a - b;
  case BinaryOp::kMul:
    return a * b;
  case BinaryOp::kDiv:
    return a / b;
  case BinaryOp::kMod:
    return std::fmod(a, b);
  case BinaryOp::kFloorDiv:
    return std::floor(a / b);
  case BinaryOp::kFloorMod:
    return a - std::floor(a / b) * b;
  case BinaryOp::kMin:
    return nan ? std::nan("") : std::min(a, b);
  case BinaryOp::kMax:
    return nan ? std::nan("") : std::max(a, b);
  default:
    return isComparison(op) && compare(op, a, b);
  }
}

Scalar evaluateUnary(UnaryOp op, Scalar a, DType t) {
  if (op == UnaryOp::kNeg)
    return t.isFloat() ? Scalar{0, -a.f} : Scalar{wrapInt(t, int64_t(0 - uint64_t(a.i))), 0};
  bool logical = op == UnaryOp::kNot || t.isBool();
  return {wrapInt(t, logical ? !a.i : ~a.i), 0};
}

std::optional<Scalar> evaluateBinary(BinaryOp op, Scalar a, Scalar b, DType t) {
  if (!t.isFloat()) {
    auto r = evaluateInt(op, a.i, b.i, t);
    return r ? std::optional(Scalar{r->value, 0}) : std::nullopt;
  }
  double r = evaluateFloat(op, a.f, b.f);
  return isComparison(op) ? Scalar{int64_t(r), 0} : Scalar{0, roundFloat(t, r)};
}

Scalar evaluateCast(DType to, DType from, Scalar v) {
  bool real = from.isFloat();
  if (to.isFloat())
    return {0, roundFloat(to, real ? v.f : from.isUInt() ? double(uint64_t(v.i)) : double(v.i))};
  return {real ? floatToInt(to, v.f) : wrapInt(to, v.i), 0};
}

// ---- intrinsics

namespace {

double rsqrt(double x) {
  return 1 / std::sqrt(x);
}
double exp10Of(double x) {
  return std::pow(10.0, x);
}
double sigmoidOf(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

uint64_t lowBits(DType t, int64_t v) {
  return t.bits >= 64 ? uint64_t(v) : uint64_t(v) & ((uint64_t(1) << t.bits) - 1);
}
int64_t same(DType, int64_t a, int64_t) {
  return a;
}
int64_t absolute(DType t, int64_t a, int64_t) {
  return t.isInt() && a < 0 ? int64_t(0 - uint64_t(a)) : a;
}
int64_t popcount(DType t, int64_t a, int64_t) {
  return std::popcount(lowBits(t, a));
}
int64_t leadingZeros(DType t, int64_t a, int64_t) {
  return std::countl_zero(lowBits(t, a)) - (64 - t.bits);
}
int64_t highProduct(DType t, int64_t a, int64_t b) {
  if (!t.isUInt()) return int64_t(Wide(a) * b >> t.bits);
  return int64_t(static_cast<unsigned __int128>(uint64_t(a)) * uint64_t(b) >> t.bits);
}
int64_t power(DType, int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t r = 1, x = uint64_t(a);
  for (uint64_t n = uint64_t(b); n; n >>= 1, x *= x)
    if (n & 1) r *= x;
  return int64_t(r);
}

Scalar isNan(const Scalar* a, DType t, DType) {
  return {t.isFloat() && std::isnan(a->f), 0};
}
Scalar isInf(const Scalar* a, DType t, DType) {
  return {t.isFloat() && std::isinf(a->f), 0};
}
Scalar isFinite(const Scalar* a, DType t, DType) {
  return {!t.isFloat() || std::isfinite(a->f), 0};
}
Scalar identity(const Scalar* a, DType, DType) {
  return *a;
}
Scalar reinterpretBits(const Scalar* a, DType t, DType result) {
  uint64_t bits = t.isFloat() ? encodeFloat(t.scalar(), a->f) : lowBits(t, a->i);
  return result.isFloat() ? Scalar{0, decodeFloat(result.scalar(), bits)}
                          : Scalar{wrapInt(result, int64_t(bits)), 0};
}
Scalar powerOfTwo(const Scalar* a, DType, DType result) {
  return {0, roundFloat(result, std::ldexp(1.0, int(a->i)))};
}
Scalar loadExponent(const Scalar* a, DType, DType result) {
  return {0, roundFloat(result, std::ldexp(a[0].f, int(a[1].i)))};
}
Scalar nextAfter(const Scalar* a, DType t, DType) {
  return {0, t.isIeee(32) ? double(std::nextafterf(float(a[0].f), float(a[1].f)))
                          : std::nextafter(a[0].f, a[1].f)};
}
Scalar fusedMultiplyAdd(const Scalar* a, DType t, DType result) {
  if (t.isIeee(32)) return {0, double(std::fma(float(a[0].f), float(a[1].f), float(a[2].f)))};
  return {0, roundFloat(result, std::fma(a[0].f, a[1].f, a[2].f))};
}
Scalar saturatingRound(const Scalar* a, DType t, DType result) {
  return evaluateCast(result, t, {a->i, std::nearbyint(a->f)});
}

struct Host {
  HostFunction real = nullptr, whole = nullptr; // for float operands, for integers and bools
};

// The words of intrinsics.def: a function of doubles (REAL, REAL2), of integers of a dtype (INTEGER, INTEGER2),
// one of each (BOTH, BOTH2), or of scalars of any dtype (ANY).
#define NONE                                                                                                 \
  {                                                                                                          \
  }
#define ON_REAL(fn, ...)                                                                                     \
  [](const Scalar* a, DType, DType r) { return Scalar{0, roundFloat(r, fn(__VA_ARGS__))}; }
#define ON_WHOLE(fn, second)                                                                                 \
  [](const Scalar* a, DType t, DType r) { return Scalar{wrapInt(r, fn(t, a[0].i, second)), 0}; }
#define REAL(fn) {ON_REAL(fn, a[0].f), nullptr}
#define REAL2(fn) {ON_REAL(fn, a[0].f, a[1].f), nullptr}
#define INTEGER(fn) {nullptr, ON_WHOLE(fn, 0)}
#define INTEGER2(fn) {nullptr, ON_WHOLE(fn, a[1].i)}
#define BOTH(fn, g) {ON_REAL(fn, a[0].f), ON_WHOLE(g, 0)}
#define BOTH2(fn, g) {ON_REAL(fn, a[0].f, a[1].f), ON_WHOLE(g, a[1].i)}
#define ANY(fn) {fn, fn}
const Host kHosts[] = {
#define INTRIN(id, name, effect, arity, rule, adapts, library, ...) __VA_ARGS__,
#include "ir/intrinsics.def"
#undef INTRIN
};

} // namespace

HostFunction hostFunction(Intrin op, DType operand) {
  const Host& host = kHosts[size_t(op)];
  return operand.isFloat() ? host.real : host.whole;
}

} // namespace bevel

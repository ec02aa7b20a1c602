// Lane-wise arithmetic of the reference interpreter: integers wrap, floats are computed in double and
// rounded.
#include "loop/interpreter_value.h"

#include "base/function_ref.h"
#include "base/tensor.h"
#include "ir/build.h"

#include <bit>
#include <cmath>

namespace bevel::interp {

int64_t wrapInt(DType t, int64_t v) {
  if (t.isBool()) return v != 0;
  if (!t.isInteger() || t.bits >= 64) return v;
  int shift = 64 - t.bits;
  return t.isInt() ? int64_t(uint64_t(v) << shift) >> shift : int64_t(uint64_t(v) << shift >> shift);
}

double roundFloat(DType t, double v) {
  if (t.isIeee(64)) return v;
  if (t.isIeee(32)) return double(float(v));
  return decodeFloat(t.scalar(), encodeFloat(t.scalar(), v));
}

Value Value::ofInt(DType t, int64_t v) {
  return Value(t, Lane{wrapInt(t, v), 0});
}
Value Value::ofFloat(DType t, double v) {
  return Value(t, Lane{0, roundFloat(t, v)});
}

namespace {

Value mapLanes(DType t, size_t n, FunctionRef<Lane(size_t)> f) {
  Value out;
  out.dtype = t;
  out.lanes.reserve(n);
  for (size_t i = 0; i < n; ++i) out.lanes.push_back(f(i));
  return out;
}

Lane intLane(DType t, int64_t v) {
  return {wrapInt(t, v), 0};
}
Lane floatLane(DType t, double v) {
  return {0, roundFloat(t, v)};
}

double floatOp(BinaryOp op, double a, double b) {
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
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b);
  case BinaryOp::kMax:
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
  default:
    return 0;
  }
}

// Comparison of two ordered values.
template <class T> bool compare(BinaryOp op, T a, T b) {
  switch (op) {
  case BinaryOp::kEq:
    return a == b;
  case BinaryOp::kNe:
    return a != b;
  case BinaryOp::kLt:
    return a < b;
  case BinaryOp::kLe:
    return a <= b;
  case BinaryOp::kGt:
    return a > b;
  default:
    return a >= b;
  }
}

int64_t shift(BinaryOp op, int64_t a, int64_t b, DType t) {
  bool out = b < 0 || b >= t.bits;
  if (op == BinaryOp::kShl) return out ? 0 : int64_t(uint64_t(a) << b);
  if (t.isInt()) return a >> (out ? 63 : b);
  return out ? 0 : int64_t(uint64_t(a) >> b);
}

int64_t divide(BinaryOp op, int64_t a, int64_t b, DType t) {
  if (t.isUInt()) {
    bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
    return int64_t(quotient ? uint64_t(a) / uint64_t(b) : uint64_t(a) % uint64_t(b));
  }
  switch (op) {
  case BinaryOp::kDiv:
    return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
  case BinaryOp::kMod:
    return b == -1 ? 0 : a % b;
  case BinaryOp::kFloorDiv:
    return floorDivide(a, b);
  default:
    return floorModulo(a, b);
  }
}

int64_t intOp(BinaryOp op, int64_t a, int64_t b, DType t) {
  bool below = t.isUInt() ? uint64_t(a) < uint64_t(b) : a < b;
  switch (op) {
  case BinaryOp::kAdd:
    return int64_t(uint64_t(a) + uint64_t(b));
  case BinaryOp::kSub:
    return int64_t(uint64_t(a) - uint64_t(b));
  case BinaryOp::kMul:
    return int64_t(uint64_t(a) * uint64_t(b));
  case BinaryOp::kMin:
    return below ? a : b;
  case BinaryOp::kMax:
    return below ? b : a;
  case BinaryOp::kAnd:
    return t.isBool() ? a && b : a & b;
  case BinaryOp::kOr:
    return t.isBool() ? a || b : a | b;
  case BinaryOp::kBitAnd:
    return a & b;
  case BinaryOp::kBitOr:
    return a | b;
  case BinaryOp::kBitXor:
    return a ^ b;
  case BinaryOp::kShl:
  case BinaryOp::kShr:
    return shift(op, a, b, t);
  default:
    return divide(op, a, b, t);
  }
}

bool divides(BinaryOp op) {
  return op == BinaryOp::kDiv || op == BinaryOp::kMod || op == BinaryOp::kFloorDiv ||
         op == BinaryOp::kFloorMod;
}

} // namespace

Value unary(UnaryOp op, const Value& a) {
  return mapLanes(a.dtype, a.lanes.size(), [&](size_t k) {
    const Lane& x = a.lanes[k];
    if (op == UnaryOp::kNot) return intLane(a.dtype, !x.i);
    if (op == UnaryOp::kBitNot) return intLane(a.dtype, a.dtype.isBool() ? !x.i : ~x.i);
    return a.dtype.isFloat() ? Lane{0, -x.f} : intLane(a.dtype, int64_t(0 - uint64_t(x.i)));
  });
}

std::optional<Value> binary(BinaryOp op, const Value& a, const Value& b) {
  DType t = a.dtype;
  if (divides(op) && !t.isFloat())
    for (const Lane& y : b.lanes)
      if (y.i == 0) return std::nullopt;
  DType result = isComparison(op) ? DType::Bool(t.lanes) : t;
  return mapLanes(result, a.lanes.size(), [&](size_t k) {
    const Lane &x = a.lanes[k], &y = b.lanes[k];
    if (isComparison(op)) {
      bool r = t.isFloat()  ? compare(op, x.f, y.f)
               : t.isUInt() ? compare(op, uint64_t(x.i), uint64_t(y.i))
                            : compare(op, x.i, y.i);
      return Lane{r, 0};
    }
    return t.isFloat() ? floatLane(t, floatOp(op, x.f, y.f)) : intLane(t, intOp(op, x.i, y.i, t));
  });
}

Value castValue(DType t, const Value& v) {
  return mapLanes(t, v.lanes.size(), [&](size_t k) {
    const Lane& x = v.lanes[k];
    bool fromFloat = v.dtype.isFloat();
    if (t.isBool()) return Lane{fromFloat ? x.f != 0 : x.i != 0, 0};
    if (t.isFloat())
      return floatLane(t, fromFloat ? x.f : v.dtype.isUInt() ? double(uint64_t(x.i)) : double(x.i));
    if (!fromFloat) return intLane(t, x.i);
    if (std::isnan(x.f)) return Lane{0, 0};
    double whole = std::trunc(x.f);
    if (t.isUInt() && t.bits == 64) {
      uint64_t u = whole <= 0 ? 0 : whole >= 18446744073709551616.0 ? ~uint64_t(0) : uint64_t(whole);
      return Lane{int64_t(u), 0};
    }
    double low = double(minValue(t.scalar())), high = double(maxValue(t.scalar()));
    return Lane{whole <= low    ? minValue(t.scalar())
                : whole >= high ? maxValue(t.scalar())
                                : int64_t(whole),
                0};
  });
}

namespace {

using Function1 = double (*)(double);
double rsqrt(double x) {
  return 1 / std::sqrt(x);
}
double exp10Of(double x) {
  return std::pow(10.0, x);
}
double sigmoidOf(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

Function1 floatFunction(Intrin op) {
  switch (op) {
  case Intrin::kExp:
    return std::exp;
  case Intrin::kExp2:
    return std::exp2;
  case Intrin::kExp10:
    return exp10Of;
  case Intrin::kExpm1:
    return std::expm1;
  case Intrin::kLog:
    return std::log;
  case Intrin::kLog2:
    return std::log2;
  case Intrin::kLog10:
    return std::log10;
  case Intrin::kLog1p:
    return std::log1p;
  case Intrin::kSin:
    return std::sin;
  case Intrin::kCos:
    return std::cos;
  case Intrin::kTan:
    return std::tan;
  case Intrin::kAsin:
    return std::asin;
  case Intrin::kAcos:
    return std::acos;
  case Intrin::kAtan:
    return std::atan;
  case Intrin::kSinh:
    return std::sinh;
  case Intrin::kCosh:
    return std::cosh;
  case Intrin::kTanh:
    return std::tanh;
  case Intrin::kAsinh:
    return std::asinh;
  case Intrin::kAcosh:
    return std::acosh;
  case Intrin::kAtanh:
    return std::atanh;
  case Intrin::kErf:
    return std::erf;
  case Intrin::kSigmoid:
    return sigmoidOf;
  case Intrin::kSqrt:
    return std::sqrt;
  case Intrin::kRsqrt:
    return rsqrt;
  case Intrin::kFloor:
    return std::floor;
  case Intrin::kCeil:
    return std::ceil;
  case Intrin::kTrunc:
    return std::trunc;
  case Intrin::kRound:
    return std::round;
  case Intrin::kNearbyInt:
    return std::nearbyint;
  case Intrin::kFabs:
  case Intrin::kAbs:
    return std::fabs;
  default:
    return nullptr;
  }
}

double floatFunction2(Intrin op, double a, double b, bool& known) {
  switch (op) {
  case Intrin::kPow:
    return std::pow(a, b);
  case Intrin::kAtan2:
    return std::atan2(a, b);
  case Intrin::kFmod:
    return std::fmod(a, b);
  case Intrin::kHypot:
    return std::hypot(a, b);
  case Intrin::kCopySign:
    return std::copysign(a, b);
  default:
    known = false;
    return 0;
  }
}

int64_t intFunction(Intrin op, DType t, int64_t a, int64_t b, bool& known) {
  uint64_t bits = t.bits >= 64 ? uint64_t(a) : uint64_t(a) & ((uint64_t(1) << t.bits) - 1);
  switch (op) {
  case Intrin::kAbs:
  case Intrin::kFabs:
    return t.isInt() && a < 0 ? int64_t(0 - uint64_t(a)) : a;
  case Intrin::kPopcount:
    return std::popcount(bits);
  case Intrin::kClz:
    return std::countl_zero(bits) - (64 - t.bits);
  case Intrin::kMulHigh: {
    __int128 p =
        t.isUInt() ? __int128(static_cast<unsigned __int128>(uint64_t(a)) * uint64_t(b)) : __int128(a) * b;
    return int64_t(p >> t.bits);
  }
  case Intrin::kPow: {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    uint64_t r = 1, x = uint64_t(a);
    for (uint64_t n = uint64_t(b); n; n >>= 1, x *= x)
      if (n & 1) r *= x;
    return int64_t(r);
  }
  default:
    known = false;
    return 0;
  }
}

uint64_t bitsOf(DType t, const Lane& x) {
  if (t.isFloat()) return encodeFloat(t.scalar(), x.f);
  return t.bits >= 64 ? uint64_t(x.i) : uint64_t(x.i) & ((uint64_t(1) << t.bits) - 1);
}

Lane fromBits(DType t, uint64_t b) {
  return t.isFloat() ? Lane{0, decodeFloat(t.scalar(), b)} : Lane{wrapInt(t, int64_t(b)), 0};
}

std::optional<Value> reduceLanes(Intrin op, const Value& v) {
  BinaryOp b;
  switch (op) {
  case Intrin::kVectorReduceAdd:
    b = BinaryOp::kAdd;
    break;
  case Intrin::kVectorReduceMul:
    b = BinaryOp::kMul;
    break;
  case Intrin::kVectorReduceMin:
    b = BinaryOp::kMin;
    break;
  case Intrin::kVectorReduceMax:
    b = BinaryOp::kMax;
    break;
  default:
    return std::nullopt;
  }
  Value r(v.dtype.scalar(), v.lanes[0]);
  for (size_t k = 1; k < v.lanes.size(); ++k) r = *binary(b, r, Value(v.dtype.scalar(), v.lanes[k]));
  return r;
}

Value saturatingRound(DType result, const Value& v) {
  Value rounded = v;
  for (Lane& x : rounded.lanes) x.f = std::nearbyint(x.f);
  return castValue(result, rounded);
}

std::optional<Lane> mathsLane(Intrin op, DType result, DType t, const std::vector<Value>& args, size_t k) {
  const Lane& a = args[0].lanes[k];
  Lane b = args.size() > 1 ? args[1].lanes[k] : Lane{};
  bool known = true;
  switch (op) {
  case Intrin::kIsNan:
    return Lane{t.isFloat() && std::isnan(a.f), 0};
  case Intrin::kIsInf:
    return Lane{t.isFloat() && std::isinf(a.f), 0};
  case Intrin::kIsFinite:
    return Lane{!t.isFloat() || std::isfinite(a.f), 0};
  case Intrin::kReinterpret:
    return fromBits(result, bitsOf(t, a));
  case Intrin::kFastExp2Int:
    return floatLane(result, std::ldexp(1.0, int(a.i)));
  case Intrin::kLdExp:
    return floatLane(result, std::ldexp(a.f, int(b.i)));
  case Intrin::kLikely:
  case Intrin::kAssume:
    return a;
  case Intrin::kNextAfter:
    return t.isIeee(32) ? Lane{0, double(std::nextafterf(float(a.f), float(b.f)))}
                        : Lane{0, std::nextafter(a.f, b.f)};
  case Intrin::kFma:
    if (t.isIeee(32)) return Lane{0, double(std::fma(float(a.f), float(b.f), float(args[2].lanes[k].f)))};
    return floatLane(result, std::fma(a.f, b.f, args[2].lanes[k].f));
  default:
    break;
  }
  if (!t.isFloat()) {
    int64_t r = intFunction(op, t, a.i, b.i, known);
    return known ? std::optional(intLane(result, r)) : std::nullopt;
  }
  if (Function1 f = floatFunction(op)) return floatLane(result, f(a.f));
  double r = floatFunction2(op, a.f, b.f, known);
  return known ? std::optional(floatLane(result, r)) : std::nullopt;
}

} // namespace

std::optional<Value> maths(Intrin op, DType result, const std::vector<Value>& args) {
  if (args.empty()) return std::nullopt;
  if (auto r = reduceLanes(op, args[0])) return r;
  if (op == Intrin::kSaturatingRound) return saturatingRound(result, args[0]);
  Value out;
  out.dtype = result;
  for (size_t k = 0; k < args[0].lanes.size(); ++k) {
    auto lane = mathsLane(op, result, args[0].dtype, args, k);
    if (!lane) return std::nullopt;
    out.lanes.push_back(*lane);
  }
  return out;
}

} // namespace bevel::interp

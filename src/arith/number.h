// Arithmetic on int64 that never overflows silently: checked operations, and interval operations that
// saturate.
#pragma once

#include "base/dtype.h"

#include <cstdint>
#include <numeric>
#include <optional>

namespace bevel {

inline constexpr int64_t kNegInf = INT64_MIN;
inline constexpr int64_t kPosInf = INT64_MAX;

/// Constant bounds of a value, both inclusive. kNegInf and kPosInf mean unbounded.
struct ConstBound {
  int64_t min = kNegInf, max = kPosInf;
  bool isPoint() const { return min == max && min != kNegInf && min != kPosInf; }
  bool bounded() const { return min != kNegInf && max != kPosInf; }
  bool within(int64_t lo, int64_t hi) const { return min >= lo && max <= hi; }
  friend bool operator==(const ConstBound&, const ConstBound&) = default;
};

/// All values are coeff * k + base; coeff 0 means the constant base. 0 <= base < coeff otherwise.
struct ModularSet {
  int64_t coeff = 1, base = 0;
  bool divisibleBy(int64_t c) const { return c != 0 && coeff % c == 0 && base % c == 0; }
};

namespace arith {

inline std::optional<int64_t> checkedAdd(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}
inline std::optional<int64_t> checkedSub(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_sub_overflow(a, b, &r)) return std::nullopt;
  return r;
}
inline std::optional<int64_t> checkedMul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

/// Greatest common divisor of magnitudes; INT64_MIN counts as 2^62 (still a divisor of it).
inline int64_t gcd64(int64_t a, int64_t b) {
  auto magnitude = [](int64_t x) { return x == INT64_MIN ? int64_t(1) << 62 : (x < 0 ? -x : x); };
  return std::gcd(magnitude(a), magnitude(b));
}

/// x + y, x * y with infinities; `fallback` is the infinity that is safe for an undefined sum.
inline int64_t satAdd(int64_t x, int64_t y, int64_t fallback) {
  bool inf = x == kNegInf || x == kPosInf || y == kNegInf || y == kPosInf;
  if (inf) {
    bool neg = x == kNegInf || y == kNegInf, pos = x == kPosInf || y == kPosInf;
    return neg && pos ? fallback : neg ? kNegInf : kPosInf;
  }
  if (auto r = checkedAdd(x, y)) return *r;
  return x < 0 ? kNegInf : kPosInf;
}
inline int64_t satMul(int64_t x, int64_t y) {
  if (x == 0 || y == 0) return 0;
  bool negative = (x < 0) != (y < 0);
  if (x == kNegInf || x == kPosInf || y == kNegInf || y == kPosInf) return negative ? kNegInf : kPosInf;
  if (auto r = checkedMul(x, y)) return *r;
  return negative ? kNegInf : kPosInf;
}
inline int64_t satNeg(int64_t x) {
  return x == kNegInf ? kPosInf : x == kPosInf ? kNegInf : -x;
}
/// Keeps the invariant that a lower bound is never +infinity and an upper bound never -infinity.
inline ConstBound sane(ConstBound b) {
  return {b.min == kPosInf ? kPosInf - 1 : b.min, b.max == kNegInf ? kNegInf + 1 : b.max};
}
inline ConstBound operator+(ConstBound a, ConstBound b) {
  return sane({satAdd(a.min, b.min, kNegInf), satAdd(a.max, b.max, kPosInf)});
}
inline ConstBound operator-(ConstBound a, ConstBound b) {
  // -(kNegInf + 1) is the infinity's own value: as a lower bound it must stay finite.
  if (b.max == kNegInf + 1) b.max = kNegInf + 2;
  return sane({satAdd(a.min, satNeg(b.max), kNegInf), satAdd(a.max, satNeg(b.min), kPosInf)});
}
inline ConstBound operator*(ConstBound a, ConstBound b) {
  int64_t p[] = {satMul(a.min, b.min), satMul(a.min, b.max), satMul(a.max, b.min), satMul(a.max, b.max)};
  ConstBound r{p[0], p[0]};
  for (int64_t v : p) r = {v < r.min ? v : r.min, v > r.max ? v : r.max};
  return sane(r);
}
inline ConstBound scaled(ConstBound a, int64_t c) {
  return a * ConstBound{c, c};
}
inline ConstBound hull(ConstBound a, ConstBound b) {
  return {a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
}
inline ConstBound meet(ConstBound a, ConstBound b) {
  return {a.min > b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
}

/// All values of a dtype; unbounded for 64 bits.
inline ConstBound dtypeBound(DType t) {
  if (t.isBool()) return {0, 1};
  if (t.isUInt()) return {0, t.bits >= 64 ? kPosInf : maxValue(t)};
  if (t.isInt() && t.bits < 64) return {minValue(t), maxValue(t)};
  return {};
}
/// Whether a constant is a value of the dtype.
inline bool fitsDType(int64_t v, DType t) {
  if (t.isBool()) return v == 0 || v == 1;
  if (t.isUInt() && t.bits >= 64) return v >= 0;
  return !t.isInteger() || t.bits >= 64 || (v >= minValue(t) && v <= maxValue(t));
}
/// Index arithmetic, which does not overflow by the IR's contract.
inline bool isIndexType(DType t) {
  return t.isInt() && t.bits >= 32;
}

} // namespace arith
} // namespace bevel

// Host tensors: storage, element access, and the small float formats.
#include "base/tensor.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace bevel {

Result<int64_t> elementCount(std::span<const int64_t> shape) {
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : shape) {
    if (d < 0) return fail(ErrorCode::kInvalid, "negative dimension " + std::to_string(d));
    if (d == 0)
      zero = true;
    else if (n > (int64_t(1) << 62) / d)
      return fail(ErrorCode::kInvalid, "tensor size overflows 2^62 elements");
    else
      n *= d;
  }
  return zero ? 0 : n;
}

std::optional<FloatFormat> floatFormat(DType t) {
  switch (t.code) {
  case TypeCode::kFloat:
    return t.bits == 16 ? std::optional(FloatFormat{5, 10, 15, true, false, true}) : std::nullopt;
  case TypeCode::kBFloat:
    return FloatFormat{8, 7, 127, true, false, true};
  case TypeCode::kFloat8E4M3FN:
    return FloatFormat{4, 3, 7, false, false, true};
  case TypeCode::kFloat8E4M3FNUZ:
    return FloatFormat{4, 3, 8, false, true, true};
  case TypeCode::kFloat8E5M2:
    return FloatFormat{5, 2, 15, true, false, true};
  case TypeCode::kFloat8E5M2FNUZ:
    return FloatFormat{5, 2, 16, false, true, true};
  case TypeCode::kFloat4E2M1FN:
    return FloatFormat{2, 1, 1, false, false, false};
  default:
    return std::nullopt;
  }
}

double decodeFloat(DType t, uint64_t bits) {
  if (t.isIeee(32)) return std::bit_cast<float>(uint32_t(bits));
  if (t.isIeee(64)) return std::bit_cast<double>(bits);
  if (t.code == TypeCode::kFloat8E8M0FNU)
    return bits == 255 ? std::nan("") : std::ldexp(1.0, int(bits) - 127);
  auto f = floatFormat(t);
  BEVEL_ASSERT(f.has_value(), "not a float type");
  uint64_t sign = bits >> f->magnitudeBits() & 1, code = bits & f->magnitudeMask();
  uint64_t mantissa = code & ((uint64_t(1) << f->mantissa) - 1);
  int exponent = int(code >> f->mantissa);
  if (f->negativeZeroIsNan && sign && code == 0) return std::nan("");
  if (code > f->largest())
    return f->hasInfinity && mantissa == 0 ? (sign ? -INFINITY : INFINITY) : std::nan("");
  double value = exponent == 0 ? std::ldexp(double(mantissa), 1 - f->bias - f->mantissa)
                               : std::ldexp(double(mantissa + (uint64_t(1) << f->mantissa)),
                                            exponent - f->bias - f->mantissa);
  return sign ? -value : value;
}

namespace {

// Rounds |value| to the format's nearest code, ties to even; may exceed the largest finite code.
uint64_t roundToCode(const FloatFormat& f, double magnitude) {
  if (magnitude == 0) return 0; // frexp gives no exponent for it
  int e = 0;
  std::frexp(magnitude, &e); // magnitude = m * 2^e with m in [0.5, 1)
  int exponent = std::max(e - 1 + f.bias, 1);
  double scaled = std::ldexp(magnitude, f.mantissa - (exponent - f.bias)); // in units of the last place
  auto units = uint64_t(std::nearbyint(scaled));
  return (uint64_t(exponent - 1) << f.mantissa) + units; // a carry moves into the exponent by itself
}

} // namespace

uint64_t encodeFloat(DType t, double value, bool saturate) {
  if (t.isIeee(32)) return std::bit_cast<uint32_t>(float(value));
  if (t.isIeee(64)) return std::bit_cast<uint64_t>(value);
  if (t.code == TypeCode::kFloat8E8M0FNU) {
    if (!(value > 0)) return std::isnan(value) ? 255 : 0;
    double e = std::round(std::log2(value)) + 127;
    return e < 0 ? 0 : e > 254 ? 254 : uint64_t(e);
  }
  auto f = floatFormat(t);
  BEVEL_ASSERT(f.has_value(), "not a float type");
  uint64_t top = f->largest(), sign = uint64_t(std::signbit(value)) << f->magnitudeBits();
  uint64_t nan = f->negativeZeroIsNan ? uint64_t(1) << f->magnitudeBits() // the only one, without a sign
                 : !f->hasNan         ? top
                 : f->hasInfinity     ? sign | f->infinity() | (uint64_t(1) << (f->mantissa - 1))
                                      : sign | f->magnitudeMask();
  if (std::isnan(value)) return nan;
  uint64_t code = std::isinf(value) ? top + 1 : roundToCode(*f, std::min(std::fabs(value), 1e300));
  if (code > top) {
    bool wide = t.bits == 16; // fp16 and bfloat16 overflow to infinity
    if (f->hasInfinity && (wide || !saturate))
      code = top + 1;
    else if (saturate || !f->hasNan)
      code = top;
    else
      return nan;
  }
  return code == 0 && f->negativeZeroIsNan ? 0 : sign | code;
}

namespace {

uint64_t loadBits(const TensorObject& t, int64_t i) {
  int bits = t.dtype.bits;
  const auto* p = reinterpret_cast<const uint8_t*>(t.bytes());
  if (bits < 8) {
    int64_t bit = i * bits;
    return (p[bit / 8] >> (bit % 8)) & ((1u << bits) - 1);
  }
  uint64_t value = 0;
  std::memcpy(&value, p + i * (bits / 8), size_t(bits / 8));
  return value;
}

void storeBits(TensorObject& t, int64_t i, uint64_t value) {
  int bits = t.dtype.bits;
  auto* p = reinterpret_cast<uint8_t*>(t.mutableBytes());
  if (bits < 8) {
    int64_t bit = i * bits;
    uint8_t mask = uint8_t(((1u << bits) - 1) << (bit % 8));
    p[bit / 8] = uint8_t((p[bit / 8] & ~mask) | ((value << (bit % 8)) & mask));
    return;
  }
  std::memcpy(p + i * (bits / 8), &value, size_t(bits / 8));
}

int64_t signExtend(uint64_t value, int bits) {
  return bits >= 64 ? int64_t(value) : int64_t(value << (64 - bits)) >> (64 - bits);
}

int64_t saturateToInt64(double v) {
  if (std::isnan(v)) return 0;
  if (v >= 9.2233720368547758e18) return std::numeric_limits<int64_t>::max();
  if (v <= -9.2233720368547758e18) return std::numeric_limits<int64_t>::min();
  return int64_t(v);
}

} // namespace

double TensorObject::asDouble(int64_t i) const {
  uint64_t raw = loadBits(*this, i);
  if (dtype.isFloat()) return decodeFloat(dtype, raw);
  if (dtype.isInt()) return double(signExtend(raw, dtype.bits));
  return double(raw);
}

int64_t TensorObject::asInt(int64_t i) const {
  uint64_t raw = loadBits(*this, i);
  if (dtype.isFloat()) return saturateToInt64(decodeFloat(dtype, raw));
  return dtype.isInt() ? signExtend(raw, dtype.bits) : int64_t(raw);
}

void TensorObject::setDouble(int64_t i, double value) {
  if (dtype.isFloat()) return storeBits(*this, i, encodeFloat(dtype, value));
  if (dtype.isBool()) return storeBits(*this, i, value != 0);
  double rounded = std::nearbyint(value);
  double low = double(minValue(dtype)), high = double(maxValue(dtype));
  if (dtype.isUInt() && dtype.bits == 64) {
    bool top = rounded >= 18446744073709551615.0;
    return storeBits(*this, i,
                     std::isnan(rounded) || rounded < 0 ? 0
                     : top                              ? ~uint64_t(0)
                                                        : uint64_t(rounded));
  }
  storeBits(*this, i,
            uint64_t(rounded <= low    ? minValue(dtype)
                     : rounded >= high ? maxValue(dtype)
                                       : saturateToInt64(rounded)));
}

void TensorObject::setInt(int64_t i, int64_t value) {
  if (dtype.isFloat()) return storeBits(*this, i, encodeFloat(dtype, double(value)));
  storeBits(*this, i, dtype.isBool() ? value != 0 : uint64_t(value));
}

Ref<TensorObject> TensorObject::zeros(DType dtype, std::vector<int64_t> shape) {
  auto t = make<TensorObject>();
  t->dtype = dtype;
  auto count = elementCount(shape);
  BEVEL_ASSERT(count.has_value(), "shape was not checked");
  t->size_ = *count;
  t->shape = std::move(shape);
  if (dtype.isString()) {
    t->strings.resize(size_t(t->size_));
    return t;
  }
  size_t bytes = (size_t(t->byteSize()) + 64 + 63) / 64 * 64; // slack: vector loads may touch past the end
  void* memory = std::aligned_alloc(64, bytes);
  if (!memory) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  t->owner_ = std::shared_ptr<const void>(memory, [](const void* p) { std::free(const_cast<void*>(p)); });
  t->data_ = static_cast<const std::byte*>(memory);
  return t;
}

Ref<TensorObject> TensorObject::wrap(DType dtype, std::vector<int64_t> shape, const std::byte* data,
                                     std::shared_ptr<const void> owner) {
  auto t = make<TensorObject>();
  auto count = elementCount(shape);
  BEVEL_ASSERT(count.has_value(), "shape was not checked");
  t->dtype = dtype;
  t->shape = std::move(shape);
  t->size_ = *count;
  t->data_ = data;
  t->owner_ = std::move(owner);
  return t;
}

Ref<TensorObject> TensorObject::ofStrings(std::vector<int64_t> shape, std::vector<std::string> values) {
  auto t = zeros(DType::String(), std::move(shape));
  BEVEL_ASSERT(t->size() == int64_t(values.size()), "value count differs from the shape");
  t->strings = std::move(values);
  return t;
}

bool identical(const TensorObject& a, const TensorObject& b) {
  if (&a == &b) return true;
  if (!(a.dtype == b.dtype) || a.shape != b.shape || a.strings != b.strings) return false;
  if (a.bytes() == b.bytes() || a.dtype.isString()) return true;
  return std::memcmp(a.bytes(), b.bytes(), size_t(a.byteSize())) == 0;
}

} // namespace bevel

// Reading of arguments and elements: see access.h.
#include "runtime/ops/access.h"

#include <cmath>
#include <cstring>

namespace bevel::rt {

Status Args::refuse(const char* what) const {
  return fail(BEVEL_ERROR_REFUSED, "%s: %s", name_, what);
}

Status Args::tensor(int32_t i, Ref<Tensor>* tensor) const {
  if (i >= count_ || args_[i].kind != BEVEL_TENSOR)
    return fail(BEVEL_ERROR_REFUSED, "%s: argument %d is %s, expected a tensor", name_, i,
                kindName(i < count_ ? args_[i].kind : int32_t(BEVEL_NONE)));
  *tensor = makeCompact(Ref<Tensor>::share(static_cast<Tensor*>(args_[i].v.tensor)));
  return *tensor ? BEVEL_OK : lastStatus();
}

Status Args::integer(int32_t i, int64_t otherwise, int64_t* value) const {
  *value = otherwise;
  if (!has(i)) return BEVEL_OK;
  if (args_[i].kind == BEVEL_TENSOR) return scalarInt(*static_cast<Tensor*>(args_[i].v.tensor), value);
  if (args_[i].kind != BEVEL_INT) return refuse("expected an integer");
  *value = args_[i].v.i;
  return BEVEL_OK;
}

Status Args::number(int32_t i, double otherwise, double* value) const {
  *value = otherwise;
  if (!has(i)) return BEVEL_OK;
  if (args_[i].kind == BEVEL_INT)
    *value = double(args_[i].v.i);
  else if (args_[i].kind == BEVEL_FLOAT)
    *value = args_[i].v.f;
  else {
    Ref<Tensor> t;
    BEVEL_RT_TRY(tensor(i, &t));
    if (t->elements() != 1 || t->isText() || t->dl.dtype.code == BEVEL_COMPLEX_CODE)
      return refuse("expected a number");
    *value = elementNumber(*t, 0);
  }
  return BEVEL_OK;
}

Status Args::text(int32_t i, const char* otherwise, std::string* value) const {
  *value = otherwise;
  if (!has(i)) return BEVEL_OK;
  if (args_[i].kind != BEVEL_STRING) return refuse("expected text");
  *value = static_cast<String*>(args_[i].v.string)->text;
  return BEVEL_OK;
}

Status Args::axis(int32_t i, int64_t otherwise, int32_t rank, int32_t* axis) const {
  int64_t value;
  BEVEL_RT_TRY(integer(i, otherwise, &value));
  if (value < 0) value += rank;
  if (value < 0 || value >= rank) return refuse("the axis is out of range");
  *axis = int32_t(value);
  return BEVEL_OK;
}

/// A float of `exponent` and `mantissa` bits and that bias. The ends of the range are read by the caller.
static double decode(uint32_t bits, int exponent, int mantissa, int bias) {
  double sign = bits >> (exponent + mantissa) & 1 ? -1 : 1;
  int e = int(bits >> mantissa & ((1u << exponent) - 1));
  double m = double(bits & ((1u << mantissa) - 1));
  return sign * (e ? std::ldexp(1 + std::ldexp(m, -mantissa), e - bias) : std::ldexp(m, 1 - bias - mantissa));
}

static double smallFloat(int code, uint32_t bits) {
  uint32_t magnitude = bits & 0x7f;
  switch (code) {
  case BEVEL_F8E4M3FN_CODE:
    return magnitude == 0x7f ? NAN : decode(bits, 4, 3, 7);
  case BEVEL_F8E4M3FNUZ_CODE:
    return bits == 0x80 ? NAN : decode(bits, 4, 3, 8);
  case BEVEL_F8E5M2_CODE:
    if (magnitude >= 0x7c) return magnitude > 0x7c ? NAN : bits & 0x80 ? -INFINITY : INFINITY;
    return decode(bits, 5, 2, 15);
  case BEVEL_F8E5M2FNUZ_CODE:
    return bits == 0x80 ? NAN : decode(bits, 5, 2, 16);
  case BEVEL_F8E8M0_CODE:
    return bits == 0xff ? NAN : std::ldexp(1.0, int(bits) - 127);
  case BEVEL_F4E2M1_CODE:
    return decode(bits, 2, 1, 1);
  default:
    return NAN;
  }
}

static uint32_t packedBits(const Tensor& t, int64_t i) {
  int bits = t.dl.dtype.bits, perByte = 8 / bits;
  return uint32_t(t.data<uint8_t>()[i / perByte] >> (i % perByte * bits)) & ((1u << bits) - 1);
}

static double floatElement(const Tensor& t, int64_t i) {
  int code = t.dl.dtype.code, bits = t.dl.dtype.bits;
  if (code == BEVEL_BFLOAT_CODE) {
    uint32_t wide = uint32_t(t.data<uint16_t>()[i]) << 16;
    float f;
    memcpy(&f, &wide, 4);
    return f;
  }
  if (code != BEVEL_FLOAT_CODE) return smallFloat(code, bits < 8 ? packedBits(t, i) : t.data<uint8_t>()[i]);
  if (bits == 64) return t.data<double>()[i];
  if (bits == 32) return t.data<float>()[i];
  uint32_t half = t.data<uint16_t>()[i], magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) return magnitude > 0x7c00 ? NAN : half & 0x8000 ? -INFINITY : INFINITY;
  return decode(half, 5, 10, 15);
}

static bool isInteger(bevel_dtype t) {
  return t.code == BEVEL_INT_CODE || t.code == BEVEL_UINT_CODE || t.code == BEVEL_BOOL_CODE;
}

static int64_t integerElement(const Tensor& t, int64_t i) {
  int64_t value = 0;
  if (t.dl.dtype.bits >= 8) {
    (void)elementInt(t, i, &value);
    return value;
  }
  value = packedBits(t, i);
  if (t.dl.dtype.code == BEVEL_INT_CODE && value >> (t.dl.dtype.bits - 1))
    value -= int64_t(1) << t.dl.dtype.bits;
  return value;
}

double elementNumber(const Tensor& t, int64_t i) {
  if (!isInteger(t.dl.dtype)) return floatElement(t, i);
  int64_t value = integerElement(t, i);
  return t.dl.dtype.code == BEVEL_UINT_CODE && t.dl.dtype.bits == 64 ? double(uint64_t(value))
                                                                     : double(value);
}

Status Keys::read(const Tensor& t, Keys* keys) {
  if (t.isText() || t.dl.dtype.code == BEVEL_COMPLEX_CODE)
    return fail(BEVEL_ERROR_REFUSED, "elements of %s have no order", dtypeName(t.dl.dtype).c_str());
  int64_t n = t.elements();
  if (isInteger(t.dl.dtype)) {
    keys->class_ = t.dl.dtype.code == BEVEL_UINT_CODE ? Class::kUnsigned : Class::kSigned;
    keys->integers_.resize(size_t(n));
    for (int64_t i = 0; i < n; ++i) keys->integers_[size_t(i)] = integerElement(t, i);
  } else {
    keys->class_ = Class::kFloat;
    keys->floats_.resize(size_t(n));
    for (int64_t i = 0; i < n; ++i) keys->floats_[size_t(i)] = floatElement(t, i);
  }
  return BEVEL_OK;
}

bool Keys::less(int64_t a, int64_t b) const {
  size_t i = size_t(a), j = size_t(b);
  if (class_ == Class::kSigned) return integers_[i] < integers_[j];
  if (class_ == Class::kUnsigned) return uint64_t(integers_[i]) < uint64_t(integers_[j]);
  return floats_[i] < floats_[j] || (std::isnan(floats_[j]) && !std::isnan(floats_[i]));
}

double Keys::number(int64_t i) const {
  if (class_ == Class::kFloat) return floats_[size_t(i)];
  return class_ == Class::kSigned ? double(integers_[size_t(i)]) : double(uint64_t(integers_[size_t(i)]));
}

void copyElement(const Tensor& from, int64_t i, Tensor& to, int64_t j) {
  int bits = to.dl.dtype.bits;
  if (to.isText()) {
    to.text(j) = from.storage->strings[size_t(i)];
  } else if (bits >= 8) {
    size_t bytes = size_t(bits) / 8;
    memcpy(to.data<char>() + size_t(j) * bytes, from.data<char>() + size_t(i) * bytes, bytes);
  } else {
    int perByte = 8 / bits, shift = int(j % perByte) * bits;
    uint8_t& place = to.data<uint8_t>()[j / perByte];
    place = uint8_t((place & ~(((1 << bits) - 1) << shift)) | int(packedBits(from, i)) << shift);
  }
}

Status give(bevel_value* result, Ref<Tensor> tensor) {
  if (!tensor) return lastStatus();
  *result = Value::of(std::move(tensor)).leak();
  return BEVEL_OK;
}

Status give(bevel_value* result, std::initializer_list<Ref<Tensor>> tensors) {
  auto list = Ref<List>::adopt(new List);
  for (const Ref<Tensor>& tensor : tensors) {
    if (!tensor) return lastStatus();
    BEVEL_RT_TRY(list->append(Value::of(tensor)));
  }
  *result = Value::of(std::move(list)).leak();
  return BEVEL_OK;
}

AroundAxis::AroundAxis(const Tensor& t, int32_t axis) {
  for (int32_t i = 0; i < t.dl.ndim; ++i) (i < axis ? outer : i == axis ? extent : inner) *= t.dl.shape[i];
  if (t.elements() == 0) outer = inner = 0; // and not many rows without an element
}

std::vector<int64_t> shapeOf(const Tensor& t) {
  return {t.dl.shape, t.dl.shape + t.dl.ndim};
}

} // namespace bevel::rt

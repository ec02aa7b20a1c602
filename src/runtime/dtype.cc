// Element types: validity, sizes, names; strided copies.
#include "runtime/dtype.h"

#include <cstring>
#include <utility>
#include <vector>

namespace bevel::rt {

bool isValidDtype(bevel_dtype t) {
  if (t.lanes != 1) return false;
  auto oneOf = [&](std::initializer_list<int> widths) {
    for (int w : widths)
      if (t.bits == w) return true;
    return false;
  };
  switch (t.code) {
  case BEVEL_INT_CODE:
  case BEVEL_UINT_CODE:
    return oneOf({2, 4, 8, 16, 32, 64});
  case BEVEL_FLOAT_CODE:
    return oneOf({16, 32, 64});
  case BEVEL_BFLOAT_CODE:
    return t.bits == 16;
  case BEVEL_COMPLEX_CODE:
    return oneOf({64, 128});
  case BEVEL_F4E2M1_CODE:
    return t.bits == 4;
  case BEVEL_STRING_CODE:
    return t.bits == 0;
  default:
    return t.code >= BEVEL_BOOL_CODE && t.code <= BEVEL_F8E8M0_CODE && t.bits == 8;
  }
}

std::string dtypeName(bevel_dtype t) {
  static const char* const kFloat8[] = {
      "bool",          "float8_e3m4",     "float8_e4m3", "float8_e4m3b11fnuz",
      "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
      "float8_e8m0fnu"};
  if (!isValidDtype(t)) {
    char text[64];
    snprintf(text, sizeof text, "dtype(code %d, %d bits, %d lanes)", t.code, t.bits, t.lanes);
    return text;
  }
  switch (t.code) {
  case BEVEL_INT_CODE:
    return "int" + std::to_string(t.bits);
  case BEVEL_UINT_CODE:
    return "uint" + std::to_string(t.bits);
  case BEVEL_FLOAT_CODE:
    return "float" + std::to_string(t.bits);
  case BEVEL_BFLOAT_CODE:
    return "bfloat16";
  case BEVEL_COMPLEX_CODE:
    return "complex" + std::to_string(t.bits);
  case BEVEL_F4E2M1_CODE:
    return "float4_e2m1fn";
  case BEVEL_STRING_CODE:
    return "string";
  default:
    return kFloat8[t.code - BEVEL_BOOL_CODE];
  }
}

int64_t numElements(int32_t rank, const int64_t* shape) {
  bool empty = false;
  for (int32_t i = 0; i < rank; ++i) {
    if (shape[i] < 0) return -1;
    empty |= shape[i] == 0;
  }
  if (empty) return 0;
  int64_t n = 1;
  for (int32_t i = 0; i < rank; ++i)
    if (__builtin_mul_overflow(n, shape[i], &n)) return -1;
  return n;
}

int64_t numBytes(bevel_dtype type, int32_t rank, const int64_t* shape) {
  int64_t n = numElements(rank, shape);
  if (n < 0 || n > INT64_MAX / 256) return -1;
  return (n * type.bits + 7) / 8;
}

std::string describeTensor(const DLTensor& t) {
  std::string text = dtypeName(t.dtype) + "[";
  for (int i = 0; i < t.ndim; ++i) text += (i ? ", " : "") + std::to_string(t.shape[i]);
  return text + "]";
}

bool isCompact(const DLTensor& t) {
  if (!t.strides) return true;
  int64_t expected = 1;
  for (int i = 0; i < t.ndim; ++i)
    if (t.shape[i] == 0) return true; // nothing to order
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}

/// The first byte of the elements and the one after the last.
static std::pair<uintptr_t, uintptr_t> extentOf(const DLTensor& t) {
  auto begin = reinterpret_cast<uintptr_t>(t.data) + t.byte_offset;
  int64_t bytes = numBytes(t.dtype, t.ndim, t.shape);
  if (isCompact(t)) return {begin, begin + uintptr_t(bytes)};
  int64_t size = (t.dtype.bits + 7) / 8, first = 0, last = 0; // of the last element
  for (int i = 0; i < t.ndim; ++i)
    (t.strides[i] < 0 ? first : last) += (t.shape[i] - 1) * t.strides[i] * size;
  return {begin + uintptr_t(first), begin + uintptr_t(last + size)};
}

bool sharesMemory(const DLTensor& a, const DLTensor& b) {
  auto [aBegin, aEnd] = extentOf(a);
  auto [bBegin, bEnd] = extentOf(b);
  return aBegin < aEnd && bBegin < bEnd && aBegin < bEnd && bBegin < aEnd;
}

Status copyStrided(const DLTensor& from, const DLTensor& to) {
  int64_t n = numElements(from.ndim, from.shape);
  auto* in = static_cast<const char*>(from.data) + from.byte_offset;
  auto* out = static_cast<char*>(to.data) + to.byte_offset;
  if (isCompact(from) && isCompact(to)) {
    if (n > 0) memmove(out, in, size_t(numBytes(from.dtype, from.ndim, from.shape)));
    return BEVEL_OK;
  }
  if (from.dtype.bits % 8)
    return fail(BEVEL_ERROR_REFUSED, "a %s tensor must be compact", dtypeName(from.dtype).c_str());
  size_t bytes = from.dtype.bits / 8;
  int rank = from.ndim;
  std::vector<int64_t> index(size_t(rank), 0), inStride(index), outStride(index);
  auto fillStrides = [&](const DLTensor& t, std::vector<int64_t>& strides) {
    int64_t compact = 1;
    for (int i = rank - 1; i >= 0; --i) {
      strides[size_t(i)] = (t.strides ? t.strides[i] : compact) * int64_t(bytes);
      compact *= t.shape[i];
    }
  };
  fillStrides(from, inStride);
  fillStrides(to, outStride);
  int64_t inner = rank ? from.shape[rank - 1] : 1; // the last axis runs in a plain loop, the others count up
  for (int64_t done = 0; done < n; done += inner) {
    for (int64_t i = 0; i < inner; ++i) {
      int64_t inOffset = rank ? i * inStride[size_t(rank - 1)] : 0,
              outOffset = rank ? i * outStride[size_t(rank - 1)] : 0;
      memcpy(out + outOffset, in + inOffset, bytes);
    }
    for (int axis = rank - 2; axis >= 0; --axis) {
      size_t a = size_t(axis);
      in += inStride[a], out += outStride[a];
      if (++index[a] < from.shape[axis]) break;
      in -= inStride[a] * index[a], out -= outStride[a] * index[a];
      index[a] = 0;
    }
  }
  return BEVEL_OK;
}

} // namespace bevel::rt

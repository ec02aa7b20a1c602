// Element types: validity, sizes, names.
#pragma once

#include "runtime/status.h"

#include <string>

namespace bevel::rt {

inline bool operator==(bevel_dtype a, bevel_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

inline constexpr bevel_dtype makeDtype(int code, int bits) {
  return {uint8_t(code), uint8_t(bits), 1};
}
inline constexpr bevel_dtype kInt64 = makeDtype(BEVEL_INT_CODE, 64);
inline constexpr bevel_dtype kInt32 = makeDtype(BEVEL_INT_CODE, 32);
inline constexpr bevel_dtype kFloat32 = makeDtype(BEVEL_FLOAT_CODE, 32);
inline constexpr bevel_dtype kFloat64 = makeDtype(BEVEL_FLOAT_CODE, 64);
inline constexpr bevel_dtype kBool = makeDtype(BEVEL_BOOL_CODE, 8);
inline constexpr bevel_dtype kString = makeDtype(BEVEL_STRING_CODE, 0);

inline constexpr uint32_t packDtype(bevel_dtype t) {
  return uint32_t(t.code) | uint32_t(t.bits) << 8 | uint32_t(t.lanes) << 16;
}
inline constexpr bevel_dtype unpackDtype(uint32_t word) {
  return {uint8_t(word), uint8_t(word >> 8), uint16_t(word >> 16)};
}

inline bool isString(bevel_dtype t) {
  return t.code == BEVEL_STRING_CODE;
}

/// Whether tensors can have this element type.
bool isValidDtype(bevel_dtype type);

/// "float32", "uint4", "bool", "string", …
std::string dtypeName(bevel_dtype type);

/// Product of the extents; -1 where one is negative or the product overflows.
int64_t numElements(int32_t rank, const int64_t* shape);

/// Bytes of a compact tensor; -1 where a size is negative or too large. 0 for text.
int64_t numBytes(bevel_dtype type, int32_t rank, const int64_t* shape);

/// "float32[1, 3, 224, 224]".
std::string describeTensor(const DLTensor& tensor);

/// Whether the elements lie densely in row-major order.
bool isCompact(const DLTensor& tensor);

/// Whether an element of one may lie in memory of the other's: their first and last bytes enclose a common one.
bool sharesMemory(const DLTensor& a, const DLTensor& b);

/// Copies between CPU tensors of one dtype and shape with any strides. Sub-byte types must be compact on both
/// sides.
Status copyStrided(const DLTensor& from, const DLTensor& to);

} // namespace bevel::rt

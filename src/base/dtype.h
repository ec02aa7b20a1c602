// Element types: what a scalar, a vector lane or a tensor element is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bevel {

/// What the bits of one lane mean: DLPack's codes, and three more.
enum class TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,   // IEEE: 16, 32, 64 bits
  kHandle = 3,  // a pointer
  kBFloat = 4,  // 16 bits
  kComplex = 5, // 64 (two fp32) or 128 bits
  kBool = 6,
  kFloat8E4M3FN = 10,   // no infinities, one NaN
  kFloat8E4M3FNUZ = 11, // no infinities, no negative zero
  kFloat8E5M2 = 12,     // IEEE-like
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0FNU = 14, // a power of two, the scale of block formats
  kFloat4E2M1FN = 17,
  kString = 64,
  kVoid = 255,
};

/// An element type with its number of vector lanes. Sub-byte types (int4, uint4, int2, uint2, float4) are
/// stored packed, low bits first, as ONNX stores them; addressing is in elements.
struct DType {
  TypeCode code = TypeCode::kVoid;
  uint8_t bits = 0;
  uint16_t lanes = 1;

  static constexpr DType Bool(int lanes = 1) { return {TypeCode::kBool, 8, uint16_t(lanes)}; }
  static constexpr DType Int(int bits, int lanes = 1) {
    return {TypeCode::kInt, uint8_t(bits), uint16_t(lanes)};
  }
  static constexpr DType UInt(int bits, int lanes = 1) {
    return {TypeCode::kUInt, uint8_t(bits), uint16_t(lanes)};
  }
  static constexpr DType Float(int bits, int lanes = 1) {
    return {TypeCode::kFloat, uint8_t(bits), uint16_t(lanes)};
  }
  static constexpr DType BFloat16(int lanes = 1) { return {TypeCode::kBFloat, 16, uint16_t(lanes)}; }
  static constexpr DType Handle() { return {TypeCode::kHandle, 64, 1}; }
  static constexpr DType String() { return {TypeCode::kString, 0, 1}; }
  static constexpr DType Void() { return {}; }

  constexpr bool isVoid() const { return code == TypeCode::kVoid; }
  constexpr bool isBool() const { return code == TypeCode::kBool; }
  constexpr bool isInt() const { return code == TypeCode::kInt; }
  constexpr bool isUInt() const { return code == TypeCode::kUInt; }
  /// Signed or unsigned integer; not bool.
  constexpr bool isInteger() const { return isInt() || isUInt(); }
  constexpr bool isIndex() const { return isInteger() && bits >= 32 && lanes == 1; }
  /// Any real floating-point format (IEEE, bfloat16, 8 and 4 bit formats).
  constexpr bool isFloat() const {
    return code == TypeCode::kFloat || code == TypeCode::kBFloat ||
           (code >= TypeCode::kFloat8E4M3FN && code <= TypeCode::kFloat4E2M1FN);
  }
  constexpr bool isIeee(int width) const { return code == TypeCode::kFloat && bits == width; }
  constexpr bool isHandle() const { return code == TypeCode::kHandle; }
  constexpr bool isString() const { return code == TypeCode::kString; }
  constexpr bool isVector() const { return lanes > 1; }
  constexpr DType withLanes(int n) const { return {code, bits, uint16_t(n)}; }
  constexpr DType scalar() const { return withLanes(1); }
  /// Bytes that n elements occupy in memory, sub-byte types packed.
  constexpr int64_t bytesFor(int64_t n) const { return (n * bits * lanes + 7) / 8; }

  friend constexpr bool operator==(DType a, DType b) = default;

  /// The field's spelling: "float32", "int8x16", "bool", "bfloat16", "float8_e4m3fn", "uint4", "handle",
  /// "void".
  std::string str() const;
  /// Reads such a spelling ("boolean"/"uint1" included); nothing when it names no type.
  static std::optional<DType> parse(std::string_view text);
};

constexpr DType kInt32 = DType::Int(32);
constexpr DType kInt64 = DType::Int(64);
constexpr DType kFloat32 = DType::Float(32);
constexpr DType kBool = DType::Bool();

/// Smallest and largest value of an integer type (bool: 0 and 1); uint64's maximum is clipped to int64's.
int64_t minValue(DType dtype);
int64_t maxValue(DType dtype);

} // namespace bevel

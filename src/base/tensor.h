// Host tensors: constants, inputs and results, as the compiler holds them.
#pragma once

#include "base/dtype.h"
#include "base/object.h"
#include "base/result.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bevel {

/// Number of elements of a shape; an error when a dimension is negative or the product overflows 2^62.
Result<int64_t> elementCount(std::span<const int64_t> shape);

/// A dense row-major tensor in host memory. The bytes are shared: owned, or part of a mapped file (never
/// copied). String tensors hold `strings` and no bytes.
class TensorObject : public Object {
public:
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::string> strings;

  int64_t size() const { return size_; } // in elements
  int64_t byteSize() const { return dtype.bytesFor(size_); }
  const std::byte* bytes() const { return data_; }
  /// Only for the maker of an owned tensor, before it is shared.
  std::byte* mutableBytes() { return const_cast<std::byte*>(data_); }
  template <class T> std::span<const T> view() const {
    return {reinterpret_cast<const T*>(data_), size_t(size_)};
  }
  template <class T> std::span<T> mutableView() {
    return {reinterpret_cast<T*>(mutableBytes()), size_t(size_)};
  }
  /// Element i converted to double or int64 (any real dtype, sub-byte included; saturating for ints).
  double asDouble(int64_t i) const;
  int64_t asInt(int64_t i) const;
  void setDouble(int64_t i, double value); // rounds to nearest even, saturates as the dtype defines
  void setInt(int64_t i, int64_t value);   // integers and bool wrap as two's complement

  /// Zero-filled, 64-byte aligned. The shape must have passed elementCount.
  static Ref<TensorObject> zeros(DType dtype, std::vector<int64_t> shape);
  /// Wraps memory that `owner` keeps alive.
  static Ref<TensorObject> wrap(DType dtype, std::vector<int64_t> shape, const std::byte* data,
                                std::shared_ptr<const void> owner);
  static Ref<TensorObject> ofStrings(std::vector<int64_t> shape, std::vector<std::string> values);
  template <class T>
  static Ref<TensorObject> of(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values);

private:
  int64_t size_ = 0;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};
using Tensor = Ref<const TensorObject>;

template <class T>
Ref<TensorObject> TensorObject::of(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  auto t = zeros(dtype, std::move(shape));
  BEVEL_ASSERT(t->size() == int64_t(values.size()), "value count differs from the shape");
  for (int64_t i = 0; i < t->size(); ++i)
    if constexpr (std::is_floating_point_v<T>)
      t->setDouble(i, double(values[size_t(i)]));
    else
      t->setInt(i, int64_t(values[size_t(i)]));
  return t;
}

/// Same dtype, shape and bytes.
bool identical(const TensorObject& a, const TensorObject& b);

/// A binary float format of 16 bits or fewer, but for powers of two (E8M0).
struct FloatFormat {
  int exponent, mantissa, bias;
  bool hasInfinity;       // under the exponent of all ones, which is ordinary elsewhere
  bool negativeZeroIsNan; // FNUZ: the code of -0 is the only NaN
  bool hasNan;

  int magnitudeBits() const { return exponent + mantissa; }
  uint64_t magnitudeMask() const { return (uint64_t(1) << magnitudeBits()) - 1; }
  uint64_t infinity() const { return magnitudeMask() & ~((uint64_t(1) << mantissa) - 1); } // where it has one
  /// The largest finite magnitude.
  uint64_t largest() const {
    if (hasInfinity) return infinity() - 1;
    return hasNan && !negativeZeroIsNan ? magnitudeMask() - 1 : magnitudeMask();
  }
};
std::optional<FloatFormat> floatFormat(DType dtype);

/// Conversions between fp32/fp64 and the small formats: round to nearest even; NaN stays NaN; overflow as the
/// format defines (infinity where it has one and `saturate` is false, else the largest finite value).
double decodeFloat(DType dtype, uint64_t bits);
uint64_t encodeFloat(DType dtype, double value, bool saturate = true);

} // namespace bevel

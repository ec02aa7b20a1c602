// Tensors: a DLTensor over counted storage. Inside the runtime they are compact (row-major, byte offset 0)
// unless they came from outside; `compact` says so, and makeCompact copies those that are not.
#pragma once

#include "runtime/device.h"
#include "runtime/dtype.h"
#include "runtime/object.h"

#include <functional>
#include <memory>

namespace bevel::rt {

/// Memory that tensors are views of: of a device's, borrowed, taken over by DLPack, or a list of texts.
class Storage final : public Object, public bevel_object {
public:
  ~Storage() override;
  /// Memory of the device's; null when out of memory (the message is set).
  static Ref<Storage> alloc(uint64_t bytes, DLDevice device = kCpu);
  static Ref<Storage> borrow(void* data, uint64_t bytes, DLDevice device = kCpu);
  static Ref<Storage> takeOver(DLManagedTensor* managed, uint64_t bytes);
  static Ref<Storage> texts(int64_t count);

  /// Whether the memory is somebody else's, who may free it.
  bool borrowed() const { return data && !owner_ && !managed_; }

  void* data = nullptr;
  uint64_t bytes = 0;
  DLDevice device = kCpu;
  bool planned = false;             // by vm.alloc_storage: a call site keeps it between runs
  std::vector<std::string> strings; // of a text tensor

private:
  Storage() = default;
  const DeviceApi* owner_ = nullptr; // frees data
  DLManagedTensor* managed_ = nullptr;
};

class Tensor final : public Object, public bevel_tensor {
public:
  /// A tensor with memory of its own; null on failure (the message is set).
  static Ref<Tensor> make(bevel_dtype dtype, int32_t rank, const int64_t* shape, DLDevice device = kCpu);
  static Ref<Tensor> make(bevel_dtype dtype, const std::vector<int64_t>& shape) {
    return make(dtype, int32_t(shape.size()), shape.data());
  }
  /// A compact view at a byte offset of the storage, which must hold it; null on failure (the message is
  /// set).
  static Ref<Tensor> view(Ref<Storage> storage, uint64_t offset, bevel_dtype dtype, int32_t rank,
                          const int64_t* shape);
  /// Same elements under another shape of as many elements; null on failure.
  static Ref<Tensor> reshape(Tensor& source, int32_t rank, const int64_t* shape);
  /// A tensor over memory of the caller's, strides kept.
  static Ref<Tensor> borrow(const DLTensor& tensor);
  static Ref<Tensor> fromDlpack(DLManagedTensor* managed);
  static Ref<Tensor> fromInts(const std::vector<int64_t>& values);

  /// Points this tensor elsewhere. Only for one that nobody else sees.
  Status assign(Ref<Storage> storage, uint64_t offset, bevel_dtype dtype, int32_t rank, const int64_t* shape);

  int64_t elements() const { return numElements(dl.ndim, dl.shape); }
  int64_t bytes() const { return numBytes(dl.dtype, dl.ndim, dl.shape); }
  bool isText() const { return isString(dl.dtype); }
  std::string& text(int64_t i) { return storage->strings[size_t(i)]; }
  template <class T> T* data() const { return static_cast<T*>(dl.data); }

  Ref<Storage> storage;
  bool compact = true;

private:
  static constexpr int kInline = 6;
  Status setShape(int32_t rank, const int64_t* shape, const int64_t* strides);
  int64_t inline_[2 * kInline]; // shape, then strides
  std::unique_ptr<int64_t[]> more_;
  int32_t capacity_ = kInline;
};

/// The tensor itself where compact and aligned to its element, else a compact copy; null on failure.
Ref<Tensor> makeCompact(Ref<Tensor> tensor);

/// A compact copy with memory of its own; null on failure.
Ref<Tensor> copyTensor(Tensor& tensor);

/// Replaces tensors whose storage `passing` tells of by copies, in lists too.
Status settle(Value& value, const std::function<bool(const Storage&)>& passing);

/// Copies the elements (dtype and shape must agree; text too).
Status copyInto(Tensor& from, Tensor& to);

/// Checks what a caller hands in: rank, sizes, dtype, pointers, device.
Status checkForeign(const DLTensor& tensor);

/// The tensor's memory shared with others: holds a reference until its deleter is called. Null on failure.
DLManagedTensor* toDlpack(Tensor& tensor);

/// The only element of an integer, bool or floating-point tensor as an integer.
Status scalarInt(const Tensor& tensor, int64_t* value);

/// Element `i` of an int8 … int64, uint8 … uint64 or bool tensor.
Status elementInt(const Tensor& tensor, int64_t i, int64_t* value);

/// "float32[1, 3]" or "text", for messages about a value of the wrong kind.
std::string describe(const Value& value);

} // namespace bevel::rt

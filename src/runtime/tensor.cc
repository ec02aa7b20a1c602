// Storage and tensors: making, viewing, exchanging by DLPack.
#include "runtime/tensor.h"

#include <cstring>

namespace bevel::rt {

Storage::~Storage() {
  if (owner_) owner_->free(device.device_id, data);
  if (managed_ && managed_->deleter) managed_->deleter(managed_);
}

Ref<Storage> Storage::alloc(uint64_t bytes, DLDevice device) {
  const DeviceApi* api = findDevice(device.device_type);
  if (!api) {
    (void)fail(BEVEL_ERROR_REFUSED, "this runtime has no device of type %d", int(device.device_type));
    return {};
  }
  void* data = api->alloc(device.device_id, bytes ? size_t(bytes) : 1);
  if (!data) {
    (void)fail(BEVEL_ERROR_MEMORY, "out of memory: %llu bytes", static_cast<unsigned long long>(bytes));
    return {};
  }
  auto storage = Ref<Storage>::adopt(new Storage);
  storage->data = data, storage->bytes = bytes, storage->device = device, storage->owner_ = api;
  return storage;
}

Ref<Storage> Storage::borrow(void* data, uint64_t bytes, DLDevice device) {
  auto storage = Ref<Storage>::adopt(new Storage);
  storage->data = data, storage->bytes = bytes, storage->device = device;
  return storage;
}

Ref<Storage> Storage::takeOver(DLManagedTensor* managed, uint64_t bytes) {
  auto storage = borrow(static_cast<char*>(managed->dl_tensor.data) + managed->dl_tensor.byte_offset, bytes,
                        managed->dl_tensor.device);
  storage->managed_ = managed;
  return storage;
}

Ref<Storage> Storage::texts(int64_t count) {
  auto storage = Ref<Storage>::adopt(new Storage);
  storage->strings.resize(size_t(count));
  return storage;
}

Status Tensor::setShape(int32_t rank, const int64_t* shape, const int64_t* strides) {
  if (rank > capacity_) {
    more_.reset(new int64_t[2 * size_t(rank)]);
    capacity_ = rank;
  }
  int64_t* own = more_ ? more_.get() : inline_;
  dl.shape = own, dl.strides = own + rank, dl.ndim = rank;
  int64_t compactStride = 1;
  for (int32_t i = rank - 1; i >= 0; --i) {
    own[i] = shape[i];
    own[rank + i] = strides ? strides[i] : compactStride;
    compactStride *= shape[i] > 1 ? shape[i] : 1;
  }
  return BEVEL_OK;
}

Status Tensor::assign(Ref<Storage> from, uint64_t offset, bevel_dtype dtype, int32_t rank,
                      const int64_t* shape) {
  int64_t bytes = numBytes(dtype, rank, shape);
  if (rank < 0 || bytes < 0) return fail(BEVEL_ERROR_REFUSED, "a tensor's size is negative or too large");
  bool text = isString(dtype);
  if (text ? numElements(rank, shape) != int64_t(from->strings.size())
           : offset > from->bytes || uint64_t(bytes) > from->bytes - offset)
    return fail(BEVEL_ERROR_INTERNAL, "a view of %lld bytes at %llu does not fit storage of %llu bytes",
                static_cast<long long>(bytes), static_cast<unsigned long long>(offset),
                static_cast<unsigned long long>(from->bytes));
  BEVEL_RT_TRY(setShape(rank, shape, nullptr));
  dl.data = text ? nullptr : static_cast<char*>(from->data) + offset;
  dl.device = from->device, dl.dtype = dtype, dl.byte_offset = 0;
  compact = true;
  storage = std::move(from);
  return BEVEL_OK;
}

Ref<Tensor> Tensor::view(Ref<Storage> storage, uint64_t offset, bevel_dtype dtype, int32_t rank,
                         const int64_t* shape) {
  auto tensor = Ref<Tensor>::adopt(new Tensor);
  if (tensor->assign(std::move(storage), offset, dtype, rank, shape)) return {};
  return tensor;
}

Ref<Tensor> Tensor::make(bevel_dtype dtype, int32_t rank, const int64_t* shape, DLDevice device) {
  int64_t bytes = isValidDtype(dtype) && rank >= 0 ? numBytes(dtype, rank, shape) : -1;
  if (bytes < 0) {
    (void)fail(BEVEL_ERROR_REFUSED,
               "cannot make a tensor: its dtype is unknown, or its size is negative or too large");
    return {};
  }
  int64_t count = numElements(rank, shape);
  if (isString(dtype) && count > INT64_MAX / int64_t(sizeof(std::string)) / 2) {
    (void)fail(BEVEL_ERROR_MEMORY, "out of memory: %lld texts", static_cast<long long>(count));
    return {};
  }
  auto storage = isString(dtype) ? Storage::texts(count) : Storage::alloc(uint64_t(bytes), device);
  if (!storage) return {};
  return view(std::move(storage), 0, dtype, rank, shape);
}

Ref<Tensor> Tensor::reshape(Tensor& source, int32_t rank, const int64_t* shape) {
  if (!source.compact) {
    (void)fail(BEVEL_ERROR_INTERNAL, "reshape of a tensor that is not compact");
    return {};
  }
  if (numElements(rank, shape) != source.elements()) {
    std::string to;
    for (int32_t i = 0; i < rank; ++i) to += (i ? ", " : "") + std::to_string(shape[i]);
    (void)fail(BEVEL_ERROR_REFUSED, "cannot reshape %s to [%s]: another number of elements",
               describeTensor(source.dl).c_str(), to.c_str());
    return {};
  }
  uint64_t offset =
      source.isText() ? 0 : uint64_t(source.data<char>() - static_cast<char*>(source.storage->data));
  return view(source.storage, offset, source.dl.dtype, rank, shape);
}

Ref<Tensor> Tensor::borrow(const DLTensor& from) {
  auto tensor = Ref<Tensor>::adopt(new Tensor);
  if (tensor->setShape(from.ndim, from.shape, from.strides)) return {};
  void* data = static_cast<char*>(from.data) + from.byte_offset;
  int64_t bytes = numBytes(from.dtype, from.ndim, from.shape);
  tensor->storage = Storage::borrow(data, bytes < 0 ? 0 : uint64_t(bytes), from.device);
  tensor->dl.data = data, tensor->dl.device = from.device, tensor->dl.dtype = from.dtype,
  tensor->dl.byte_offset = 0;
  tensor->compact = isCompact(from);
  return tensor;
}

Ref<Tensor> Tensor::fromDlpack(DLManagedTensor* managed) {
  auto tensor = borrow(managed->dl_tensor);
  if (tensor) tensor->storage = Storage::takeOver(managed, tensor->storage->bytes);
  return tensor;
}

Ref<Tensor> Tensor::fromInts(const std::vector<int64_t>& values) {
  int64_t n = int64_t(values.size());
  auto tensor = make(kInt64, 1, &n);
  if (tensor && n) memcpy(tensor->dl.data, values.data(), size_t(n) * 8);
  return tensor;
}

Ref<Tensor> copyTensor(Tensor& tensor) {
  auto copy = Tensor::make(tensor.dl.dtype, tensor.dl.ndim, tensor.dl.shape, tensor.dl.device);
  if (copy && copyInto(tensor, *copy)) return {};
  return copy;
}

Ref<Tensor> makeCompact(Ref<Tensor> tensor) {
  if (tensor->isText()) return tensor;
  unsigned element = unsigned(tensor->dl.dtype.bits + 7) / 8;
  unsigned align = element > 8 ? 8 : element; // complex numbers are aligned to their parts
  if (tensor->compact && reinterpret_cast<uintptr_t>(tensor->dl.data) % align == 0) return tensor;
  return copyTensor(*tensor);
}

Status copyInto(Tensor& from, Tensor& to) {
  bool same = from.dl.dtype == to.dl.dtype && from.dl.ndim == to.dl.ndim;
  for (int i = 0; same && i < from.dl.ndim; ++i) same = from.dl.shape[i] == to.dl.shape[i];
  if (!same)
    return fail(BEVEL_ERROR_REFUSED, "cannot copy %s into %s", describeTensor(from.dl).c_str(),
                describeTensor(to.dl).c_str());
  if (from.isText()) {
    to.storage->strings = from.storage->strings;
    return BEVEL_OK;
  }
  if (from.dl.device.device_type == kDLCPU && to.dl.device.device_type == kDLCPU)
    return copyStrided(from.dl, to.dl);
  const DeviceApi* api = findDevice(from.dl.device.device_type == kDLCPU ? to.dl.device.device_type
                                                                         : from.dl.device.device_type);
  if (!api || !from.compact || !to.compact)
    return fail(BEVEL_ERROR_REFUSED, "no way to copy between these devices");
  return api->copy(from.dl.data, from.dl.device, to.dl.data, to.dl.device, size_t(from.bytes()));
}

static bool needsSettling(const Value& value, const std::function<bool(const Storage&)>& passing) {
  if (Tensor* tensor = value.tensor()) return !tensor->isText() && passing(*tensor->storage);
  if (List* list = value.list())
    for (const Value& item : list->items)
      if (needsSettling(item, passing)) return true;
  return false;
}

Status settle(Value& value, const std::function<bool(const Storage&)>& passing) {
  if (!needsSettling(value, passing)) return BEVEL_OK;
  if (Tensor* tensor = value.tensor()) {
    auto copy = copyTensor(*tensor);
    if (!copy) return lastStatus();
    value = Value::of(std::move(copy));
    return BEVEL_OK;
  }
  auto list = Ref<List>::adopt(new List);
  for (Value item : value.list()->items) {
    BEVEL_RT_TRY(settle(item, passing));
    BEVEL_RT_TRY(list->append(std::move(item)));
  }
  value = Value::of(std::move(list));
  return BEVEL_OK;
}

Status checkForeign(const DLTensor& t) {
  if (t.ndim < 0 || t.ndim > 64 || (t.ndim > 0 && !t.shape))
    return fail(BEVEL_ERROR_USAGE, "a tensor's rank is %d or its shape is missing", t.ndim);
  if (!isValidDtype(t.dtype) || isString(t.dtype))
    return fail(BEVEL_ERROR_REFUSED, "a tensor's dtype cannot be taken: %s", dtypeName(t.dtype).c_str());
  int64_t bytes = numBytes(t.dtype, t.ndim, t.shape);
  if (bytes < 0) return fail(BEVEL_ERROR_REFUSED, "a tensor's size is negative or too large");
  if (bytes > 0 && !t.data) return fail(BEVEL_ERROR_USAGE, "a tensor has no data");
  if (!findDevice(t.device.device_type))
    return fail(BEVEL_ERROR_REFUSED, "a tensor lies on a device of type %d, which this runtime has not",
                int(t.device.device_type));
  return BEVEL_OK;
}

namespace {
struct Exported {
  DLManagedTensor managed;
  Ref<Tensor> tensor;
};
} // namespace

DLManagedTensor* toDlpack(Tensor& tensor) {
  if (tensor.isText()) {
    (void)fail(BEVEL_ERROR_REFUSED, "a text tensor cannot be shared by DLPack");
    return nullptr;
  }
  auto* exported = new Exported{{}, Ref<Tensor>::share(&tensor)};
  exported->managed.dl_tensor = tensor.dl;
  exported->managed.manager_ctx = exported;
  exported->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
  return &exported->managed;
}

Status elementInt(const Tensor& t, int64_t i, int64_t* value) {
  int code = t.dl.dtype.code, bits = t.dl.dtype.bits;
  bool isSigned = code == BEVEL_INT_CODE;
  if (!isSigned && code != BEVEL_UINT_CODE && code != BEVEL_BOOL_CODE) bits = 0;
  switch (bits) {
  case 8:
    *value = isSigned ? t.data<int8_t>()[i] : t.data<uint8_t>()[i];
    return BEVEL_OK;
  case 16:
    *value = isSigned ? t.data<int16_t>()[i] : t.data<uint16_t>()[i];
    return BEVEL_OK;
  case 32:
    *value = isSigned ? int64_t(t.data<int32_t>()[i]) : int64_t(t.data<uint32_t>()[i]);
    return BEVEL_OK;
  case 64:
    *value = t.data<int64_t>()[i];
    return BEVEL_OK;
  default:
    return fail(BEVEL_ERROR_REFUSED, "expected integers, given %s", dtypeName(t.dl.dtype).c_str());
  }
}

Status scalarInt(const Tensor& t, int64_t* value) {
  if (t.elements() != 1)
    return fail(BEVEL_ERROR_REFUSED, "expected one element, given %s", describeTensor(t.dl).c_str());
  double number;
  if (t.dl.dtype == kFloat32)
    number = *t.data<float>();
  else if (t.dl.dtype == kFloat64)
    number = *t.data<double>();
  else
    return elementInt(t, 0, value);
  if (!(number > -9.2e18 && number < 9.2e18))
    return fail(BEVEL_ERROR_REFUSED, "%g is no 64-bit integer", number);
  // A fraction between -1 and 1 must stay true as a condition.
  *value = number != 0 && number > -1 && number < 1 ? 1 : int64_t(number);
  return BEVEL_OK;
}

std::string describe(const Value& value) {
  return value.tensor() ? describeTensor(value.tensor()->dl) : kindName(value.kind());
}

} // namespace bevel::rt

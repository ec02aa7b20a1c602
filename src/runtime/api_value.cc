// C API: values, tensors, text, lists.
#include "runtime/api.h"

using namespace bevel::rt;

void bevel_retain(const bevel_value* value) {
  if (value) Value::retainRaw(*value);
}

void bevel_release(bevel_value* value) {
  if (!value) return;
  Value::releaseRaw(*value);
  value->kind = BEVEL_NONE;
}

static Status handOut(Ref<Tensor> tensor, bevel_tensor** out) {
  if (!tensor) return lastStatus();
  *out = tensor.leak();
  return BEVEL_OK;
}

int32_t bevel_tensor_new(bevel_dtype dtype, int32_t rank, const int64_t* shape, bevel_tensor** tensor) {
  if (!tensor || (rank > 0 && !shape)) return nullArgument("bevel_tensor_new");
  *tensor = nullptr;
  return guarded([&] { return handOut(Tensor::make(dtype, rank, shape), tensor); });
}

int32_t bevel_tensor_from_dlpack(DLManagedTensor* managed, bevel_tensor** tensor) {
  if (!managed || !tensor) return nullArgument("bevel_tensor_from_dlpack");
  *tensor = nullptr;
  return guarded([&]() -> Status {
    BEVEL_RT_TRY(checkForeign(managed->dl_tensor));
    return handOut(Tensor::fromDlpack(managed), tensor);
  });
}

int32_t bevel_tensor_to_dlpack(bevel_tensor* tensor, DLManagedTensor** managed) {
  if (!tensor || !managed) return nullArgument("bevel_tensor_to_dlpack");
  return guarded([&]() -> Status {
    *managed = toDlpack(*static_cast<Tensor*>(tensor));
    return *managed ? BEVEL_OK : lastStatus();
  });
}

const DLTensor* bevel_tensor_view(const bevel_tensor* tensor) {
  return tensor ? &tensor->dl : nullptr;
}

int64_t bevel_tensor_bytes(const DLTensor* tensor) {
  return isValidDtype(tensor->dtype) ? numBytes(tensor->dtype, tensor->ndim, tensor->shape) : -1;
}

static Status textElement(const bevel_tensor* handle, int64_t index, std::string** text) {
  auto* tensor = const_cast<Tensor*>(static_cast<const Tensor*>(handle));
  if (!tensor || !tensor->isText()) return fail(BEVEL_ERROR_USAGE, "not a text tensor");
  if (index < 0 || index >= tensor->elements())
    return fail(BEVEL_ERROR_USAGE, "no element %lld", static_cast<long long>(index));
  *text = &tensor->text(index);
  return BEVEL_OK;
}

int32_t bevel_tensor_string(const bevel_tensor* tensor, int64_t index, const char** data, size_t* size) {
  std::string* text = nullptr;
  BEVEL_RT_TRY(textElement(tensor, index, &text));
  *data = text->data(), *size = text->size();
  return BEVEL_OK;
}

int32_t bevel_tensor_set_string(bevel_tensor* tensor, int64_t index, const char* data, size_t size) {
  if (size && !data) return nullArgument("bevel_tensor_set_string");
  std::string* text = nullptr;
  BEVEL_RT_TRY(textElement(tensor, index, &text));
  return guarded([&]() -> Status {
    text->assign(data ? data : "", size);
    return BEVEL_OK;
  });
}

void bevel_tensor_release(bevel_tensor* tensor) {
  if (tensor) static_cast<Tensor*>(tensor)->release();
}

int32_t bevel_string_new(const char* data, size_t size, bevel_value* value) {
  if (!value || (size && !data)) return nullArgument("bevel_string_new");
  return guarded([&]() -> Status {
    *value = Value::of(Ref<String>::adopt(new String(std::string(data ? data : "", size)))).leak();
    return BEVEL_OK;
  });
}

int32_t bevel_string_get(const bevel_value* value, const char** data, size_t* size) {
  if (!value || value->kind != BEVEL_STRING) return fail(BEVEL_ERROR_USAGE, "not a text value");
  const std::string& text = static_cast<String*>(value->v.string)->text;
  *data = text.data(), *size = text.size();
  return BEVEL_OK;
}

static List* toList(const bevel_value* value) {
  return value && value->kind == BEVEL_LIST ? static_cast<List*>(value->v.list) : nullptr;
}

int32_t bevel_list_new(bevel_value* value) {
  if (!value) return nullArgument("bevel_list_new");
  return guarded([&]() -> Status {
    *value = Value::of(Ref<List>::adopt(new List)).leak();
    return BEVEL_OK;
  });
}

int64_t bevel_list_size(const bevel_value* list) {
  return toList(list) ? int64_t(toList(list)->items.size()) : -1;
}

int32_t bevel_list_append(const bevel_value* list, const bevel_value* item) {
  if (!toList(list) || !item) return fail(BEVEL_ERROR_USAGE, "not a list");
  return guarded([&]() -> Status {
    Value value;
    BEVEL_RT_TRY(fromOutside(*item, &value));
    if (value.list() == toList(list)) return fail(BEVEL_ERROR_USAGE, "a list cannot hold itself");
    return toList(list)->append(std::move(value));
  });
}

int32_t bevel_list_get(const bevel_value* list, int64_t index, bevel_value* item) {
  if (!toList(list) || !item) return fail(BEVEL_ERROR_USAGE, "not a list");
  auto& items = toList(list)->items;
  if (index < 0 || uint64_t(index) >= items.size())
    return fail(BEVEL_ERROR_USAGE, "no item %lld", static_cast<long long>(index));
  *item = items[size_t(index)].raw();
  return BEVEL_OK;
}

// Values: conversions between handles and objects.
#include "runtime/object.h"

#include "runtime/tensor.h"

#include <algorithm>

namespace bevel::rt {

List::List() = default;
List::~List() = default;

Status List::append(Value item) {
  static constexpr int32_t kMaxDepth = 64;
  if (List* inner = item.list()) depth_ = std::max(depth_, inner->depth_ + 1);
  if (depth_ > kMaxDepth) return fail(BEVEL_ERROR_REFUSED, "lists are nested more than %d deep", kMaxDepth);
  items.push_back(std::move(item));
  return BEVEL_OK;
}

Object* Value::counted(const bevel_value& raw) {
  switch (raw.kind) {
  case BEVEL_TENSOR:
    return static_cast<Tensor*>(raw.v.tensor);
  case BEVEL_STRING:
    return static_cast<String*>(raw.v.string);
  case BEVEL_LIST:
    return static_cast<List*>(raw.v.list);
  default:
    return static_cast<Storage*>(raw.v.object);
  }
}

Tensor* Value::tensor() const {
  return kind() == BEVEL_TENSOR ? static_cast<Tensor*>(raw_.v.tensor) : nullptr;
}

Value Value::ofInt(int64_t i) {
  Value v;
  v.raw_.kind = BEVEL_INT;
  v.raw_.v.i = i;
  return v;
}

Value Value::ofFloat(double f) {
  Value v;
  v.raw_.kind = BEVEL_FLOAT;
  v.raw_.v.f = f;
  return v;
}

Value Value::of(Ref<Tensor> tensor) {
  Value v;
  if (!tensor) return v;
  v.raw_.kind = BEVEL_TENSOR;
  v.raw_.v.tensor = tensor.leak();
  return v;
}

Value Value::of(Ref<String> string) {
  Value v;
  if (!string) return v;
  v.raw_.kind = BEVEL_STRING;
  v.raw_.v.string = string.leak();
  return v;
}

Value Value::of(Ref<List> list) {
  Value v;
  if (!list) return v;
  v.raw_.kind = BEVEL_LIST;
  v.raw_.v.list = list.leak();
  return v;
}

Value Value::ofObject(bevel_object* adopted) {
  Value v;
  if (!adopted) return v;
  v.raw_.kind = BEVEL_OBJECT;
  v.raw_.v.object = adopted;
  return v;
}

const char* kindName(int32_t kind) {
  static const char* const kNames[] = {"nothing", "an integer", "a float", "a tensor",
                                       "text",    "a list",     "storage", "a view"};
  return kind >= 0 && kind <= BEVEL_VIEW ? kNames[kind] : "an unknown kind of value";
}

} // namespace bevel::rt

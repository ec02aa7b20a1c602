// Counted objects and the value that holds one: tensors, text, lists, storage.
#pragma once

#include "runtime/status.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

// The handles of the C API are bases of the objects behind them, so that conversions are static casts.
struct bevel_tensor {
  DLTensor dl;
};
struct bevel_string {};
struct bevel_list {};
struct bevel_object {};

namespace bevel::rt {

/// Root of all counted objects; starts with one reference, which Ref::adopt takes.
class Object {
public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// Whether the caller's reference is the only one: then nobody else can see a change.
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }

private:
  std::atomic<int32_t> refs_{1};
};

/// A counted pointer.
template <class T> class Ref {
public:
  Ref() = default;
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  static Ref share(T* p) {
    if (p) p->retain();
    return adopt(p);
  }
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->retain();
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) p_->release();
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_; }
  T* leak() { return std::exchange(p_, nullptr); }

private:
  T* p_ = nullptr;
};

class String final : public Object, public bevel_string {
public:
  explicit String(std::string t) : text(std::move(t)) {}
  const std::string text;
};

class Tensor;
class Value;

/// A tuple or an ONNX sequence.
class List final : public Object, public bevel_list {
public:
  List();
  ~List() override;
  std::vector<Value> items;
  /// Refuses lists nested so deeply that releasing them could overflow the stack. Add items by this only.
  Status append(Value item);

private:
  int32_t depth_ = 1;
};

/// A bevel_value that holds a reference.
class Value {
public:
  Value() { raw_.v.i = 0; }
  Value(const Value& o) : raw_(o.raw_) { retainRaw(raw_); }
  Value(Value&& o) noexcept : raw_(o.raw_) { o.raw_.kind = BEVEL_NONE; }
  Value& operator=(Value o) noexcept {
    std::swap(raw_, o.raw_);
    return *this;
  }
  ~Value() { releaseRaw(raw_); }

  static Value ofInt(int64_t i);
  static Value ofFloat(double f);
  static Value of(Ref<Tensor> tensor);
  static Value of(Ref<String> string);
  static Value of(Ref<List> list);
  static Value ofObject(bevel_object* adopted);
  /// Takes over the reference that `raw` holds.
  static Value adopt(bevel_value raw) {
    Value v;
    v.raw_ = raw;
    return v;
  }
  static Value share(const bevel_value& raw) {
    retainRaw(raw);
    return adopt(raw);
  }
  /// Gives the reference to the caller and becomes none.
  bevel_value leak() {
    bevel_value raw = raw_;
    raw_.kind = BEVEL_NONE;
    return raw;
  }
  void clear() {
    releaseRaw(raw_);
    raw_.kind = BEVEL_NONE;
  }

  const bevel_value& raw() const { return raw_; }
  int32_t kind() const { return raw_.kind; }
  bool isNone() const { return raw_.kind == BEVEL_NONE; }
  /// The object of that kind, or null.
  Tensor* tensor() const;
  String* string() const { return kind() == BEVEL_STRING ? static_cast<String*>(raw_.v.string) : nullptr; }
  List* list() const { return kind() == BEVEL_LIST ? static_cast<List*>(raw_.v.list) : nullptr; }
  bevel_object* object() const { return kind() == BEVEL_OBJECT ? raw_.v.object : nullptr; }

  static void retainRaw(const bevel_value& raw) {
    if (raw.kind >= BEVEL_TENSOR && raw.kind <= BEVEL_OBJECT) counted(raw)->retain();
  }
  static void releaseRaw(const bevel_value& raw) {
    if (raw.kind >= BEVEL_TENSOR && raw.kind <= BEVEL_OBJECT) counted(raw)->release();
  }

private:
  static Object* counted(const bevel_value& raw);
  bevel_value raw_ = {BEVEL_NONE, 0, {}};
};

/// "an int", "a tensor", …: for messages.
const char* kindName(int32_t kind);

} // namespace bevel::rt

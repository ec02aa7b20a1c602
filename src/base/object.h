// The root of everything shared: intrusively reference-counted objects and the smart pointer to them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace bevel {

/// Base of reference-counted objects. Objects are shared between threads, hence the atomic count.
class Object {
public:
  Object() = default;
  Object(const Object&) {}
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// True when exactly one reference exists; the holder may then change the object in place.
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }

private:
  mutable std::atomic<uint32_t> refs_{0};
};

/// Untyped part of Ref: every Ref<T> has this layout, so containers of references can be walked generically.
class RefBase {
public:
  RefBase() = default;
  explicit RefBase(const Object* object) : object_(object) {
    if (object_) object_->retain();
  }
  RefBase(const RefBase& other) : RefBase(other.object_) {}
  RefBase(RefBase&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  RefBase& operator=(RefBase other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~RefBase() {
    if (object_) object_->release();
  }
  explicit operator bool() const { return object_ != nullptr; }
  const Object* object() const { return object_; }

protected:
  const Object* object_ = nullptr;
};

/// Reference to an immutable (T const) or mutable object. Comparison is identity.
template <class T> class Ref : public RefBase {
public:
  using Target = T;
  Ref() = default;
  Ref(std::nullptr_t) {}
  Ref(T* object) : RefBase(object) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& other) : RefBase(other) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& other) : RefBase(std::move(other)) {}

  T* get() const { return static_cast<T*>(const_cast<Object*>(object_)); }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }

  /// The node as kind U, or null when it is another kind (or when this is null).
  template <class U> const U* as() const {
    return object_ && U::classof(get()) ? static_cast<const U*>(get()) : nullptr;
  }
  template <class U> bool is() const { return as<U>() != nullptr; }

  friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }
  friend bool operator==(const Ref& a, std::nullptr_t) { return a.object_ == nullptr; }
};

/// Downcast that the caller has already checked.
template <class U, class T> Ref<const U> cast(const Ref<T>& ref) {
  return Ref<const U>(static_cast<const U*>(ref.get()));
}

template <class T, class... Args> Ref<T> make(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

/// Hash of a reference by identity, for maps that are never iterated for output.
struct RefHash {
  size_t operator()(const RefBase& ref) const { return std::hash<const void*>()(ref.object()); }
};

} // namespace bevel

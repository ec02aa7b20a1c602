// The IR's node: an immutable object with a kind tag whose fields are listed once, in a run-time table.
//
// From that table come visiting, mapping, alpha-equality, hashing, free variables and scope verification
// (ir/structural.h), so a new kind needs no hand-written visitor.
#pragma once

#include "base/dtype.h"
#include "base/object.h"
#include "base/span.h"
#include "base/tensor.h"

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace bevel {

enum class Kind : uint8_t {
#define KIND(name) k##name,
#define ENDGROUP(group, first, last)
#include "ir/kinds.def"
#undef KIND
#undef ENDGROUP
};
inline constexpr int kNumKinds = int(Kind::kModule) + 1;

/// How a field takes part in scoping and comparison.
enum class Role : uint8_t {
  kUse,  // compared; variables in it refer to definitions
  kDef,  // binds: a Var, GraphVar, GlobalVar, IterVar (its var) or Buffer (its data variable, and those
         // variables of its shape, strides and offset that nothing has bound yet), visible in later fields of
         // this node and, for statements of a Seq and bindings of a block, in what follows
  kName, // ignored by equality and hash
};

enum class FieldType : uint8_t {
  kNode,
  kList,
  kInt,
  kBool,
  kDouble,
  kString,
  kStrings,
  kInts,
  kDoubles,
  kDType,
  kEnum,
  kTensor
};

struct Field {
  const char* name;
  uint16_t offset;
  FieldType type;
  Role role;
  const char* const* enumNames; // for kEnum: spelling of each value
};

class Node;
using NodeRef = Ref<const Node>;
// For each kind, class NameNode and the reference to one, Name.
#define KIND(name)                                                                                           \
  class name##Node;                                                                                          \
  using name = Ref<const name##Node>;
#define ENDGROUP(group, first, last)
#include "ir/kinds.def"
#undef KIND
#undef ENDGROUP

/// What the generic algorithms know of a kind.
struct KindInfo {
  const char* name = nullptr;
  std::span<const Field> fields;
  Node* (*clone)(const Node&) = nullptr; // shallow copy
};
const KindInfo& kindInfo(Kind kind);
/// That of a node: schedule steps, whose kinds are registered at run time, bring their own.
const KindInfo& kindInfo(const Node& node);

class Node : public Object {
public:
  const Kind kind;
  Origin origin; // ignored by equality and hash

  explicit Node(Kind k) : kind(k) {}
  static bool classof(const Node*) { return true; }
  const char* kindName() const { return kindInfo(*this).name; }
};

/// A typed list of node references; the storage is untyped so that the field table can walk it.
template <class T> class Array {
public:
  Array() = default;
  Array(std::initializer_list<T> items) {
    for (const T& x : items) items_.emplace_back(x);
  }
  template <class It> Array(It first, It last) {
    for (; first != last; ++first) items_.emplace_back(T(*first));
  }
  Array(const std::vector<T>& items) : Array(items.begin(), items.end()) {}
  template <class U>
    requires std::is_convertible_v<U, T>
  Array(const Array<U>& other) : items_(other.raw()) {}

  class Iterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;
    Iterator() = default;
    explicit Iterator(const NodeRef* p) : p_(p) {}
    const T& operator*() const { return static_cast<const T&>(static_cast<const RefBase&>(*p_)); }
    Iterator& operator++() {
      ++p_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(p_++); }
    bool operator==(const Iterator&) const = default;

  private:
    const NodeRef* p_ = nullptr;
  };

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  const T& operator[](size_t i) const {
    return static_cast<const T&>(static_cast<const RefBase&>(items_[i]));
  }
  const T& front() const { return (*this)[0]; }
  const T& back() const { return (*this)[size() - 1]; }
  Iterator begin() const { return Iterator(items_.data()); }
  Iterator end() const { return Iterator(items_.data() + items_.size()); }
  operator std::vector<T>() const { return {begin(), end()}; }
  void push_back(T item) { items_.emplace_back(std::move(item)); }
  void set(size_t i, T item) { items_[i] = NodeRef(std::move(item)); }
  void append(const Array& other) { items_.insert(items_.end(), other.items_.begin(), other.items_.end()); }
  void resize(size_t n) { items_.resize(n); }
  void reserve(size_t n) { items_.reserve(n); }
  Array slice(size_t first, size_t last) const {
    Array out;
    out.items_.assign(items_.begin() + ptrdiff_t(first), items_.begin() + ptrdiff_t(last));
    return out;
  }
  friend bool operator==(const Array& a, const Array& b) { return a.items_ == b.items_; }
  const std::vector<NodeRef>& raw() const { return items_; }
  std::vector<NodeRef>& raw() { return items_; }

private:
  std::vector<NodeRef> items_;
};

// Offsets in structs with a base class are well defined on every compiler we support.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

// The field list of a node struct. FIELDS(...) takes USE(f), DEF(f), NAME(f), and ENUM(f, names) for
// enumerations.
namespace detail {
/// What holds the fields of each type, in the order of FieldType.
using FieldTypes =
    std::tuple<NodeRef, Array<NodeRef>, int64_t, bool, double, std::string, std::vector<std::string>,
               std::vector<int64_t>, std::vector<double>, DType, uint8_t, Tensor>;
template <class T> constexpr FieldType fieldType() {
  if constexpr (std::is_enum_v<T>) {
    static_assert(sizeof(T) == 1);
    return FieldType::kEnum;
  } else if constexpr (std::is_base_of_v<RefBase, T> && !std::is_same_v<T, Tensor>)
    return FieldType::kNode;
  else
    return []<class... Ts>(std::type_identity<std::tuple<Ts...>>) {
      size_t i = 0, found = size_t(FieldType::kList);
      ((std::is_same_v<T, Ts> ? found = i++ : i++), ...);
      return FieldType(found);
    }(std::type_identity<FieldTypes>());
}
} // namespace detail
/// A field's value, which is a T.
template <class T> const T& fieldAs(const Node& n, const Field& f) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(&n) + f.offset);
}
template <class T> T& fieldAs(Node& n, const Field& f) {
  return const_cast<T&>(fieldAs<T>(std::as_const(n), f));
}
/// The same as whatever it is, given to a function of any type.
template <size_t I = 0, class F> auto withField(const Node& n, const Field& f, F&& use) {
  if constexpr (I + 1 < std::tuple_size_v<detail::FieldTypes>)
    if (f.type != FieldType(I)) return withField<I + 1>(n, f, std::forward<F>(use));
  return use(fieldAs<std::tuple_element_t<I, detail::FieldTypes>>(n, f));
}
#define BEVEL_FIELD(f, role, names)                                                                          \
  ::bevel::Field {                                                                                           \
    #f, uint16_t(offsetof(Self, f)), ::bevel::detail::fieldType<decltype(Self::f)>(), role, names            \
  }
#define USE(f) BEVEL_FIELD(f, ::bevel::Role::kUse, nullptr)
#define DEF(f) BEVEL_FIELD(f, ::bevel::Role::kDef, nullptr)
#define NAME(f) BEVEL_FIELD(f, ::bevel::Role::kName, nullptr)
#define ENUM(f, names) BEVEL_FIELD(f, ::bevel::Role::kUse, names)
#define NODE(Name)                                                                                           \
  static constexpr Kind kKind = Kind::k##Name;                                                               \
  using Self = Name##Node;                                                                                   \
  static bool classof(const Node* n) {                                                                       \
    return n->kind == kKind;                                                                                 \
  }
#define FIELDS(...)                                                                                          \
  static std::span<const Field> fields() {                                                                   \
    static const Field table[] = {__VA_ARGS__};                                                              \
    return table;                                                                                            \
  }

} // namespace bevel

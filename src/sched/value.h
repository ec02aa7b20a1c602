// What a schedule step takes and gives: handles of blocks, loops and integers, and the literals of a trace.
#pragma once

#include "arith/index_map.h"
#include "base/result.h"
#include "ir/build.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bevel {

/// What a handle (a random variable of the trace) stands for.
enum class RVKind : uint8_t { kBlock, kLoop, kExpr };

/// A handle: an index into the schedule's table of values. The same number means the same handle in the trace
/// and in every copy of the schedule.
struct RV {
  RVKind kind = RVKind::kExpr;
  int32_t id = -1;
  explicit operator bool() const { return id >= 0; }
  friend bool operator==(RV, RV) = default;
};

template <RVKind K> struct TypedRV {
  int32_t id = -1;
  TypedRV() = default;
  explicit TypedRV(int32_t i) : id(i) {}
  operator RV() const { return {K, id}; }
  explicit operator bool() const { return id >= 0; }
  friend bool operator==(TypedRV, TypedRV) = default;
};
using BlockRV = TypedRV<RVKind::kBlock>;
using LoopRV = TypedRV<RVKind::kLoop>;
using ExprRV = TypedRV<RVKind::kExpr>; // an integer: a sampled factor or category

/// An integer argument: inferred (None), a number, or the value of a handle.
struct IntArg {
  enum class Kind : uint8_t { kNone, kInt, kExpr } kind = Kind::kNone;
  int64_t value = 0; // for kInt; the id for kExpr
  IntArg() = default;
  IntArg(std::nullopt_t) {}
  IntArg(int64_t v) : kind(Kind::kInt), value(v) {}
  IntArg(int v) : IntArg(int64_t(v)) {}
  IntArg(ExprRV v) : kind(Kind::kExpr), value(v.id) {}
};
using Factors = std::vector<IntArg>;

/// Which buffer of a block: ("read", 0) or ("write", 0), or its name.
struct BufferArg {
  bool write = false;
  int64_t index = 0;
  std::string name; // when not empty, the buffer of that name
};
inline BufferArg readBuffer(int64_t index) {
  return {false, index, ""};
}
inline BufferArg writeBuffer(int64_t index) {
  return {true, index, ""};
}

/// An annotation's value: a constant node (IntImm, FloatImm, StringImm, List, Dict), a handle, or nothing
/// (None).
struct AnyArg {
  NodeRef node;
  ExprRV rv;
  AnyArg() = default;
  AnyArg(NodeRef n) : node(std::move(n)) {}
  AnyArg(ExprRV r) : rv(r) {}
  AnyArg(int64_t v) : node(intImm(v)) {}
  AnyArg(int v) : AnyArg(int64_t(v)) {}
  AnyArg(bool v) : node(boolImm(v)) {}
  AnyArg(double v) : node(constantFloat(DType::Float(64), v)) {}
  AnyArg(const char* s) : node(str(s)) {}
  AnyArg(std::string s) : node(str(std::move(s))) {}
  bool isNone() const { return !node && !rv; }
};

/// An argument or result in generic form: what the trace text spells, and what other languages pass.
struct StepValue {
  enum class Kind : uint8_t {
    kNone,
    kInt,
    kFloat,
    kBool,
    kString,
    kList,
    kDict,
    kRV,
    kIndexMap
  } kind = Kind::kNone;
  int64_t integer = 0;           // kInt, kBool
  double number = 0;             // kFloat
  std::string text;              // kString
  std::vector<StepValue> items;  // kList; kDict: values
  std::vector<std::string> keys; // kDict
  RV rv;                         // kRV
  IndexMap map;                  // kIndexMap

  static StepValue none() { return {}; }
  static StepValue ofInt(int64_t v);
  static StepValue ofFloat(double v);
  static StepValue ofBool(bool v);
  static StepValue ofString(std::string v);
  static StepValue ofList(std::vector<StepValue> v);
  static StepValue ofRV(RV v);
  static StepValue ofMap(IndexMap v);
  /// What kind of value it is, for messages: "an integer", "a loop", …
  const char* describe() const;
};
bool operator==(const StepValue& a, const StepValue& b);
uint64_t hashValue(const StepValue& v, uint64_t seed);
/// Calls f for every handle in v.
void forEachRV(const StepValue& v, FunctionRef<void(RV)> f);

// Conversions between the typed fields of a step and their generic form. fromValue fails with what was
// expected.
#define BEVEL_STEP_VALUE(T)                                                                                  \
  StepValue toValue(const T& x);                                                                             \
  Status fromValue(const StepValue& v, T& out);
BEVEL_STEP_VALUE(BlockRV)
BEVEL_STEP_VALUE(LoopRV)
BEVEL_STEP_VALUE(ExprRV)
BEVEL_STEP_VALUE(RV)
BEVEL_STEP_VALUE(IntArg)
BEVEL_STEP_VALUE(BufferArg)
BEVEL_STEP_VALUE(AnyArg)
BEVEL_STEP_VALUE(IndexMap)
BEVEL_STEP_VALUE(int64_t)
BEVEL_STEP_VALUE(double)
BEVEL_STEP_VALUE(bool)
BEVEL_STEP_VALUE(std::string)
#undef BEVEL_STEP_VALUE
template <class T> StepValue toValue(const std::vector<T>& x) {
  std::vector<StepValue> items;
  items.reserve(x.size());
  for (const auto& item : x) items.push_back(toValue(T(item)));
  return StepValue::ofList(std::move(items));
}
Error expectedValue(const char* what, const StepValue& got);
template <class T> Status fromValue(const StepValue& v, std::vector<T>& out) {
  if (v.kind != StepValue::Kind::kList) return fail(expectedValue("a list", v));
  out.clear();
  for (const StepValue& item : v.items) {
    T x{};
    BEVEL_CHECK(fromValue(item, x));
    out.push_back(std::move(x));
  }
  return {};
}
template <class T> StepValue toValue(const std::optional<T>& x) {
  return x ? toValue(*x) : StepValue::none();
}
template <class T> Status fromValue(const StepValue& v, std::optional<T>& out) {
  out.reset();
  if (v.kind == StepValue::Kind::kNone) return {};
  return fromValue(v, out.emplace());
}

} // namespace bevel

// What a schedule step takes and gives, as nodes: handles, which are variables, and constants.
#pragma once

#include "arith/index_map.h"
#include "base/result.h"
#include "ir/build.h"

#include <optional>

namespace bevel {

/// What a handle (a random variable of the trace) stands for.
enum class RVKind : uint8_t { kBlock, kLoop, kExpr };

/// A handle: a variable that a step defines. Handles of blocks and loops have the scope "block" or "loop"; those of
/// integers are integers. The same variable is the same handle in the trace and in every copy of the schedule.
using RV = Var;
RVKind kindOf(const VarNode& handle);

template <RVKind K> class TypedRV : public Var {
public:
  TypedRV() = default;
  explicit TypedRV(Var v) : Var(std::move(v)) {}
};
using BlockRV = TypedRV<RVKind::kBlock>;
using LoopRV = TypedRV<RVKind::kLoop>;
using ExprRV = TypedRV<RVKind::kExpr>; // an integer: a sampled factor or category

/// An integer argument: null (None: inferred), an IntImm, or a handle.
class IntArg : public NodeRef {
public:
  IntArg() = default;
  IntArg(std::nullopt_t) {}
  IntArg(int64_t v) : NodeRef(intImm(v)) {}
  IntArg(int v) : IntArg(int64_t(v)) {}
  IntArg(ExprRV v) : NodeRef(std::move(v)) {}
};
using Factors = Array<IntArg>;

/// Which buffer of a block: ["read", 0] or ["write", 0], or its name.
class BufferArg : public NodeRef {
public:
  BufferArg() = default;
  BufferArg(std::string name) : NodeRef(str(std::move(name))) {}
  BufferArg(bool write, int64_t index) : NodeRef(list({str(write ? "write" : "read"), intImm(index)})) {}
};
inline BufferArg readBuffer(int64_t index) {
  return {false, index};
}
inline BufferArg writeBuffer(int64_t index) {
  return {true, index};
}

/// An annotation's value: a constant (IntImm, FloatImm, StringImm, List, Dict) as the text spells it, so integers are
/// int64 and numbers float64; a handle; or nothing (None).
class AnyArg : public NodeRef {
public:
  AnyArg() = default;
  AnyArg(const NodeRef& n);
  AnyArg(ExprRV r) : NodeRef(std::move(r)) {}
  AnyArg(int64_t v) : NodeRef(intImm(v)) {}
  AnyArg(int v) : AnyArg(int64_t(v)) {}
  AnyArg(bool v) : NodeRef(boolImm(v)) {}
  AnyArg(double v) : NodeRef(constantFloat(DType::Float(64), v)) {}
  AnyArg(const char* s) : NodeRef(str(s)) {}
  AnyArg(std::string s) : NodeRef(str(std::move(s))) {}
};

/// What kind of value it is, for messages: "an integer", "a loop", …
const char* describeValue(const NodeRef& v);
Error expectedValue(const char* what, const NodeRef& got);

// Fills a field of a step from a value; fails with what was expected.
Status setHandle(Var& out, RVKind kind, const NodeRef& v);
template <RVKind K> Status setValue(TypedRV<K>& out, const NodeRef& v) {
  return setHandle(out, K, v);
}
Status setValue(RV& out, const NodeRef& v);
Status setValue(IntArg& out, const NodeRef& v);
Status setValue(BufferArg& out, const NodeRef& v);
Status setValue(AnyArg& out, const NodeRef& v);
Status setValue(Lambda& out, const NodeRef& v);
Status setValue(int64_t& out, const NodeRef& v);
Status setValue(double& out, const NodeRef& v);
Status setValue(bool& out, const NodeRef& v);
Status setValue(std::string& out, const NodeRef& v);
template <class List> Status setList(List& out, const NodeRef& v) {
  const auto* items = v.as<ListNode>();
  if (!items) return fail(expectedValue("a list", v));
  out = {};
  for (const NodeRef& item : items->items) {
    std::remove_cvref_t<decltype(out[0])> x{};
    BEVEL_CHECK(setValue(x, item));
    out.push_back(std::move(x));
  }
  return {};
}
template <class T> Status setValue(Array<T>& out, const NodeRef& v) {
  return setList(out, v);
}
template <class T> Status setValue(std::vector<T>& out, const NodeRef& v) {
  return setList(out, v);
}

} // namespace bevel

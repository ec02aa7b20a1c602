// Short ways to write expressions and attributes, with local folding of constants (never one that could
// overflow).
#pragma once

#include "ir/graph.h"

namespace bevel {

inline Var var(std::string name, DType dtype = kInt64) {
  return make<const VarNode>(std::move(name), dtype);
}
/// A constant of any dtype: integer, bool or float (broadcast for vectors).
Expr constant(DType dtype, int64_t value);
Expr constantFloat(DType dtype, double value);
inline Expr intImm(int64_t value, DType dtype = kInt64) {
  return constant(dtype, value);
}
inline Expr boolImm(bool value) {
  return constant(kBool, value);
}
inline NodeRef str(std::string text) {
  return make<const StringImmNode>(std::move(text));
}

/// The value of an integer or bool constant (a broadcast of one included).
std::optional<int64_t> asConst(const Expr& e);
bool isConst(const Expr& e, int64_t value);

/// Makes a binary node; integer operands of different width are widened to the wider (int32 with int64
/// constants meet in int64; constants follow the other side when they fit), scalars are broadcast to vectors.
/// Asserts that the operands can meet; the parser checks before. Folds constants and neutral elements.
Expr binary(BinaryOp op, Expr a, Expr b);
#define BEVEL_BINARY(name, op)                                                                               \
  inline Expr name(const Expr& a, const Expr& b) {                                                           \
    return binary(BinaryOp::op, a, b);                                                                       \
  }
BEVEL_BINARY(operator+, kAdd)
BEVEL_BINARY(operator-, kSub)
BEVEL_BINARY(operator*, kMul)
BEVEL_BINARY(floordiv, kFloorDiv)
BEVEL_BINARY(floormod, kFloorMod)
BEVEL_BINARY(truncdiv, kDiv)
BEVEL_BINARY(truncmod, kMod)
BEVEL_BINARY(min, kMin)
BEVEL_BINARY(max, kMax)
BEVEL_BINARY(operator<, kLt)
BEVEL_BINARY(operator<=, kLe)
BEVEL_BINARY(operator>, kGt)
BEVEL_BINARY(operator>=, kGe)
BEVEL_BINARY(eq, kEq)
BEVEL_BINARY(ne, kNe)
BEVEL_BINARY(logicalAnd, kAnd)
BEVEL_BINARY(logicalOr, kOr)
#undef BEVEL_BINARY
#define BEVEL_WITH_NUMBER(name)                                                                              \
  inline Expr name(const Expr& a, int64_t b) {                                                               \
    return name(a, constant(a->dtype, b));                                                                   \
  }
BEVEL_WITH_NUMBER(operator+)
BEVEL_WITH_NUMBER(operator-)
BEVEL_WITH_NUMBER(operator*)
BEVEL_WITH_NUMBER(floordiv)
BEVEL_WITH_NUMBER(floormod)
#undef BEVEL_WITH_NUMBER
Expr logicalNot(const Expr& a);
Expr negate(const Expr& a);
Expr select(Expr condition, Expr a, Expr b);
Expr castTo(DType dtype, Expr value); // folds constants and identity casts
/// Intrinsic call whose dtype is its first argument's (bool for isnan and the like).
Expr call(Intrin op, Array<NodeRef> args);
Expr callAs(DType dtype, Intrin op, Array<NodeRef> args, Dict attrs = nullptr);
Expr ifThenElse(Expr condition, Expr a, Expr b);
/// floor(a / b) for constants without overflow traps; b != 0.
int64_t floorDivide(int64_t a, int64_t b);
int64_t floorModulo(int64_t a, int64_t b);

/// A buffer with a fresh data variable.
Buffer buffer(std::string name, DType dtype, Array<Expr> shape, std::string scope = "global");
inline Expr load(const Buffer& b, Array<Expr> indices) {
  return make<const LoadNode>(b, std::move(indices));
}
inline Stmt store(const Buffer& b, Expr value, Array<Expr> indices) {
  return make<const StoreNode>(b, std::move(value), std::move(indices));
}
BufferRegion fullRegion(const Buffer& b);
inline Range range(Expr min, Expr extent) {
  return make<const RangeNode>(std::move(min), std::move(extent));
}
inline Stmt forLoop(Var v, Expr extent, Stmt body, ForKind kind = ForKind::kSerial) {
  Expr zero = constant(v->dtype, 0);
  return make<const ForNode>(std::move(v), std::move(zero), std::move(extent), kind, std::move(body));
}
IterVar iter(std::string name, Expr extent, IterType type);

/// Attribute dictionaries.
Dict dict(std::vector<std::pair<std::string, NodeRef>> entries); // sorted; later entries replace earlier ones
Dict withAttr(const Dict& d, const std::string& key, NodeRef value); // d may be null; a null value removes
NodeRef attr(const Dict& d, std::string_view key);                   // null when absent or d is null
int64_t attrInt(const Dict& d, std::string_view key, int64_t otherwise = 0);
double attrFloat(const Dict& d, std::string_view key, double otherwise = 0);
std::string attrStr(const Dict& d, std::string_view key, std::string otherwise = "");
/// List of ints; empty when absent.
std::vector<int64_t> attrInts(const Dict& d, std::string_view key);
NodeRef intList(const std::vector<int64_t>& values);
NodeRef list(Array<NodeRef> items);
PrimFunc withAttr(const PrimFunc& f, const std::string& key, NodeRef value);
Function withAttr(const Function& f, const std::string& key, NodeRef value);

/// Copies a node to change fields of the copy before it is shared: auto n = mutableCopy(block); n->body = …;
/// Block(n).
template <class T> Ref<T> mutableCopy(const Ref<const T>& node) {
  return make<T>(*node);
}
template <class T> void setFields(T&) {}
template <class T, class Field, class Value, class... More>
void setFields(T& node, Field field, Value&& value, More&&... more) {
  node.*field = std::forward<Value>(value);
  setFields(node, std::forward<More>(more)...);
}
/// A copy with other values of fields: with(loop, &ForNode::extent, extent, &ForNode::body, body).
template <class T, class... Changes> Ref<const T> with(const Ref<const T>& node, Changes&&... changes) {
  auto copy = mutableCopy(node);
  setFields(*copy, std::forward<Changes>(changes)...);
  return copy;
}

/// int64 expressions of static dimensions, and back (nothing when one is symbolic).
Array<Expr> dims(const std::vector<int64_t>& shape);
std::optional<std::vector<int64_t>> constDims(const Array<Expr>& shape);
Type tensorType(DType dtype, const std::vector<int64_t>& shape);

} // namespace bevel

#include "sched/value.h"

namespace bevel {

RVKind kindOf(const VarNode& handle) {
  return !handle.dtype.isHandle() ? RVKind::kExpr : handle.scope == "loop" ? RVKind::kLoop : RVKind::kBlock;
}

static const char* const kHandles[] = {"a block", "a loop", "a sampled integer"}; // by RVKind

const char* describeValue(const NodeRef& v) {
  if (!v) return "None";
  switch (v->kind) {
  case Kind::kIntImm:
    return v.as<IntImmNode>()->dtype.isBool() ? "a bool" : "an integer";
  case Kind::kFloatImm:
    return "a float";
  case Kind::kStringImm:
    return "a string";
  case Kind::kList:
    return "a list";
  case Kind::kDict:
    return "a dictionary";
  case Kind::kLambda:
    return "an index map";
  case Kind::kVar:
    return kHandles[int(kindOf(*v.as<VarNode>()))];
  default:
    return "an expression";
  }
}

Error expectedValue(const char* what, const NodeRef& got) {
  return Error(ErrorCode::kInvalid, std::string("expected ") + what + ", got " + describeValue(got));
}

namespace {

const IntImmNode* integer(const NodeRef& v) {
  const auto* i = v.as<IntImmNode>();
  return i && !i->dtype.isBool() ? i : nullptr;
}

/// A constant as the text spells it; null when it is none.
NodeRef plainConstant(const NodeRef& v) {
  if (const auto* i = v.as<IntImmNode>()) return i->dtype.isBool() ? v : NodeRef(intImm(i->value));
  if (const auto* f = v.as<FloatImmNode>()) return constantFloat(DType::Float(64), f->value);
  if (v.is<StringImmNode>()) return v;
  Array<NodeRef> items;
  const auto* l = v.as<ListNode>();
  const auto* d = v.as<DictNode>();
  if (!l && !d) return nullptr;
  for (const NodeRef& item : l ? l->items : d->values) {
    items.push_back(item ? plainConstant(item) : nullptr);
    if (!items.back()) return nullptr;
  }
  if (l) return list(items);
  return with(Dict(d), &DictNode::values, items);
}

} // namespace

AnyArg::AnyArg(const NodeRef& n) : NodeRef(n.is<VarNode>() ? n : plainConstant(n)) {}

Status setHandle(Var& out, RVKind kind, const NodeRef& v) {
  const auto* handle = v.as<VarNode>();
  if (!handle || kindOf(*handle) != kind) return fail(expectedValue(kHandles[int(kind)], v));
  out = Var(handle);
  return {};
}
Status setValue(RV& out, const NodeRef& v) {
  const auto* handle = v.as<VarNode>();
  if (!handle || kindOf(*handle) == RVKind::kExpr) return fail(expectedValue("a block or a loop", v));
  out = Var(handle);
  return {};
}

Status setValue(IntArg& out, const NodeRef& v) {
  ExprRV handle;
  if (v && !integer(v) && !setValue(handle, v)) return fail(expectedValue("an integer or None", v));
  static_cast<NodeRef&>(out) = v;
  return {};
}

Status setValue(BufferArg& out, const NodeRef& v) {
  const auto* l = v.as<ListNode>();
  const auto* side = l && l->items.size() == 2 ? l->items[0].as<StringImmNode>() : nullptr;
  bool isPair = side && integer(l->items[1]) && (side->value == "read" || side->value == "write");
  if (const auto* index = integer(v)) // an index alone: of the writes
    out = writeBuffer(index->value);
  else if (isPair || v.is<StringImmNode>())
    static_cast<NodeRef&>(out) = v;
  else
    return fail(expectedValue("a buffer: (\"read\", i), (\"write\", i) or its name", v));
  return {};
}

Status setValue(AnyArg& out, const NodeRef& v) {
  if (v.is<VarNode>()) {
    ExprRV handle;
    BEVEL_CHECK(setValue(handle, v));
    out = AnyArg(handle);
    return {};
  }
  out = AnyArg(v);
  if (v && !out) return fail(expectedValue("a constant", v));
  return {};
}

Status setValue(Lambda& out, const NodeRef& v) {
  if (!v.is<LambdaNode>()) return fail(expectedValue("an index map (lambda i, j: (…))", v));
  out = cast<LambdaNode>(v);
  return {};
}

Status setValue(int64_t& out, const NodeRef& v) {
  if (!integer(v)) return fail(expectedValue("an integer", v));
  out = integer(v)->value;
  return {};
}
Status setValue(double& out, const NodeRef& v) {
  const auto* f = v.as<FloatImmNode>();
  if (!f && !integer(v)) return fail(expectedValue("a number", v));
  out = f ? f->value : double(integer(v)->value);
  return {};
}
Status setValue(bool& out, const NodeRef& v) {
  if (!v.is<IntImmNode>()) return fail(expectedValue("a bool", v));
  out = v.as<IntImmNode>()->value != 0;
  return {};
}
Status setValue(std::string& out, const NodeRef& v) {
  if (!v.is<StringImmNode>()) return fail(expectedValue("a string", v));
  out = v.as<StringImmNode>()->value;
  return {};
}

} // namespace bevel

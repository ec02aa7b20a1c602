// The operator registry, and calls as the functions of an op see them.
#include "graph/op.h"

#include "arith/analyzer.h"
#include "graph/infer.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"

#include <fmt/format.h>

namespace bevel {

OpRegistry& OpRegistry::global() {
  static OpRegistry registry;
  return registry;
}

Status OpRegistry::tryAdd(Op op) {
  std::lock_guard lock(mutex_);
  if (op.name.empty()) return fail(ErrorCode::kUsage, "an operator needs a name");
  if (!op.infer && !op.decompose)
    return fail(ErrorCode::kUsage, fmt::format("operator {} has no infer function", op.name));
  if (ops_.count(op.name))
    return fail(ErrorCode::kUsage, fmt::format("operator {} is registered already", op.name));
  auto entry = std::make_unique<Op>(std::move(op));
  order_.push_back(entry.get());
  ops_[entry->name] = std::move(entry);
  return {};
}

void OpRegistry::add(Op op) {
  Status status = tryAdd(std::move(op));
  BEVEL_ASSERT(status, status.error().message);
}

const Op* OpRegistry::find(std::string_view name) const {
  std::lock_guard lock(mutex_);
  auto it = ops_.find(std::string(name));
  return it == ops_.end() ? nullptr : it->second.get();
}

std::vector<const Op*> OpRegistry::all() const {
  std::lock_guard lock(mutex_);
  return order_;
}

OpCall::OpCall(const Op& entry, Array<GraphExpr> a, Dict k, std::vector<Type> types)
    : op(entry), args(std::move(a)), attrs(std::move(k)), types_(std::move(types)) {}

bool OpCall::has(size_t i) const {
  return i < args.size() && !isAbsent(args[i]);
}

const Array<Expr>& OpCall::values(size_t i) const {
  if (const auto* s = args[i].as<ShapeExprNode>()) return s->values;
  return types_[i].as<ShapeTypeNode>()->values;
}

Error OpCall::error(ErrorCode code, std::string message) const {
  return Error(code, fmt::format("{}: {}", op.name, message));
}

Expr InferContext::unknownDim(std::string hint) {
  Var v = var(std::move(hint), kInt64);
  analyzer.bind(v, range(intImm(0), intImm(int64_t(1) << 40)));
  fresh.push_back(v);
  return v;
}

Status InferContext::require(const Expr& condition, const OpCall& call, std::string_view what) {
  if (analyzer.prove(condition)) return {};
  if (isConst(analyzer.simplify(condition), 0)) return call.invalid(std::string(what));
  required.push_back(condition);
  return {};
}

namespace {

Error callError(const std::string& op, std::string message) {
  return Error(ErrorCode::kInvalid, fmt::format("{}: {}", op, message));
}
Error callError(const Op& op, std::string message) {
  return callError(op.name, std::move(message));
}

bool takes(Elements set, DType t) {
  Elements one = t.isFloat()    ? Elements::kFloats
                 : t.isBool()   ? Elements::kBools
                 : t.isString() ? Elements::kStrings
                                : Elements::kInts;
  return (uint8_t(set) & uint8_t(one)) != 0;
}

std::string rankText(const OpInput& input) {
  if (input.minRank == input.maxRank) return fmt::format("{}", input.minRank);
  if (input.maxRank == OpInput("").maxRank) return fmt::format("{} or more", input.minRank);
  return fmt::format("{} to {}", input.minRank, input.maxRank);
}

} // namespace

Status checkInputType(const std::string& op, const OpInput& input, const Type& type) {
  const std::string& name = input.name;
  const auto* t = type.as<TensorTypeNode>();
  if (!t) return fail(callError(op, fmt::format("input '{}' must be a tensor", name)));
  if (t->ndim < 0)
    return fail(
        Error(ErrorCode::kUnsupported, fmt::format("{}: the rank of input '{}' is unknown", op, name)));
  if (t->dtype.isVoid())
    return fail(
        Error(ErrorCode::kUnsupported, fmt::format("{}: the dtype of input '{}' is unknown", op, name)));
  if (!takes(input.elements, t->dtype))
    return fail(callError(op, fmt::format("input '{}' cannot be of {}", name, t->dtype.str())));
  if (t->ndim < input.minRank || t->ndim > input.maxRank)
    return fail(callError(
        op, fmt::format("input '{}' has {} dimensions, {} are expected", name, t->ndim, rankText(input))));
  return {};
}

namespace {

Result<Type> checkTensor(const Op& op, const OpInput& input, const Type& type,
                         std::vector<Var>* placeholders) {
  BEVEL_CHECK(checkInputType(op.name, input, type));
  std::vector<Var> unseen;
  return instantiateUnknown(type, placeholders ? *placeholders : unseen, "u");
}

Result<Type> checkInput(const Op& op, const OpInput& input, const GraphExpr& arg,
                        std::vector<Var>* placeholders) {
  const Type& type = arg->type;
  switch (input.kind) {
  case InputKind::kOptional:
    if (isAbsent(arg)) return type;
    [[fallthrough]];
  case InputKind::kTensor:
  case InputKind::kVariadic:
    return checkTensor(op, input, type, placeholders);
  case InputKind::kOptionalShape:
    if (isAbsent(arg)) return type;
    [[fallthrough]];
  case InputKind::kShape: {
    const auto* s = type.as<ShapeTypeNode>();
    if (!arg.is<ShapeExprNode>() && !(s && s->known))
      return fail(callError(op, fmt::format("input '{}' must be a shape with known values", input.name)));
    return type;
  }
  case InputKind::kAny:
    return type;
  }
  return type;
}

bool attrFits(AttrKind kind, const NodeRef& value) {
  switch (kind) {
  case AttrKind::kInt:
    return value.is<IntImmNode>();
  case AttrKind::kFloat:
    return value.is<FloatImmNode>() || value.is<IntImmNode>();
  case AttrKind::kString:
    return value.is<StringImmNode>();
  case AttrKind::kDType:
    return value.is<DTypeImmNode>() || value.is<StringImmNode>();
  case AttrKind::kInts:
  case AttrKind::kFloats: {
    const auto* items = value.as<ListNode>();
    if (!items) return false;
    for (const NodeRef& x : items->items)
      if (!x.is<IntImmNode>() && !(kind == AttrKind::kFloats && x.is<FloatImmNode>())) return false;
    return true;
  }
  case AttrKind::kNode:
    return true;
  }
  return false;
}

Status checkAttrs(const Op& op, const Dict& attrs) {
  for (const OpAttr& a : op.attrs)
    if (a.required && !attr(attrs, a.name))
      return fail(callError(op, fmt::format("attribute '{}' is missing", a.name)));
  if (!attrs) return {};
  for (size_t k = 0; k < attrs->keys.size(); ++k) {
    const OpAttr* known = nullptr;
    for (const OpAttr& a : op.attrs)
      if (a.name == attrs->keys[k]) known = &a;
    if (!known) return fail(callError(op, fmt::format("there is no attribute '{}'", attrs->keys[k])));
    if (!attrFits(known->kind, attrs->values[k]))
      return fail(callError(op, fmt::format("attribute '{}' has the wrong kind", known->name)));
  }
  return {};
}

size_t minimumInputs(const Op& op) {
  size_t n = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (op.inputs[i].kind != InputKind::kOptional && op.inputs[i].kind != InputKind::kOptionalShape)
      n = i + 1;
  return n;
}

} // namespace

Result<OpCall> checkCall(const Op& op, const Array<GraphExpr>& args, const Dict& attrs,
                         std::vector<Var>* placeholders) {
  bool variadic = !op.inputs.empty() && op.inputs.back().kind == InputKind::kVariadic;
  if (args.size() < minimumInputs(op) || (!variadic && args.size() > op.inputs.size()))
    return fail(callError(op, fmt::format("{} inputs given, the operator takes {}{}", args.size(),
                                          op.inputs.size(), variadic ? " or more" : "")));
  std::vector<Type> types;
  for (size_t i = 0; i < args.size(); ++i) {
    const OpInput& input = op.inputs[std::min(i, op.inputs.size() - 1)];
    if (!args[i] || !args[i]->type)
      return fail(
          Error(ErrorCode::kInternal, fmt::format("{}: input '{}' has no type", op.name, input.name)));
    BEVEL_TRY(Type type, checkInput(op, input, args[i], placeholders));
    types.push_back(std::move(type));
  }
  BEVEL_CHECK(checkAttrs(op, attrs));
  return OpCall(op, args, attrs, std::move(types));
}

GraphCall opCall(std::string name, Array<GraphExpr> args, Dict attrs) {
  return make<const GraphCallNode>(make<const OpRefNode>(std::move(name)), std::move(args), std::move(attrs));
}

GraphExpr absent() {
  return make<const TupleNode>(Array<GraphExpr>{});
}

bool isAbsent(const GraphExpr& e) {
  const auto* t = e.as<TupleNode>();
  return t && t->items.empty();
}

bool isPure(const GraphExpr& value, const Module& module) {
  auto isPureFunction = [&](const GraphExpr& name) {
    const auto* g = name.as<GlobalVarNode>();
    GraphExpr f = g && module ? module->find(g->name) : nullptr;
    const auto* function = f.as<FunctionNode>();
    const auto* type = f ? nullptr : name->type.as<FuncTypeNode>();
    return function ? function->pure : type && type->pure;
  };
  if (value.is<GraphIfNode>()) {
    bool pure = true;
    forEachValue(value, [&](const NodeRef& n, const NodeRef&) {
      if (n.is<GraphCallNode>()) pure = pure && isPure(cast<GraphCallNode>(n), module);
    });
    return pure;
  }
  const auto* call = value.as<GraphCallNode>();
  if (!call) return true;
  if (!call->op.is<OpRefNode>()) return isPureFunction(call->op);
  if (call->isOp("while_loop")) return isPureFunction(call->args[0]) && isPureFunction(call->args[1]);
  const Op* op = findOp(call->opName());
  return op ? op->pure : call->isOp("call_tir") || call->isOp("call_dps_packed");
}

} // namespace bevel

// Type inference of graph expressions: operators by their entries, the calls that state their results,
// functions by instantiating their declared types.
#include "graph/infer.h"

#include "arith/analyzer.h"
#include "base/near_name.h"
#include "graph/shape_util.h"

#include <algorithm>
#include <fmt/format.h>

namespace bevel {

namespace {

Type statedType(const GraphCallNode& call) {
  if (call.typeArgs.empty()) return make<const ObjectTypeNode>();
  if (call.typeArgs.size() == 1) return call.typeArgs[0];
  return make<const TupleTypeNode>(call.typeArgs);
}

Result<Type> inferFunctionCall(const GraphCallNode& call, const FuncTypeNode& callee, InferContext& context) {
  if (callee.opaque) return callee.result ? callee.result : statedType(call);
  if (callee.params.size() != call.args.size())
    return fail(ErrorCode::kInvalid, fmt::format("the function takes {} arguments, {} given",
                                                 callee.params.size(), call.args.size()));
  VarMap bindings;
  for (size_t i = 0; i < call.args.size(); ++i)
    if (auto ok = unify(callee.params[i], call.args[i]->type, bindings, context.analyzer); !ok)
      return fail(std::move(ok.error()).note(fmt::format("argument {} of a function call", i)));
  std::vector<Var> unbound;
  for (const Var& v : shapeVars(callee.result))
    if (!bindings.count(v)) unbound.push_back(v);
  Type result = eraseVars(callee.result, [&](const Var& v) {
    return std::find(unbound.begin(), unbound.end(), v) == unbound.end();
  });
  return substitute(result, bindings);
}

Result<Type> inferGlobalCall(const GraphCallNode& call, const GlobalVarNode& name, const ModuleNode* module,
                             InferContext& context) {
  GraphExpr f = module ? module->find(name.name) : nullptr;
  if (const auto* fn = f.as<FunctionNode>())
    return inferFunctionCall(call, *functionType(Function(fn)), context);
  if (const auto* ft = name.type.as<FuncTypeNode>(); ft && !f) return inferFunctionCall(call, *ft, context);
  if (!call.typeArgs.empty()) return statedType(call);
  if (f.is<PrimFuncNode>()) return Type(make<const TupleTypeNode>(Array<Type>{})); // it writes its arguments
  return fail(ErrorCode::kInvalid, fmt::format("there is no graph function '{}'", name.name));
}

// No machine holds a tensor of more than 2^42 bytes; sizes up to there cannot overflow.
Status requireSize(const OpCall& call, const Type& type) {
  constexpr int64_t kLargest = int64_t(1) << 42;
  if (const auto* tuple = type.as<TupleTypeNode>())
    for (const Type& field : tuple->fields_) BEVEL_CHECK(requireSize(call, field));
  const auto* t = type.as<TensorTypeNode>();
  auto shape = t && t->known ? constDims(t->shape) : std::nullopt;
  if (!shape) return {};
  auto count = elementCount(*shape);
  if (!count) return fail(call.error(count.error().code, count.error().message));
  if (*count > kLargest || t->dtype.bytesFor(*count) > kLargest)
    return call.unsupported(fmt::format("a result of {} elements does not fit any memory", *count));
  return {};
}

Result<Type> inferOpCall(const GraphCallNode& call, InferContext& context) {
  const std::string& name = call.opName();
  if (name == "call_tir" || name == "call_dps_packed" || name == "call_tir_inplace" ||
      name == "call_packed") {
    if (call.typeArgs.empty())
      return fail(ErrorCode::kInvalid, fmt::format("{} must state its result types", name));
    return statedType(call);
  }
  if (name == "while_loop") {
    if (call.args.size() != 3 || !call.args[2]->type)
      return fail(ErrorCode::kInvalid, "while_loop takes three arguments");
    return call.args[2]->type;
  }
  const Op* op = findOp(name);
  if (!op) {
    if (!call.typeArgs.empty()) return statedType(call);
    std::vector<std::string> names;
    for (const Op* known : OpRegistry::global().all()) names.push_back(known->name);
    std::string near = didYouMean(name, names);
    return fail(
        Error(ErrorCode::kUnsupported, fmt::format("there is no operator '{}'", name))
            .help((near.empty() ? "" : near + " Else ") +
                  std::string("register it with OpRegistry::add, or state the result types of the call")));
  }
  std::vector<Var> placeholders;
  BEVEL_TRY(OpCall checked, checkCall(*op, call.args, call.attrs, &placeholders));
  if (!op->infer) return fail(ErrorCode::kInternal, fmt::format("operator '{}' has no infer function", name));
  BEVEL_TRY(Type type, op->infer(checked, context));
  BEVEL_CHECK(requireSize(checked, type));
  if (placeholders.empty()) return type;
  context.required.clear(); // conditions on dimensions that have no name here
  return eraseVars(type, [&](const Var& v) {
    return std::find(placeholders.begin(), placeholders.end(), v) == placeholders.end();
  });
}

Result<Type> inferCall(const GraphCallNode& call, const ModuleNode* module, InferContext& context) {
  if (call.op.is<OpRefNode>()) return inferOpCall(call, context);
  if (const auto* g = call.op.as<GlobalVarNode>()) return inferGlobalCall(call, *g, module, context);
  if (call.op.is<ExternFuncNode>()) return statedType(call);
  if (const auto* ft = call.op->type.as<FuncTypeNode>()) return inferFunctionCall(call, *ft, context);
  return fail(ErrorCode::kInvalid, "a call of something that is not a function");
}

} // namespace

Result<Type> inferType(const GraphExpr& value, const ModuleNode* module, InferContext& context) {
  switch (value->kind) {
  case Kind::kGraphCall:
    return inferCall(*value.as<GraphCallNode>(), module, context);
  case Kind::kTuple: {
    Array<Type> fields;
    for (const GraphExpr& item : value.as<TupleNode>()->items) {
      BEVEL_TRY(Type t, inferType(item, module, context));
      fields.push_back(std::move(t));
    }
    return Type(make<const TupleTypeNode>(fields));
  }
  case Kind::kTupleGet: {
    const auto* get = value.as<TupleGetNode>();
    BEVEL_TRY(Type t, inferType(get->tuple, module, context));
    const auto* tt = t.as<TupleTypeNode>();
    if (!tt || get->index < 0 || size_t(get->index) >= tt->fields_.size())
      return fail(ErrorCode::kInvalid, fmt::format("there is no tuple field {}", get->index));
    return tt->fields_[size_t(get->index)];
  }
  case Kind::kGraphIf: {
    const auto* e = value.as<GraphIfNode>();
    if (e->type) return e->type;
    return joinTypes(e->thenBranch->type, e->elseBranch->type, context.analyzer);
  }
  case Kind::kSeqExpr:
    return inferType(value.as<SeqExprNode>()->body, module, context);
  case Kind::kFunction:
    return Type(functionType(cast<FunctionNode>(value)));
  case Kind::kDTypeImm:
  case Kind::kExternFunc:
  case Kind::kOpRef:
  case Kind::kPrimFunc:
    return value->type ? value->type : Type(make<const ObjectTypeNode>());
  case Kind::kGlobalVar: {
    GraphExpr f = module ? module->find(value.as<GlobalVarNode>()->name) : nullptr;
    if (const auto* fn = f.as<FunctionNode>()) return Type(functionType(Function(fn)));
    return value->type ? value->type : Type(make<const ObjectTypeNode>());
  }
  default:
    if (!value->type)
      return fail(ErrorCode::kInternal, fmt::format("a {} without a type", value->kindName()));
    return value->type;
  }
}

} // namespace bevel

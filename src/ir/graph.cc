// Types that graph leaves have by construction, and the module's table of functions.
#include "ir/build.h"

#include <algorithm>

namespace bevel {

ConstantNode::ConstantNode(Tensor v, std::string n)
    : GraphExprNode(kKind, tensorType(v->dtype, v->shape)), value(std::move(v)), name(std::move(n)) {}

ShapeExprNode::ShapeExprNode(Array<Expr> v)
    : GraphExprNode(kKind, make<const ShapeTypeNode>(v)), values(std::move(v)) {}

TupleNode::TupleNode(Array<GraphExpr> i) : GraphExprNode(kKind), items(std::move(i)) {
  Array<Type> types;
  for (const GraphExpr& item : items) {
    if (!item->type) return;
    types.push_back(item->type);
  }
  type = make<const TupleTypeNode>(types);
}

TupleGetNode::TupleGetNode(GraphExpr t, int64_t i) : GraphExprNode(kKind), tuple(std::move(t)), index(i) {
  if (const auto* tt = tuple->type.as<TupleTypeNode>();
      tt && index >= 0 && size_t(index) < tt->fields_.size())
    type = tt->fields_[size_t(index)];
}

PrimValueNode::PrimValueNode(Expr v) : GraphExprNode(kKind), value(std::move(v)) {
  type = value->dtype.isString() ? Type(make<const ObjectTypeNode>("string"))
                                 : Type(make<const PrimTypeNode>(value->dtype, value));
}

GraphVar boundVar(const NodeRef& binding) {
  if (const auto* b = binding.as<VarBindingNode>()) return b->var;
  const auto* m = binding.as<MatchCastNode>();
  return m ? m->var : GraphVar();
}

const std::string& GraphCallNode::opName() const {
  static const std::string none;
  const auto* ref = op.as<OpRefNode>();
  return ref ? ref->name : none;
}

FunctionNode::FunctionNode(Array<GraphVar> p, SeqExpr b, Type r, Dict a, bool isPure)
    : GraphExprNode(kKind), params(std::move(p)), body(std::move(b)), result(std::move(r)), pure(isPure),
      attrs(std::move(a)) {
  Array<Type> types;
  for (const GraphVar& v : params) types.push_back(v->type);
  type = make<const FuncTypeNode>(types, result, pure);
}

GraphExpr ModuleNode::find(std::string_view name) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i]->name == name) return functions[i];
  return nullptr;
}

Module withFunction(const Module& module, const std::string& name, GraphExpr function) {
  auto copy = mutableCopy(module);
  for (size_t i = 0; i < copy->names.size(); ++i)
    if (copy->names[i]->name == name) {
      copy->functions.set(i, std::move(function));
      return copy;
    }
  copy->names.push_back(make<const GlobalVarNode>(name, function->type));
  copy->functions.push_back(std::move(function));
  return copy;
}

Module withoutFunction(const Module& module, std::string_view name) {
  auto copy = make<ModuleNode>();
  copy->attrs = module->attrs;
  for (size_t i = 0; i < module->names.size(); ++i) {
    if (module->names[i]->name == name) continue;
    copy->names.push_back(module->names[i]);
    copy->functions.push_back(module->functions[i]);
  }
  return copy;
}

Result<Module> mapFunctions(const Module& module,
                            FunctionRef<Result<Function>(const Module& soFar, const Function& f)> f) {
  Module out = module;
  for (size_t i = 0; i < module->names.size(); ++i) {
    if (!module->functions[i].is<FunctionNode>()) continue;
    BEVEL_TRY(Function made, f(out, cast<FunctionNode>(module->functions[i])));
    out = withFunction(out, module->names[i]->name, made);
  }
  return out;
}

std::string freshName(const Module& module, const std::string& base) {
  std::string name = base;
  for (int i = 1; module->find(name); ++i) name = base + "_" + std::to_string(i);
  return name;
}

} // namespace bevel

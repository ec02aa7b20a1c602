// Walks graph functions in program order.
#include "graph/visitor.h"

#include "ir/build.h"
#include "ir/structural.h"

namespace bevel {

void forEachValue(const NodeRef& root, FunctionRef<void(const NodeRef& node, const NodeRef& parent)> f) {
  forEachChild(root, [&](const NodeRef& child, Role role) {
    bool holdsValues = child.is<GraphExprNode>() || child.is<BindingBlockNode>() ||
                       child.is<VarBindingNode>() || child.is<MatchCastNode>();
    if (role != Role::kUse || !holdsValues) return;
    f(child, root);
    forEachValue(child, f);
  });
}

void forEachCall(const Function& function, FunctionRef<void(const GraphCall&, const GraphVar&)> f) {
  forEachValue(function, [&](const NodeRef& node, const NodeRef& parent) {
    const auto* binding = parent.as<VarBindingNode>();
    if (node.is<GraphCallNode>()) f(cast<GraphCallNode>(node), binding ? binding->var : GraphVar());
  });
}

std::string subjectOf(const VarBinding& binding) {
  const auto* call = binding->value.as<GraphCallNode>();
  const auto* program = call && call->isOp("call_tir") ? call->args[0].as<GlobalVarNode>() : nullptr;
  std::string op = program ? program->name : call ? call->opName() : "", from;
  if (const Origin& origin = binding->value->origin)
    for (const std::string& name : origin->nodes) from += (from.empty() ? "" : ", ") + name;
  if (from.empty()) from = binding->var->name;
  return op.empty() ? from : op + " " + from;
}

Result<GraphExpr> mapOperands(const GraphExpr& value, FunctionRef<Result<GraphExpr>(const GraphExpr&)> f) {
  if (value.is<GraphIfNode>() || value.is<SeqExprNode>() || value.is<FunctionNode>()) return value;
  std::optional<Error> error;
  NodeRef mapped = mapChildren(value, [&](const NodeRef& child) -> NodeRef {
    if (error || !child.is<GraphExprNode>()) return child;
    Result<GraphExpr> made = f(cast<GraphExprNode>(child));
    if (made) return *made;
    error = std::move(made.error());
    return child;
  });
  if (error) return fail(std::move(*error));
  if (mapped == value || !mapped.is<GraphCallNode>()) return cast<GraphExprNode>(mapped);
  return GraphExpr(with(cast<GraphCallNode>(mapped), &GraphCallNode::type, nullptr));
}

Result<NodeRef> mapBranches(const NodeRef& binding, FunctionRef<Result<SeqExpr>(const SeqExpr&)> f) {
  const auto* bound = binding.as<VarBindingNode>();
  if (!bound || !bound->value.is<GraphIfNode>()) return binding;
  GraphIf branch = cast<GraphIfNode>(bound->value);
  BEVEL_TRY(SeqExpr yes, f(branch->thenBranch));
  BEVEL_TRY(SeqExpr no, f(branch->elseBranch));
  branch = with(branch, &GraphIfNode::thenBranch, yes, &GraphIfNode::elseBranch, no);
  return NodeRef(with(VarBinding(bound), &VarBindingNode::value, branch));
}

} // namespace bevel

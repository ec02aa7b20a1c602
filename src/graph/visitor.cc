// Walks graph functions in program order.
#include "graph/visitor.h"

namespace bevel {

void ExprVisitor::visitFunction(const Function& f) {
  for (const GraphVar& p : f->params) visitVar(p);
  visitSeq(f->body);
}

void ExprVisitor::visitSeq(const SeqExpr& e) {
  for (const BindingBlock& block : e->blocks) visitBlock(block);
  visitExpr(e->body);
}

void ExprVisitor::visitBlock(const BindingBlock& block) {
  for (const NodeRef& b : block->bindings)
    if (b.is<VarBindingNode>())
      visitBinding(cast<VarBindingNode>(b));
    else
      visitMatchCast(cast<MatchCastNode>(b));
}

void ExprVisitor::visitBinding(const VarBinding& binding) {
  visitExpr(binding->value);
}
void ExprVisitor::visitMatchCast(const MatchCast& binding) {
  visitExpr(binding->value);
}

void ExprVisitor::visitExpr(const GraphExpr& e) {
  switch (e->kind) {
  case Kind::kGraphVar:
    return visitVar(cast<GraphVarNode>(e));
  case Kind::kGraphCall:
    return visitCall(cast<GraphCallNode>(e));
  case Kind::kGraphIf:
    return visitIf(cast<GraphIfNode>(e));
  case Kind::kTuple:
    return visitTuple(cast<TupleNode>(e));
  case Kind::kTupleGet:
    return visitTupleGet(cast<TupleGetNode>(e));
  case Kind::kSeqExpr:
    return visitSeq(cast<SeqExprNode>(e));
  case Kind::kFunction:
    return visitFunction(cast<FunctionNode>(e));
  default:
    return visitLeaf(e);
  }
}

void ExprVisitor::visitCall(const GraphCall& call) {
  visitExpr(call->op);
  for (const GraphExpr& a : call->args) visitExpr(a);
}

void ExprVisitor::visitIf(const GraphIf& e) {
  visitExpr(e->condition);
  visitSeq(e->thenBranch);
  visitSeq(e->elseBranch);
}

void ExprVisitor::visitTuple(const Tuple& e) {
  for (const GraphExpr& item : e->items) visitExpr(item);
}

void ExprVisitor::visitTupleGet(const TupleGet& e) {
  visitExpr(e->tuple);
}

namespace {

struct CallVisitor : ExprVisitor {
  FunctionRef<void(const GraphCall&, const GraphVar&)> f;
  GraphVar current;
  explicit CallVisitor(FunctionRef<void(const GraphCall&, const GraphVar&)> g) : f(g) {}
  void visitBinding(const VarBinding& binding) override {
    current = binding->var;
    ExprVisitor::visitBinding(binding);
    current = nullptr;
  }
  void visitCall(const GraphCall& call) override {
    f(call, current);
    current = nullptr;
    ExprVisitor::visitCall(call);
  }
};

} // namespace

void forEachCall(const Function& function, FunctionRef<void(const GraphCall&, const GraphVar&)> f) {
  CallVisitor visitor(f);
  visitor.visitFunction(function);
}

} // namespace bevel

// Liveness with aliases.
//
// Two values are put in one class when one may share memory with the other: match_cast, tuples and their
// fields, views, the branches of an If, what a graph function or loop got and gave, and objects (sequences)
// that hold tensors. A class lives until the last use of any member.
#include "graph/passes/liveness.h"

#include "ir/build.h"
#include "ir/structural.h"
#include "loop/view.h"

namespace bevel {

Liveness::Liveness(const Function& f, const Module& module) : module_(module) {
  for (const GraphVar& p : f->params) classOf(p);
  visit(f->body);
  walk(f->body->body, [&](const NodeRef& n) {
    if (const auto* v = n.as<GraphVarNode>()) escapes_[find(classOf(GraphVar(v)))] = true;
    return true;
  });
  use(f->body->body);
}

size_t Liveness::classOf(const GraphVar& v) {
  auto [it, fresh] = index_.emplace(v, parent_.size());
  if (fresh) {
    parent_.push_back(it->second);
    last_.push_back(-1);
    escapes_.push_back(false);
  }
  return it->second;
}

size_t Liveness::find(size_t i) const {
  while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
  return i;
}

void Liveness::join(const GraphVar& a, const GraphExpr& b) {
  if (const auto* t = b.as<TupleNode>()) {
    for (const GraphExpr& item : t->items) join(a, item);
    return;
  }
  if (const auto* g = b.as<TupleGetNode>()) return join(a, g->tuple);
  const auto* v = b.as<GraphVarNode>();
  if (!v) return;
  size_t x = find(classOf(a)), y = find(classOf(GraphVar(v)));
  if (x == y) return;
  parent_[y] = x;
  last_[x] = std::max(last_[x], last_[y]);
  escapes_[x] = escapes_[x] || escapes_[y];
}

void Liveness::use(const NodeRef& value) {
  walk(value, [&](const NodeRef& n) {
    if (const auto* v = n.as<GraphVarNode>()) {
      size_t c = find(classOf(GraphVar(v)));
      last_[c] = std::max(last_[c], now_);
    }
    return !n.is<SeqExprNode>(); // branches have positions of their own
  });
}

void Liveness::visit(const SeqExpr& seq) {
  for (const BindingBlock& block : seq->blocks)
    for (const NodeRef& b : block->bindings) bind(b);
}

void Liveness::bind(const NodeRef& binding) {
  const auto* v = binding.as<VarBindingNode>();
  if (!v) {
    const auto* m = binding.as<MatchCastNode>();
    positions_[binding] = ++now_;
    use(m->value);
    join(m->var, m->value);
    return;
  }
  if (const auto* branch = v->value.as<GraphIfNode>()) {
    ++now_;
    use(branch->condition);
    for (const SeqExpr& side : {branch->thenBranch, branch->elseBranch}) {
      visit(side);
      ++now_;
      use(side->body);
      join(v->var, side->body);
    }
    positions_[binding] = ++now_;
    return;
  }
  positions_[binding] = ++now_;
  use(v->value);
  joinCall(v->var, v->value);
}

void Liveness::joinCall(const GraphVar& var, const GraphExpr& value) {
  const auto* call = value.as<GraphCallNode>();
  if (!call) return join(var, value); // variable, tuple, field
  if (call->isOp("call_tir")) {
    const auto* g = call->args[0].as<GlobalVarNode>();
    GraphExpr f = g ? module_->find(g->name) : nullptr;
    if (f.is<PrimFuncNode>() && isView(cast<PrimFuncNode>(f))) join(var, call->args[1]);
    return;
  }
  // Packed functions may return an argument; the run time copies it then where its memory is planned.
  bool freshTensor =
      var->type.is<TensorTypeNode>() && (call->op.is<ExternFuncNode>() || call->isOp("call_dps_packed"));
  if (freshTensor || (call->op.is<OpRefNode>() && !call->isOp("while_loop"))) return;
  for (const GraphExpr& a : call->args)
    join(var, a); // graph functions, loops, and objects that may hold their arguments
}

int Liveness::lastUse(const GraphVar& v) const {
  return last_[find(index_.at(v))];
}
bool Liveness::escapes(const GraphVar& v) const {
  return escapes_[find(index_.at(v))];
}

} // namespace bevel

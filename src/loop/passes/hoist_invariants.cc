// Moves conditions and lets that do not depend on a loop out of it.
//
// before:  for k in K:                                 after:  if i < n:
//            if i < n and k < m:                                 for k in K:
//              C[i] += A[i, k]                                     if k < m: C[i] += A[i, k]
//
// Only what cannot trap and reads no memory moves, so it may be evaluated though the loop runs no iteration.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

namespace bevel {
namespace {

bool cannotTrap(const Expr& e) {
  bool ok = true;
  walk(e, [&](const NodeRef& n) {
    const auto* b = n.as<BinaryNode>();
    bool divides = b && b->op >= BinaryOp::kDiv && b->op <= BinaryOp::kFloorMod && !b->dtype.isFloat();
    if (divides) ok &= asConst(b->b) && !isConst(b->b, 0);
    return ok;
  });
  return ok;
}

bool movable(const Expr& e, const Var& loop) {
  return !readsMemory(e) && cannotTrap(e) && !usesVar(e, loop);
}

NodeRef hoistFrom(const For& loop) {
  if (loop->forKind == ForKind::kThreadBinding) return loop;
  if (const auto* let = loop->body.as<LetStmtNode>(); let && movable(let->value, loop->var)) {
    auto inner = mutableCopy(loop);
    inner->body = let->body;
    return make<const LetStmtNode>(let->var, let->value, cast<StmtNode>(hoistFrom(For(inner))));
  }
  const auto* s = loop->body.as<IfNode>();
  if (!s || s->elseBody) return loop;
  bool likely = false;
  if (const auto* c = s->condition.as<CallNode>()) likely = c->op == Intrin::kLikely;
  auto marked = [&](Expr e) { return likely ? call(Intrin::kLikely, {e}) : e; };
  std::vector<Expr> outer, inner;
  for (const Expr& c : conjuncts(s->condition)) (movable(c, loop->var) ? outer : inner).push_back(c);
  if (outer.empty()) return loop;
  Stmt body = inner.empty() ? s->thenBody : Stmt(make<const IfNode>(marked(conjunction(inner)), s->thenBody));
  auto copy = mutableCopy(loop);
  copy->body = body;
  return make<const IfNode>(marked(conjunction(outer)), cast<StmtNode>(hoistFrom(For(copy))));
}

} // namespace

Result<PrimFunc> hoistInvariants(const PrimFunc& f, const Target&) {
  NodeRef body = rewrite(
      f->body, [](const NodeRef& n) -> NodeRef { return n.is<ForNode>() ? hoistFrom(cast<ForNode>(n)) : n; });
  return withBody(f, cast<StmtNode>(body));
}

} // namespace bevel

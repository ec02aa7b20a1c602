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

bool movable(const Expr& e, const Var& loop) {
  return !readsMemory(e) && !mayTrap(e) && !usesVar(e, loop);
}

Stmt hoistFrom(const For& loop) {
  if (loop->forKind == ForKind::kThreadBinding) return loop;
  if (const auto* let = loop->body.as<LetStmtNode>(); let && movable(let->value, loop->var)) {
    return make<const LetStmtNode>(let->var, let->value, hoistFrom(with(loop, &ForNode::body, let->body)));
  }
  const auto* s = loop->body.as<IfNode>();
  if (!s || s->elseBody) return loop;
  bool likely = isLikely(s->condition);
  auto marked = [&](Expr e) { return likely ? call(Intrin::kLikely, {e}) : e; };
  std::vector<Expr> outer, inner;
  for (const Expr& c : conjuncts(s->condition)) (movable(c, loop->var) ? outer : inner).push_back(c);
  if (outer.empty()) return loop;
  Stmt body = inner.empty() ? s->thenBody : Stmt(make<const IfNode>(marked(conjunction(inner)), s->thenBody));
  return make<const IfNode>(marked(conjunction(outer)), hoistFrom(with(loop, &ForNode::body, body)));
}

} // namespace

Result<PrimFunc> hoistInvariants(const PrimFunc& f, const Target&) {
  NodeRef body = rewrite(f->body, [](const NodeRef& n) -> NodeRef {
    return n.is<ForNode>() ? NodeRef(hoistFrom(cast<ForNode>(n))) : n;
  });
  return withBody(f, cast<StmtNode>(body));
}

} // namespace bevel

// The context rewriter, and small predicates that the passes share.
#include "loop/passes/context.h"

namespace bevel {

template <class T> Ref<const T> ContextRewriter::under(const Expr& condition, const Ref<const T>& node) {
  auto scope = analyzer.assume(changesCondition(node, condition) ? boolImm(true) : stripLikely(condition));
  return cast<T>((*this)(NodeRef(node)));
}

NodeRef ContextRewriter::visit(const NodeRef& node) {
  switch (node->kind) {
  case Kind::kFor:
    return visitFor(cast<ForNode>(node));
  case Kind::kIf:
    return visitIf(cast<IfNode>(node));
  case Kind::kBlockRealize:
    return visitRealize(cast<BlockRealizeNode>(node));
  case Kind::kLetStmt:
    return visitLet(cast<LetStmtNode>(node));
  case Kind::kLet:
    return visitLet(cast<LetNode>(node));
  case Kind::kCall:
    if (cast<CallNode>(node)->op == Intrin::kIfThenElse) return visitIfThenElse(cast<CallNode>(node));
    return visitChildren(node);
  case Kind::kVar:
  case Kind::kIntImm:
  case Kind::kFloatImm:
  case Kind::kStringImm:
  case Kind::kBuffer:
  case Kind::kDict:
    return node;
  default:
    return unlessEmpty(visitChildren(node));
  }
}

/// Nothing is left of a statement whose body went.
NodeRef ContextRewriter::unlessEmpty(NodeRef s) {
  const Stmt* body = s.is<BlockNode>() ? nullptr : bodyOf(s);
  return body && !*body ? nullptr : s;
}

NodeRef ContextRewriter::visitFor(const For& loop) {
  Expr lo = (*this)(loop->min), extent = (*this)(loop->extent);
  analyzer.bind(loop->var, range(lo, extent));
  loops.push_back(loop);
  Stmt body = (*this)(loop->body);
  loops.pop_back();
  analyzer.unbind(loop->var);
  if (!body) return nullptr;
  if (lo == loop->min && extent == loop->extent && body == loop->body) return loop;
  return with(loop, &ForNode::min, lo, &ForNode::extent, extent, &ForNode::body, body);
}

NodeRef ContextRewriter::visitIf(const If& s) {
  Expr condition = (*this)(s->condition);
  Stmt thenBody = under(condition, s->thenBody);
  Stmt elseBody = s->elseBody ? under(logicalNot(condition), s->elseBody) : nullptr;
  if (condition == s->condition && thenBody == s->thenBody && elseBody == s->elseBody) return s;
  return withBranches(s, condition, thenBody, elseBody);
}

NodeRef ContextRewriter::visitRealize(const BlockRealize& r) {
  auto copy = mutableCopy(r);
  for (size_t i = 0; i < r->values.size(); ++i) copy->values.set(i, (*this)(r->values[i]));
  copy->predicate = (*this)(r->predicate);
  for (const IterVar& v : r->block->iters) analyzer.bind(v->var, v->domain);
  bool lasts = !changesCondition(r->block, copy->predicate);
  auto scope = analyzer.assume(lasts ? stripLikely(copy->predicate) : boolImm(true));
  copy->block = (*this)(r->block);
  for (const IterVar& v : r->block->iters) analyzer.unbind(v->var);
  if (copy->values == r->values && copy->predicate == r->predicate && copy->block == r->block) return r;
  return BlockRealize(copy);
}

NodeRef ContextRewriter::visitIfThenElse(const Call& c) {
  Expr condition = (*this)(c->arg(0));
  Expr a = under(condition, c->arg(1)), b = under(logicalNot(condition), c->arg(2));
  if (condition == c->arg(0) && a == c->arg(1) && b == c->arg(2)) return c;
  return with(c, &CallNode::args, Array<NodeRef>{condition, a, b});
}

template <class L> NodeRef ContextRewriter::visitLet(const Ref<const L>& let) {
  Expr value = (*this)(let->value);
  if (value->dtype.isInteger() && value->dtype.lanes == 1) analyzer.bind(let->var, value);
  auto body = (*this)(let->body);
  analyzer.unbind(let->var);
  if (!body) return nullptr;
  if (value == let->value && body == let->body) return let;
  return with(let, &L::value, value, &L::body, body);
}

bool isPure(const Expr& e) {
  return effectOf(e) <= Effect::kReads;
}

bool mayTrap(const Expr& e) {
  return anyNode<BinaryNode>(
      e, [](const BinaryNode& b) { return dividesInteger(b) && asConst(b.b).value_or(0) == 0; });
}

bool isLikely(const NodeRef& condition) {
  const auto* c = condition.as<CallNode>();
  return c && c->op == Intrin::kLikely;
}

Expr stripLikely(const Expr& e) {
  if (!anyNode(e, [](const NodeRef& n) { return isLikely(n); })) return e;
  return cast<ExprNode>(
      rewrite(e, [](const NodeRef& n) { return isLikely(n) ? n.as<CallNode>()->args[0] : n; }));
}

std::vector<Expr> conjuncts(const Expr& condition) {
  if (isLikely(condition)) return conjuncts(condition.as<CallNode>()->arg(0));
  if (const auto* b = condition.as<BinaryNode>(); b && b->op == BinaryOp::kAnd && b->dtype.isBool()) {
    auto out = conjuncts(b->a);
    for (Expr& e : conjuncts(b->b)) out.push_back(std::move(e));
    return out;
  }
  if (isConst(condition, 1)) return {};
  return {condition};
}

Expr conjunction(const std::vector<Expr>& parts) {
  Expr out = boolImm(true);
  for (const Expr& e : parts) out = logicalAnd(out, e);
  return out;
}

int64_t countStatements(const NodeRef& s) {
  if (s.is<ExprNode>()) return 0;
  int64_t n = s.is<StoreNode>() || s.is<EvaluateNode>() ? 1 : 0;
  forEachChild(s, [&](const NodeRef& child, Role) { n += countStatements(child); });
  return n;
}

Stmt orNoOp(const Stmt& s) {
  return s ? s : seq({});
}

PrimFunc withBody(const PrimFunc& f, Stmt body) {
  return body == f->body ? f : with(f, &PrimFuncNode::body, orNoOp(body));
}

} // namespace bevel

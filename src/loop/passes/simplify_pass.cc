// Simplifies expressions and conditions under what is known at their place.
//
// before:  for i in 16:                                   after:  for i in 16:
//            if i*8 < 128: A[(i*8 + 7) // 8] = 0                    A[i] = 0
//            for j in 1: B[i + j] = 0                               B[i] = 0
//
// Conditions that always hold go, as do branches that never run, loops without an iteration, and loops with
// one.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

namespace bevel {
namespace {

class Simplification : public ContextRewriter {
public:
  using ContextRewriter::ContextRewriter;

private:
  NodeRef visit(const NodeRef& node) override {
    switch (node->kind) {
    case Kind::kFor:
      return visitFor(cast<ForNode>(node));
    case Kind::kIf:
      return visitIf(cast<IfNode>(node));
    case Kind::kLoad:
    case Kind::kStore:
      return simplifyAccess(visitChildren(node));
    case Kind::kBinary:
      return simplifyValue(cast<ExprNode>(visitChildren(node)));
    case Kind::kSelect: {
      Select s = cast<SelectNode>(visitChildren(node));
      if (auto c = known(s->condition)) return *c ? s->a : s->b;
      return s;
    }
    case Kind::kCall: {
      Call c = cast<CallNode>(ContextRewriter::visit(node));
      if (c->op != Intrin::kIfThenElse) return c;
      if (auto k = known(c->arg(0))) return c->args[*k ? 1 : 2];
      return c;
    }
    default:
      return ContextRewriter::visit(node);
    }
  }

  std::optional<bool> known(const Expr& condition) {
    Expr c = stripLikely(condition);
    if (auto k = asConst(c)) return *k != 0;
    if (c->dtype.isVector() || readsMemory(c)) return std::nullopt;
    if (analyzer.prove(c)) return true;
    if (analyzer.prove(logicalNot(c))) return false;
    return std::nullopt;
  }

  /// Index arithmetic only: values of elements keep their form.
  NodeRef simplifyValue(const Expr& e) {
    bool index = e->dtype.lanes == 1 && (e->dtype.isIndex() || e->dtype.isBool());
    return index && !readsMemory(e) ? NodeRef(simplified(e)) : NodeRef(e);
  }
  /// A product of sizes is not multiplied out: its factors divide the variable of a fused loop.
  Expr simplified(const Expr& e) {
    Expr out = analyzer.simplify(e);
    const auto* b = e.as<BinaryNode>();
    bool product = b && b->op == BinaryOp::kMul && !asConst(out);
    return product ? simplified(b->a) * simplified(b->b) : out;
  }

  /// A mask that is on for all lanes goes, and so does a store that is off.
  NodeRef simplifyAccess(const NodeRef& node) {
    auto access = elementAccess(node);
    Array<Expr> indices;
    for (const Expr& i : access->indices) indices.push_back(simplifyIndex(i));
    NodeRef out = indices == access->indices ? node : withAccess(node, access->buffer, indices);
    auto on = asConst(access->predicate);
    if (!on) return out;
    if (node.is<StoreNode>())
      return *on ? with(cast<StoreNode>(out), &StoreNode::predicate, nullptr) : nullptr;
    return *on ? NodeRef(with(cast<LoadNode>(out), &LoadNode::predicate, nullptr)) : out;
  }
  Expr simplifyIndex(const Expr& e) {
    if (const auto* r = e.as<RampNode>()) {
      Expr base = simplifyIndex(r->base);
      return base == r->base ? e : Expr(make<const RampNode>(base, r->stride, r->dtype.lanes));
    }
    return e->dtype.isVector() || readsMemory(e) ? e : analyzer.simplify(e);
  }

  NodeRef visitIf(const If& s) {
    Expr c = (*this)(s->condition);
    if (auto k = known(c)) {
      if (*k) return (*this)(NodeRef(s->thenBody));
      return s->elseBody ? (*this)(NodeRef(s->elseBody)) : NodeRef();
    }
    return ContextRewriter::visit(c == s->condition ? s : with(s, &IfNode::condition, c));
  }

  NodeRef visitFor(const For& loop) {
    Expr extent = (*this)(loop->extent), lo = (*this)(loop->min);
    if (!readsMemory(extent)) extent = simplified(extent);
    if (auto c = asConst(extent)) {
      if (*c <= 0) return nullptr;
      if (*c == 1 && loop->forKind != ForKind::kThreadBinding)
        return (*this)(substitute(NodeRef(loop->body), {{loop->var, lo}}));
    }
    bool changed = !(extent == loop->extent && lo == loop->min);
    return ContextRewriter::visit(changed ? with(loop, &ForNode::extent, extent, &ForNode::min, lo) : loop);
  }
};

} // namespace

Result<PrimFunc> simplifyPass(const PrimFunc& f, const Target&) {
  return Simplification(f).run(f);
}

} // namespace bevel

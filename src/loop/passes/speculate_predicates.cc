// Takes tail predicates off the statements that only fill private tiles, so that inner loops have no
// branches.
//
// before:  for ii, ji in T.grid(6, 16):
//            if io*6 + ii < M: acc[ii, ji] = 0
//          for k, ii, ji in T.grid(K, 6, 16):
//            if io*6 + ii < M: acc[ii, ji] += A[io*6 + ii, k] * B[k, ji]
//          for ii, ji in T.grid(6, 16):
//            if io*6 + ii < M: C[io*6 + ii, ji] = acc[ii, ji]
// after:   for ii, ji in T.grid(6, 16):
//            acc[ii, ji] = 0
//          for k, ii, ji in T.grid(K, 6, 16):
//            acc[ii, ji] += A[min(io*6 + ii, M-1), k] * B[k, ji]
//          for ii, ji in T.grid(6, 16):
//            if io*6 + ii < M: C[io*6 + ii, ji] = acc[ii, ji]
//
// 1. A predicate is written as a function of the slot of the private buffer that a statement stores or
//    loads: here "io*6 + s0 < M" at all three places.
// 2. It may leave a store when every load of the buffer whose value goes elsewhere stands under it: then
//    slots where it is false hold garbage that nobody looks at. A predicate on the reduction axis never
//    qualifies.
// 3. Loads that the predicate kept inside their buffer get the last valid index instead; along a vectorised
//    loop they get a mask. Statements that could trap on garbage (integer division, calls) keep their
//    predicates.
#include "loop/passes/speculation.h"

#include "arith/linear.h"
#include "loop/passes/passes.h"

#include <algorithm>

namespace bevel {
namespace {

/// Evaluating e on garbage, or where the program did not, is harmless.
bool speculable(const Expr& e, Analyzer& analyzer) {
  bool ok = true;
  walk(e, [&](const NodeRef& n) {
    if (const auto* c = n.as<CallNode>())
      ok &= intrinInfo(c->op).effect == Effect::kPure && c->op != Intrin::kCallPureExtern;
    const auto* b = n.as<BinaryNode>();
    bool divides = b && b->op >= BinaryOp::kDiv && b->op <= BinaryOp::kFloorMod && b->dtype.isInteger();
    if (divides) ok &= analyzer.prove(constant(b->b->dtype, 1) <= b->b);
    return ok;
  });
  return ok;
}

class Speculation : public ContextRewriter {
public:
  Speculation(const PrimFunc& f, DroppedPredicates dropped)
      : ContextRewriter(f), dropped_(std::move(dropped)) {}

private:
  NodeRef visit(const NodeRef& node) override {
    if (node.is<IfNode>()) return visitIf(cast<IfNode>(node));
    if (node.is<StoreNode>() && dropped_.contains(node.get())) return visitStore(cast<StoreNode>(node));
    if (node.is<LoadNode>() && speculating_) return guardedLoad(cast<LoadNode>(ContextRewriter::visit(node)));
    return ContextRewriter::visit(node);
  }

  /// Conjuncts that every store below drops leave the If; a sequence whose statements disagree is split
  /// first.
  NodeRef visitIf(const If& s) {
    if (s->elseBody || readsMemory(s->condition)) return ContextRewriter::visit(s);
    if (const auto* list = s->thenBody.as<SeqNode>(); list && anyDropped(s->thenBody)) {
      std::vector<Stmt> out;
      for (const Stmt& x : list->stmts)
        if (NodeRef kept = (*this)(NodeRef(make<const IfNode>(s->condition, x))))
          out.push_back(cast<StmtNode>(kept));
      return seq(out);
    }
    std::vector<Expr> kept;
    for (const Expr& c : conjuncts(s->condition))
      if (!allDrop(s->thenBody, c)) kept.push_back(c);
    if (kept.empty()) return (*this)(NodeRef(s->thenBody));
    if (kept.size() == conjuncts(s->condition).size()) return ContextRewriter::visit(s);
    auto copy = mutableCopy(s);
    copy->condition = call(Intrin::kLikely, {conjunction(kept)});
    return ContextRewriter::visit(If(copy));
  }
  bool anyDropped(const Stmt& body) {
    bool any = false;
    walk(body, [&](const NodeRef& n) {
      any |= n.is<StoreNode>() && dropped_.contains(n.get());
      return !any && !n.is<ExprNode>();
    });
    return any;
  }
  bool allDrop(const Stmt& body, const Expr& conjunct) {
    bool all = true;
    walk(body, [&](const NodeRef& n) {
      if (n.is<StoreNode>()) {
        auto it = dropped_.find(n.get());
        all &= it != dropped_.end() && std::any_of(it->second.begin(), it->second.end(),
                                                   [&](const Expr& d) { return same(d, conjunct); });
      } else if (n.is<EvaluateNode>() || n.is<AssertNode>() || n.is<WhileNode>()) {
        all = false;
      }
      return all && !n.is<ExprNode>();
    });
    return all;
  }

  NodeRef visitStore(const Store& s) {
    bool outer = speculating_;
    speculating_ = true;
    NodeRef out = ContextRewriter::visit(s);
    speculating_ = outer;
    return out;
  }

  /// The load with indices that lie inside the buffer whatever the dropped predicates say.
  NodeRef guardedLoad(const Load& l) {
    Array<Expr> indices;
    Expr mask = boolImm(true);
    for (size_t d = 0; d < l->indices.size(); ++d) {
      const Expr &i = l->indices[d], &size = l->buffer->shape[d];
      Expr zero = constant(i->dtype.scalar(), 0);
      bool low = analyzer.prove(i >= zero), high = analyzer.prove(i < size);
      if (low && high) {
        indices.push_back(i);
      } else if (variesByLane(i) || !isPositive(size)) {
        if (!low) mask = logicalAnd(mask, i >= zero);
        if (!high) mask = logicalAnd(mask, i < size);
        indices.push_back(i);
      } else {
        Expr clamped = high ? i : min(i, castTo(i->dtype, size) - 1);
        indices.push_back(low ? clamped : max(clamped, zero));
      }
    }
    auto copy = mutableCopy(l);
    copy->indices = indices;
    if (isConst(mask, 1)) return Load(copy);
    return ifThenElse(mask, Load(copy), constantFloat(l->dtype, 0));
  }
  bool variesByLane(const Expr& e) {
    return usesAnyVar(e, [&](const VarNode* v) {
      return std::any_of(loops.begin(), loops.end(), [&](const For& l) {
        return l->forKind == ForKind::kVectorized && l->var.get() == v;
      });
    });
  }
  bool isPositive(const Expr& size) { return analyzer.prove(size >= constant(size->dtype, 1)); }

  DroppedPredicates dropped_;
  bool speculating_ = false;
};

} // namespace

Result<PrimFunc> speculatePredicates(const PrimFunc& f, const Target&) {
  DroppedPredicates dropped = findDroppable(f, [](const Expr& e, Analyzer& a) { return speculable(e, a); });
  if (dropped.empty()) return f;
  return Speculation(f, std::move(dropped)).run(f);
}

} // namespace bevel

// Splits loops whose bodies test a likely condition into a main part where it holds and a tail.
//
// before:  for io in 4:                            after:  for io in 3:
//            for ii in T.vectorized(32):                     for ii in T.vectorized(32): B[io*32 + ii] = …
//              if T.likely(io*32 + ii < 100):              for io in range(3, 4):
//                B[io*32 + ii] = …                           for ii in T.vectorized(32):
//                                                              if T.likely(io*32 + ii < 100):
//                                                                B[io*32 + ii] = …
//
// Done for serial loops with small bodies, and only where the condition stands in the deepest loop: elsewhere
// it costs less than a second copy of the code. Outer loops come first, then the loops of each part. Where
// the condition guards all that a loop does, it becomes the loop's bound instead.
#include "arith/linear.h"
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <algorithm>

namespace bevel {
namespace {

constexpr int kMaxStatements = 16;

int loopDepth(const NodeRef& s) {
  if (s.is<ExprNode>()) return 0;
  int deepest = 0;
  forEachChild(s, [&](const NodeRef& c, Role) { deepest = std::max(deepest, loopDepth(c)); });
  return deepest + (s.is<ForNode>() ? 1 : 0);
}

/// Where the likely conditions over a loop's variable hold for all iterations inside.
class ConditionSolver {
public:
  ConditionSolver(const For& loop, Analyzer& analyzer)
      : loop_(loop), analyzer_(analyzer), deepest_(loopDepth(loop->body)) {}
  bool exact = true; // outside of the set no condition of `solved` holds
  IntSet set = IntSet::everything();
  std::vector<Expr> solved; // the conjuncts that hold in the set

  void visit(const NodeRef& n, int depth) {
    if (n.is<ExprNode>() || n.is<LetStmtNode>()) return;
    if (const auto* f = n.as<ForNode>()) {
      // The range is relaxed as well, so that no bound is over a loop inside.
      relax_[f->var] = evalSet(range(f->min, f->extent), relax_, analyzer_);
      visit(f->body, depth + 1);
      relax_.erase(f->var);
      return;
    }
    if (const auto* s = n.as<IfNode>();
        s && isLikely(s->condition) && depth + loopDepth(s->thenBody) == deepest_)
      for (const Expr& c : conjuncts(s->condition)) solve(c);
    forEachChild(n, [&](const NodeRef& c, Role) { visit(c, depth); });
  }

private:
  void solve(const Expr& c) {
    if (!usesVar(c, loop_->var) || readsMemory(c)) return;
    auto interval = solveFor(c, loop_->var, relax_, analyzer_);
    if (!interval || interval->set.empty || interval->set.isEverything()) return;
    if (!isBoundOfLoop(interval->set.min) || !isBoundOfLoop(interval->set.max)) return;
    // Where no iteration fulfils all conditions, this one stays in the body.
    IntSet both = intersectSet(set, interval->set, analyzer_);
    if (both.empty) return;
    set = both;
    exact &= interval->exact;
    solved.push_back(c);
  }

  /// May stand before the loop: it is over nothing that the loop binds, and reads no memory that the loop may
  /// change. An absent bound may.
  bool isBoundOfLoop(const Expr& e) const {
    if (!e) return true;
    return e->dtype == loop_->var->dtype && !readsMemory(e) && !usesVar(e, loop_->var) &&
           !usesAnyVar(e, [&](const VarNode* v) { return relax_.contains(Var(v)); });
  }

  const For& loop_;
  Analyzer& analyzer_;
  int deepest_;
  IntSetMap relax_; // loops inside
};

class LoopPartition : public ContextRewriter {
public:
  using ContextRewriter::ContextRewriter;

private:
  NodeRef visit(const NodeRef& node) override {
    if (node.is<ForNode>() && !settled_.contains(node.get())) {
      For loop = cast<ForNode>(node);
      bool small = countStatements(loop->body) <= kMaxStatements;
      // Every part computes the range again, which an earlier part must not change.
      bool fixed = !readsMemory(loop->min) && !readsMemory(loop->extent);
      if (loop->forKind == ForKind::kSerial && small && fixed && !isConst(loop->extent, 1)) {
        ConditionSolver solver{loop, analyzer};
        solver.visit(loop->body, 0);
        if (!solver.solved.empty())
          if (Stmt parts = split(loop, solver)) return ContextRewriter::visit(parts);
      }
    }
    return ContextRewriter::visit(node);
  }

  /// The parts, or null when the loop stays as it is.
  Stmt split(const For& loop, const ConditionSolver& solver) {
    Expr lo = loop->min, end = analyzer.simplify(loop->min + loop->extent);
    auto clamp = [&](const Expr& e, const Expr& low) { return analyzer.simplify(min(max(e, low), end)); };
    Expr first = solver.set.min ? clamp(solver.set.min, lo) : lo;
    Expr last = solver.set.max ? clamp(solver.set.max + 1, first) : end;
    if (analyzer.prove(last <= first)) return nullptr; // nothing in the main part
    bool onlyThere = solver.exact && doesNothingElse(loop->body, solver.solved);
    std::vector<Stmt> out;
    auto part = [&](const Expr& from, const Expr& to, Stmt body) {
      Expr extent = analyzer.simplify(to - from);
      if (isConst(extent, 0) || analyzer.prove(extent <= intImm(0))) return;
      Stmt made = with(loop, &ForNode::min, from, &ForNode::extent, extent, &ForNode::body, body);
      out.push_back(out.empty() ? made : freshen(made));
      settled_.insert(out.back().get());
      keep_.push_back(out.back());
    };
    if (!onlyThere) part(lo, first, loop->body);
    part(first, last, withoutConditions(loop->body, solver.solved));
    if (!onlyThere) part(last, end, loop->body);
    return seq(out);
  }

  /// The body is, below loops, one If over some of the conditions: outside of the solution nothing runs.
  static bool doesNothingElse(const Stmt& body, const std::vector<Expr>& solved) {
    if (const auto* f = body.as<ForNode>()) return doesNothingElse(f->body, solved);
    const auto* s = body.as<IfNode>();
    if (!s || s->elseBody) return false;
    std::vector<Expr> tested = conjuncts(s->condition);
    return std::ranges::all_of(solved, [&](const Expr& c) { return std::ranges::count(tested, c) > 0; });
  }

  std::unordered_set<const Node*> settled_; // loops that are parts already
  std::vector<Stmt> keep_;                  // … kept alive, for they are known by address

  static Stmt withoutConditions(const Stmt& body, const std::vector<Expr>& solved) {
    return cast<StmtNode>(rewrite(body, [&](const NodeRef& n) -> NodeRef {
      const auto* s = n.as<IfNode>();
      if (!s || !isLikely(s->condition)) return n;
      std::vector<Expr> kept;
      for (const Expr& c : conjuncts(s->condition))
        if (std::ranges::count(solved, c) == 0) kept.push_back(c);
      if (kept.empty()) return s->thenBody;
      return with(If(s), &IfNode::condition, call(Intrin::kLikely, {conjunction(kept)}));
    }));
  }
};

} // namespace

Result<PrimFunc> partitionLoops(const PrimFunc& f, const Target&) {
  return LoopPartition(f).run(f);
}

} // namespace bevel

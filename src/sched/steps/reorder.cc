#include "sched/steps/loops.h"

#include "ir/structural.h"
#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Puts nested loops into the given order, outermost first; loops between them that are not named stay where they are.

The loops must form a chain in which each holds only the next. A loop that moves inside another must carry no dependence but a
reduction, and no loop's range may depend on a loop that would be inside it.)";

struct Chain {
  Path path;                 // to the outermost loop of the chain
  std::vector<For> before;   // the chain from the outermost to the innermost named loop
  std::vector<size_t> order; // new position -> index in `before`
};

/// The chain of loops that holds all the named ones.
static Result<Chain> findChain(const Schedule& sch, const std::vector<LoopRV>& handles,
                               std::vector<Var>& vars) {
  Chain plan;
  Path deepest;
  for (LoopRV h : handles) {
    BEVEL_TRY(Path path, sch.locate(h));
    vars.push_back(loopAt(path)->var);
    if (std::count(vars.begin(), vars.end(), vars.back()) > 1)
      return fail(ErrorCode::kUsage, "loop " + vars.back()->name + " is named twice");
    if (!deepest.target || path.ancestors.size() > deepest.ancestors.size()) deepest = std::move(path);
  }
  std::vector<Stmt> line;
  for (const PathItem& item : deepest.ancestors) line.push_back(item.node);
  line.push_back(deepest.target);
  auto named = [&](const Stmt& x) {
    return x->kind == Kind::kFor && std::ranges::find(vars, cast<ForNode>(x)->var) != vars.end();
  };
  size_t first = size_t(std::ranges::find_if(line, named) - line.begin());
  for (const Var& v : vars)
    if (std::ranges::none_of(
            line, [&](const Stmt& x) { return x->kind == Kind::kFor && cast<ForNode>(x)->var == v; }))
      return illegal("loop " + v->name + " and " + quoted(loopAt(deepest)) + " are not nested in each other");
  for (size_t i = first; i < line.size(); ++i) {
    if (line[i]->kind != Kind::kFor)
      return illegal("the loops are not a chain: something else stands between " +
                     quoted(cast<ForNode>(line[first])) + " and " + quoted(loopAt(deepest)));
    plan.before.push_back(cast<ForNode>(line[i]));
  }
  plan.path = first == deepest.ancestors.size() ? deepest : deepest.upTo(first);
  return plan;
}

/// Ranges must be computed outside of what they depend on.
static Status checkRanges(const Chain& plan) {
  for (size_t k = 0; k < plan.order.size(); ++k) {
    const For& loop = plan.before[plan.order[k]];
    BEVEL_CHECK(checkFixedRange(loop));
    if (loop->extent.is<IntImmNode>() && loop->min.is<IntImmNode>()) continue;
    for (size_t m = k; m < plan.order.size(); ++m) {
      const Var& inner = plan.before[plan.order[m]]->var;
      if (usesVar(loop->extent, inner) || usesVar(loop->min, inner))
        return illegal("the range of " + quoted(loop) + " depends on loop " + inner->name);
    }
  }
  return {};
}

/// Every loop that moves inside another one must allow its iterations in any order.
static Status checkCrossings(const PrimFunc& f, const Chain& plan) {
  std::vector<For> nest = loopChain(plan.before.front()); // loops further inside stay where they are
  if (auto* realize = nest.back()->body.as<BlockRealizeNode>();
      realize && checkAnyOrder(f, BlockRealize(realize), nest))
    return {};
  std::vector<size_t> position(plan.order.size());
  for (size_t k = 0; k < plan.order.size(); ++k) position[plan.order[k]] = k;
  AccessModel model = modelOf(plan.path);
  for (size_t i = 0; i < plan.before.size(); ++i) {
    const For& loop = plan.before[i];
    bool moves = false;
    for (size_t j = i + 1; j < plan.before.size(); ++j) moves |= position[i] > position[j];
    if (moves) BEVEL_CHECK(checkIndependent(model, loop, true));
  }
  return {};
}

/// Lanes of a vector hold no threads and no lanes of another; threads hold no threads.
static Status checkKinds(const Chain& plan) {
  for (size_t k = 0; k < plan.order.size(); ++k) {
    const For& outer = plan.before[plan.order[k]];
    bool vector = outer->forKind == ForKind::kVectorized, thread = outer->forKind == ForKind::kParallel;
    for (size_t m = k + 1; m < plan.order.size() && (vector || thread); ++m) {
      const For& inner = plan.before[plan.order[m]];
      if (inner->forKind == ForKind::kParallel || (vector && inner->forKind == ForKind::kVectorized))
        return illegal(quoted(inner) + ", which is " + kForKindNames[int(inner->forKind)] +
                       ", would be inside " + quoted(outer) + ", which is " +
                       kForKindNames[int(outer->forKind)]);
    }
  }
  return {};
}

static Result<Plan> check(const Schedule& sch, const Reorder& s) {
  if (s.orderedLoops.empty()) return fail(ErrorCode::kUsage, "there is no loop to reorder");
  std::vector<Var> vars;
  BEVEL_TRY(Chain plan, findChain(sch, s.orderedLoops, vars));
  size_t next = 0;
  for (size_t i = 0; i < plan.before.size(); ++i) {
    bool named = std::ranges::find(vars, plan.before[i]->var) != vars.end();
    size_t source = i;
    if (named) {
      const Var& wanted = vars[next++];
      source = size_t(std::ranges::find_if(plan.before, [&](const For& l) { return l->var == wanted; }) -
                      plan.before.begin());
    }
    plan.order.push_back(source);
  }
  BEVEL_CHECK(checkRanges(plan));
  BEVEL_CHECK(checkKinds(plan));
  BEVEL_CHECK(checkCrossings(sch.func(), plan));
  std::vector<For> after;
  for (size_t k : plan.order) after.push_back(plan.before[k]);
  return Plan{replaceAt(plan.path, nestOf(after, plan.before.back()->body))};
}

STEP_INFO(Reorder, "reorder", kDoc)

} // namespace bevel::steps

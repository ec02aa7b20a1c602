#include "sched/steps/loops.h"

#include "ir/structural.h"
#include "loop/reduction.h"
#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Runs the iterations of a loop as the lanes of vectors.

The extent must be a constant. Refused like `parallel` where iterations depend on each other, except for sums, products, minima and
maxima without init (decompose_reduction first): their lanes are combined at the end of each vector. Refused where the loop holds a loop whose
range depends on it, or a while loop: the lanes would run different numbers of iterations.)";

/// All lanes must run the same statements.
static Status checkUniform(const For& loop) {
  Status status;
  walk(loop->body, [&](const NodeRef& n) {
    if (!status) return false;
    if (n->kind == Kind::kWhile) status = illegal(quoted(loop) + " holds a while loop");
    auto* inner = n.as<ForNode>();
    if (!inner) return true;
    if (usesVar(inner->extent, loop->var) || usesVar(inner->min, loop->var))
      status = illegal("the range of " + quoted(For(inner)) + " depends on " + quoted(loop));
    if (inner->forKind == ForKind::kVectorized || inner->forKind == ForKind::kParallel)
      status = illegal(quoted(loop) + " holds " + quoted(For(inner)) + ", which is " +
                       kForKindNames[int(inner->forKind)]);
    return true;
  });
  return status;
}

/// Whether every block under the loop that reduces over it has the form `B[i] = op(B[i], value)` of a vector
/// reduction.
static bool reducesByLanes(const For& loop) {
  bool ok = true;
  for (const BlockRealize& r : blocksUnder(loop->body)) {
    if (!drivenBy(*r, loop->var).reduce) continue;
    auto* store = r->block->body.as<StoreNode>();
    ok &= store && !r->block->init && accumulationOf(*store);
  }
  return ok;
}

static Result<Plan> check(const Schedule& sch, const Vectorize& s) {
  BEVEL_TRY(Path found, sch.locate(s.loop));
  BEVEL_TRY(Path path, checkIndependentLoop(sch, s.loop, reducesByLanes(loopAt(found))));
  const For loop = loopAt(path);
  if (!asConst(loop->extent)) return illegal("the extent of " + quoted(loop) + " is not a constant");
  if (*asConst(loop->extent) > 1024) return illegal("a vector of more than 1024 lanes");
  for (const For& outer : path.loops())
    if (outer->forKind == ForKind::kVectorized)
      return illegal(quoted(loop) + " is inside vectorized " + quoted(outer));
  BEVEL_CHECK(checkUniform(loop));
  return withKind(path, ForKind::kVectorized);
}

STEP_INFO(Vectorize, "vectorize", kDoc)

} // namespace bevel::steps

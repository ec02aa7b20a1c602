#include "sched/steps/loops.h"

#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Runs the iterations of a loop on several threads.

Refused unless different iterations provably write different elements and read nothing that another writes; a loop over a reduction
axis is refused.)";

static Result<Plan> check(const Schedule& sch, const Parallel& s) {
  BEVEL_TRY(Path path, checkIndependentLoop(sch, s.loop));
  for (const For& outer : path.loops())
    if (outer->forKind == ForKind::kParallel || outer->forKind == ForKind::kVectorized)
      return illegal(quoted(loopAt(path)) + " is inside " + quoted(outer) + ", which is " +
                     kForKindNames[int(outer->forKind)] + " already");
  BEVEL_CHECK(checkNoneInside(path, [](const ForNode& l) { return l.forKind == ForKind::kParallel; }));
  return withKind(path, ForKind::kParallel);
}

STEP_INFO(Parallel, "parallel", kDoc)

} // namespace bevel::steps

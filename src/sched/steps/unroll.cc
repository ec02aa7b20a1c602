#include "sched/steps/loops.h"

#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Writes out the iterations of a loop one after the other. The extent must be a constant.)";

static Result<Plan> check(const Schedule& sch, const Unroll& s) {
  BEVEL_TRY(Path path, sch.locate(s.loop));
  const For loop = loopAt(path);
  if (loop->forKind != ForKind::kSerial)
    return illegal(quoted(loop) + " is already " + kForKindNames[int(loop->forKind)]);
  if (!asConst(loop->extent)) return illegal("the extent of " + quoted(loop) + " is not a constant");
  if (*asConst(loop->extent) > 4096) return illegal(quoted(loop) + " has more than 4096 iterations");
  return withKind(path, ForKind::kUnrolled);
}

STEP_INFO(Unroll, "unroll", kDoc)

} // namespace bevel::steps

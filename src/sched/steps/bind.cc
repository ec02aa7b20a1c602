#include "sched/steps/loops.h"

#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Binds a loop to an axis of a GPU's threads: blockIdx.x/y/z, threadIdx.x/y/z, vthread, vthread.x/y/z.

Legal where `parallel` is. A reduction loop is refused: use rfactor first.)";

static Result<Plan> check(const Schedule& sch, const Bind& s) {
  if (!isThreadAxis(s.threadAxis)) return fail(ErrorCode::kUsage, "there is no thread axis " + s.threadAxis);
  BEVEL_TRY(Path path, checkIndependentLoop(sch, s.loop));
  if (!s.threadAxis.starts_with("vthread")) {
    for (const For& outer : path.loops())
      if (outer->thread == s.threadAxis)
        return illegal("loop " + outer->var->name + " around it is bound to " + s.threadAxis + " already");
    BEVEL_CHECK(checkNoneInside(path, [&](const ForNode& l) { return l.thread == s.threadAxis; }));
  }
  return withKind(path, ForKind::kThreadBinding, s.threadAxis);
}

STEP_INFO(Bind, "bind", kDoc)

} // namespace bevel::steps

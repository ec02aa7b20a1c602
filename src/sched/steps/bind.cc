#include "sched/steps/bind.h"

#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Binds a loop to an axis of a GPU's threads: blockIdx.x/y/z, threadIdx.x/y/z, vthread, vthread.x/y/z.

Legal where `parallel` is. A reduction loop is refused: use rfactor first.)";

static Result<Path> check(const Schedule& sch, const Bind& s) {
  if (!isThreadAxis(s.threadAxis)) return fail(ErrorCode::kUsage, "there is no thread axis " + s.threadAxis);
  BEVEL_TRY(Path path, checkIndependentLoop(sch, s.loop));
  for (const For& outer : path.loops())
    if (outer->thread == s.threadAxis && !s.threadAxis.starts_with("vthread"))
      return illegal("loop " + outer->var->name + " around it is bound to " + s.threadAxis + " already");
  if (s.threadAxis.starts_with("vthread")) return path;
  return checkNoneInside(path, [&](const ForNode& l) { return l.thread == s.threadAxis; });
}

static void apply(Schedule& sch, Bind& s, Path&& path) {
  setLoopKind(sch, path, ForKind::kThreadBinding, s.threadAxis);
}

STEP_INFO(Bind, "bind", kDoc)

} // namespace bevel::steps

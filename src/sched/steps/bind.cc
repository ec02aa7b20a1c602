#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Binds a loop to an axis of a GPU's threads: blockIdx.x/y/z, threadIdx.x/y/z, vthread, vthread.x/y/z.

Legal where `parallel` is. A reduction loop is refused: use rfactor first.)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)",
    R"(b = sch.get_sblock(name="B")
i, = sch.get_loops(block=b)
sch.bind(loop=i, thread_axis="threadIdx.x")
)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)"};

struct Bind {
  LoopRV loop;
  std::string threadAxis;
  STEP_FIELDS(Bind, IN(loop), IN(threadAxis))
};

static Result<Path> check(const Schedule& sch, const Bind& s) {
  static const char* const kAxes[] = {"blockIdx.x",  "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y",
                                      "threadIdx.z", "vthread",    "vthread.x",  "vthread.y",   "vthread.z"};
  if (std::ranges::find(kAxes, s.threadAxis, [](const char* a) { return std::string_view(a); }) ==
      std::end(kAxes))
    return fail(ErrorCode::kUsage, "there is no thread axis " + s.threadAxis);
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

namespace bevel {
Status Schedule::bind(LoopRV loop, std::string threadAxis) {
  return runStep(*this, steps::Bind{loop, std::move(threadAxis)});
}
} // namespace bevel

#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Runs the iterations of a loop on several threads.

Refused unless different iterations provably write different elements and read nothing that another writes; a loop over a reduction
axis is refused.)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)",
    R"(b = sch.get_sblock(name="B")
i, = sch.get_loops(block=b)
sch.parallel(loop=i)
)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)"};

struct Parallel {
  LoopRV loop;
  STEP_FIELDS(Parallel, IN(loop))
};

static Result<Path> check(const Schedule& sch, const Parallel& s) {
  BEVEL_TRY(Path path, checkIndependentLoop(sch, s.loop));
  for (const For& outer : path.loops())
    if (outer->forKind == ForKind::kParallel || outer->forKind == ForKind::kVectorized)
      return illegal(quoted(loopAt(path)) + " is inside " + quoted(outer) + ", which is " +
                     kForKindNames[int(outer->forKind)] + " already");
  return checkNoneInside(path, [](const ForNode& l) { return l.forKind == ForKind::kParallel; });
}

static void apply(Schedule& sch, Parallel&, Path&& path) {
  setLoopKind(sch, path, ForKind::kParallel);
}

STEP_INFO(Parallel, "parallel", kDoc)

} // namespace bevel::steps

namespace bevel {
Status Schedule::parallel(LoopRV loop) {
  return runStep(*this, steps::Parallel{loop});
}
} // namespace bevel

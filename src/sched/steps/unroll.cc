#include "sched/loop_kind.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Writes out the iterations of a loop one after the other. The extent must be a constant.)",
    R"(@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + T.float32(1)
)",
    R"(b = sch.get_sblock(name="B")
i, = sch.get_loops(block=b)
sch.unroll(loop=i)
)",
    R"(@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in T.unroll(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + T.float32(1)
)"};

struct Unroll {
  LoopRV loop;
  STEP_FIELDS(Unroll, IN(loop))
};

static Result<Path> check(const Schedule& sch, const Unroll& s) {
  BEVEL_TRY(Path path, locate(sch, s.loop));
  const For loop = loopAt(path);
  if (loop->forKind != ForKind::kSerial)
    return illegal(quoted(loop) + " is already " + kForKindNames[int(loop->forKind)]);
  if (!asConst(loop->extent)) return illegal("the extent of " + quoted(loop) + " is not a constant");
  if (*asConst(loop->extent) > 4096) return illegal(quoted(loop) + " has more than 4096 iterations");
  return path;
}

static void apply(Schedule& sch, Unroll&, Path&& path) {
  setLoopKind(sch, path, ForKind::kUnrolled);
}

STEP_INFO(Unroll, "unroll", kDoc)

} // namespace bevel::steps

namespace bevel {
Status Schedule::unroll(LoopRV loop) {
  return runStep(*this, steps::Unroll{loop});
}
} // namespace bevel

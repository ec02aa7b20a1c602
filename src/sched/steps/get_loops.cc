#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {R"(Gives the loops around a block within its scope, outermost first.)",
                          R"(@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
)",
                          R"(b = sch.get_sblock(name="B")
i, j = sch.get_loops(block=b)
sch.reorder(j, i)
)",
                          R"(@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for j, i in T.grid(4, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
)"};

struct GetLoops {
  BlockRV block;
  std::vector<LoopRV> results;
  STEP_FIELDS(GetLoops, IN(block), OUT(results))
};

static Result<std::vector<For>> check(const Schedule& sch, const GetLoops& s) {
  BEVEL_TRY(Path path, locate(sch, s.block));
  return path.loops();
}

static void apply(Schedule& sch, GetLoops& s, std::vector<For>&& loops) {
  for (const For& loop : loops) s.results.push_back(sch.addLoop(loop->var));
}

STEP_INFO(GetLoops, "get_loops", kDoc)

} // namespace bevel::steps

namespace bevel {
Result<std::vector<LoopRV>> Schedule::getLoops(BlockRV block) {
  return runStep(*this, steps::GetLoops{block, {}}, &steps::GetLoops::results);
}
} // namespace bevel

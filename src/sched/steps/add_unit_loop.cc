#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {R"(Puts a loop of one iteration around a block or a loop.)",
                          R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)",
                          R"(b = sch.get_sblock(name="B")
u = sch.add_unit_loop(block_or_loop=b)
)",
                          R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        for u in range(1):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)
)"};

struct AddUnitLoop {
  RV blockOrLoop;
  LoopRV result;
  STEP_FIELDS(AddUnitLoop, IN(blockOrLoop), OUT(result))
};

static Result<Path> check(const Schedule& sch, const AddUnitLoop& s) {
  bool isLoop = s.blockOrLoop.kind == RVKind::kLoop;
  BEVEL_TRY(Path path,
            isLoop ? locate(sch, LoopRV(s.blockOrLoop.id)) : locate(sch, BlockRV(s.blockOrLoop.id)));
  BEVEL_CHECK(scopeOf(path));
  return path;
}

static void apply(Schedule& sch, AddUnitLoop& s, Path&& path) {
  DType dtype = kInt64;
  if (auto* loop = path.target.as<ForNode>())
    dtype = loop->var->dtype;
  else if (auto loops = path.loops(); !loops.empty())
    dtype = loops.back()->var->dtype;
  Var u = var("u", dtype);
  setBody(sch, replaceAt(path, forLoop(u, constant(dtype, 1), path.target)));
  s.result = sch.addLoop(u);
}

STEP_INFO(AddUnitLoop, "add_unit_loop", kDoc)

} // namespace bevel::steps

namespace bevel {
Result<LoopRV> Schedule::addUnitLoop(RV blockOrLoop) {
  return runStep(*this, steps::AddUnitLoop{blockOrLoop, {}}, &steps::AddUnitLoop::result);
}
} // namespace bevel

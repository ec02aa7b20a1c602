#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Chooses the function of a module in which `get_sblock` looks for blocks from now on.)",
    R"(@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * T.float32(2)
)",
    R"(sch.work_on(func_name="twice")
b = sch.get_sblock(name="B")
i, = sch.get_loops(block=b)
sch.parallel(loop=i)
)",
    R"(@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * T.float32(2)
)"};

struct WorkOn {
  std::string funcName;
  STEP_FIELDS(WorkOn, IN(funcName))
};

static Result<NoPlan> check(const Schedule& sch, const WorkOn& s) {
  Schedule probe = sch;
  BEVEL_CHECK(probe.workOnFunction(s.funcName));
  return NoPlan{};
}

static void apply(Schedule& sch, WorkOn& s, NoPlan&&) {
  (void)sch.workOnFunction(s.funcName);
}

STEP_INFO(WorkOn, "work_on", kDoc)

} // namespace bevel::steps

namespace bevel {
Status Schedule::workOn(std::string funcName) {
  return runStep(*this, steps::WorkOn{std::move(funcName)});
}
} // namespace bevel

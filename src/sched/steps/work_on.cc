#include "sched/steps/work_on.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Chooses the function of a module in which `get_sblock` looks for blocks from now on.)";

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

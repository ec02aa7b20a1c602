#include "sched/steps/get.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Chooses the function of a module in which `get_sblock` looks for blocks from now on.)";

static Result<Plan> check(Schedule& sch, const WorkOn& s) {
  BEVEL_CHECK(sch.workOnFunction(s.funcName));
  return Plan{};
}

STEP_INFO(WorkOn, "work_on", kDoc)

} // namespace bevel::steps

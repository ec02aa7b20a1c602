#include "sched/steps/get.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc = R"(Gives the loops around a block within its scope, outermost first.)";

static Result<Plan> check(const Schedule& sch, const GetLoops& s) {
  BEVEL_TRY(Path path, sch.locate(s.block));
  Plan plan;
  for (const For& loop : path.loops()) plan.results.push_back(loop->var);
  return plan;
}

STEP_INFO(GetLoops, "get_loops", kDoc)

} // namespace bevel::steps

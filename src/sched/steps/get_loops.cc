#include "sched/steps/get_loops.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc = R"(Gives the loops around a block within its scope, outermost first.)";

static Result<std::vector<For>> check(const Schedule& sch, const GetLoops& s) {
  BEVEL_TRY(Path path, locate(sch, s.block));
  return path.loops();
}

static void apply(Schedule& sch, GetLoops& s, std::vector<For>&& loops) {
  for (const For& loop : loops) s.results.push_back(sch.addLoop(loop->var));
}

STEP_INFO(GetLoops, "get_loops", kDoc)

} // namespace bevel::steps

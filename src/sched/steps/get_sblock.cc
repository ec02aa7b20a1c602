#include "sched/steps/get.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Gives the handle of a block by its name.

`func_name` names the function of a module; without it, the function that `work_on` chose ("main" at the start).)";

static Result<Plan> check(Schedule& sch, const GetSblock& s) {
  if (!s.funcName.empty()) BEVEL_CHECK(sch.workOnFunction(s.funcName));
  if (findBlock(sch.func()->body, s.name).target) return Plan{.results = {str(s.name)}};
  std::string known;
  forEachStmt(sch.func()->body, [&](const Stmt& x) {
    if (auto* r = x.as<BlockRealizeNode>()) known += (known.empty() ? "" : ", ") + r->block->name;
    return true;
  });
  return fail(Error(ErrorCode::kIllegal, "there is no block " + s.name + " in function " + sch.funcName())
                  .note("blocks: " + known));
}

STEP_INFO(GetSblock, "get_sblock", kDoc, "get_block")

} // namespace bevel::steps

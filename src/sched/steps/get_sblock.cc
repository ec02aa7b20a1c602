#include "sched/steps/get_sblock.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Gives the handle of a block by its name.

`func_name` names the function of a module; without it, the function that `work_on` chose ("main" at the start).)";

static Result<NoPlan> check(const Schedule& sch, const GetSblock& s) {
  Schedule at = sch;
  if (!s.funcName.empty()) BEVEL_CHECK(at.workOnFunction(s.funcName));
  if (findBlock(at.func()->body, s.name).target) return NoPlan{};
  std::string known;
  forEachStmt(at.func()->body, [&](const Stmt& x) {
    if (auto* r = x.as<BlockRealizeNode>()) known += (known.empty() ? "" : ", ") + r->block->name;
    return true;
  });
  return fail(Error(ErrorCode::kIllegal, "there is no block " + s.name + " in function " + at.funcName())
                  .note("blocks: " + known));
}

static void apply(Schedule& sch, GetSblock& s, NoPlan&&) {
  if (!s.funcName.empty()) (void)sch.workOnFunction(s.funcName);
  s.result = sch.addBlock(s.name);
}

STEP_INFO(GetSblock, "get_sblock", kDoc, "get_block")

} // namespace bevel::steps

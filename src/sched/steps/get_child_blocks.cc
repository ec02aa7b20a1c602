#include "sched/steps/get.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Gives the blocks directly inside a block, or under a loop, in program order.)";

static Result<Plan> check(const Schedule& sch, const GetChildBlocks& s) {
  BEVEL_TRY(Path path, sch.locate(s.blockOrLoop));
  const auto* realize = path.target.as<BlockRealizeNode>();
  Plan plan;
  for (const BlockRealize& b : blocksUnder(realize ? realize->block->body : path.target))
    plan.results.push_back(str(b->block->name));
  return plan;
}

STEP_INFO(GetChildBlocks, "get_child_blocks", kDoc)

} // namespace bevel::steps

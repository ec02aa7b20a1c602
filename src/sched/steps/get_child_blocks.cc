#include "sched/steps/get_child_blocks.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Gives the blocks directly inside a block, or under a loop, in program order.)";

static Result<std::vector<BlockRealize>> check(const Schedule& sch, const GetChildBlocks& s) {
  BEVEL_TRY(Path path, locate(sch, s.blockOrLoop));
  const auto* realize = path.target.as<BlockRealizeNode>();
  return blocksUnder(realize ? realize->block->body : path.target);
}

static void apply(Schedule& sch, GetChildBlocks& s, std::vector<BlockRealize>&& blocks) {
  for (const BlockRealize& b : blocks) s.results.push_back(sch.addBlock(b->block->name));
}

STEP_INFO(GetChildBlocks, "get_child_blocks", kDoc)

} // namespace bevel::steps

#include "sched/move.h"

#include <algorithm>

namespace bevel {

Result<Move> moveOf(const Schedule& sch, BlockRV block, LoopRV loop, Analyzer& analyzer) {
  BEVEL_TRY(BlockSite site, siteOf(sch, block));
  BEVEL_TRY(Path loopPath, locate(sch, loop));
  BEVEL_CHECK(checkMovable(site.path, loopPath));
  BEVEL_CHECK(checkCompleteOrReduction(site.info, site.self));
  bindContext(sch, site.path, analyzer);
  bindLoops(loopPath, analyzer);
  bindLoop(loopAt(loopPath), analyzer);
  BEVEL_CHECK(checkCoversDomain(site.inScope(), analyzer));
  For target = loopAt(loopPath);
  return Move{std::move(site), std::move(loopPath), std::move(target)};
}

static Result<size_t> positionOf(const Move& move, int64_t index) {
  const ScopeInfo& info = move.site.info;
  std::vector<Stmt> items = itemsOf(move.loop->body);
  auto itemOf = [&](int block) { // -1: elsewhere
    for (size_t i = 0; i < items.size(); ++i)
      if (findBlock(items[i], info.blocks[size_t(block)].name()).target) return int64_t(i);
    return int64_t(-1);
  };
  int64_t first = 0, last = int64_t(items.size());
  for (int p : info.producers(move.site.self)) first = std::max(first, itemOf(p) + 1);
  for (int c : info.consumers(move.site.self))
    if (int64_t at = itemOf(c); at >= 0) last = std::min(last, at);
  if (first > last) return illegal("a producer comes after a consumer under " + quoted(move.loop));
  if (index == -1) return size_t(last);
  if (index == -2) return size_t(first);
  if (index < first || index > last)
    return illegal("index " + std::to_string(index) + " is not between " + std::to_string(first) + " and " +
                   std::to_string(last));
  return size_t(index);
}

Result<MovePlan> planMove(const Move& move, Stmt nest, int64_t index) {
  BEVEL_TRY(size_t position, positionOf(move, index));
  return MovePlan{move.site.path, move.loop->var, std::move(nest), position};
}

void applyMove(Schedule& sch, MovePlan&& plan) {
  Stmt root = withoutBlock(plan.path);
  setBody(sch, insertUnder(root, plan.loop, plan.position, plan.nest));
}

} // namespace bevel

#include "sched/move.h"

#include "loop/reduction.h"
#include "sched/loop_kind.h"

#include <algorithm>

namespace bevel {

/// A reduction moves into loops over its axes in order. Where its updates do not simply accumulate, that must be
/// the order that they have.
static Status checkUpdatesInOrder(const ScopeBlock& block) {
  if (!block.block().init || accumulates(block.block())) return {};
  std::vector<const Expr*> axes;
  for (size_t i = 0; i < block.realize->values.size(); ++i)
    if (const IterVar& iv = block.block().iters[i];
        iv->type != IterType::kSpatial && !isConst(iv->domain->extent, 1))
      axes.push_back(&block.realize->values[i]);
  size_t next = 0;
  for (const For& l : block.loops)
    if (next < axes.size() && *axes[next] == Expr(l->var)) ++next;
  if (next == axes.size()) return {};
  return illegal(quoted(block.block()) + " does not accumulate by a sum, product, minimum or maximum of one "
                                         "element, and its reduction axes are not simply its loops in order");
}

Result<Move> moveOf(const Schedule& sch, BlockRV block, LoopRV loop, Analyzer& analyzer) {
  BEVEL_TRY(BlockSite site, siteOf(sch, block));
  BEVEL_TRY(Path loopPath, sch.locate(loop));
  BEVEL_CHECK(checkMovable(site.path, loopPath));
  BEVEL_CHECK(checkCompleteOrReduction(site.info, site.self));
  BEVEL_CHECK(checkOwnsElements(*site.block()));
  BEVEL_CHECK(checkUpdatesInOrder(site.inScope()));
  auto under = std::ranges::find_if(site.info.blocks,
                                    [&](const ScopeBlock& b) { return isUnder(b, loopAt(loopPath)->var); });
  if (under != site.info.blocks.end())
    BEVEL_CHECK(checkNoEffectsUntil(site.info, site.self, int(under - site.info.blocks.begin())));
  bindDims(sch.func(), analyzer);
  bindLoops(loopPath, analyzer); // of the loops around the block no longer: that they run is not known there
  bindLoop(loopAt(loopPath), analyzer);
  BEVEL_CHECK(checkCoversDomain(site.inScope(), analyzer));
  For target = loopAt(loopPath);
  return Move{std::move(site), std::move(loopPath), std::move(target)};
}

static Result<size_t> positionOf(const Move& move, int64_t index) {
  const ScopeInfo& info = move.site.info;
  std::vector<Stmt> items = itemsOf(move.loop->body);
  auto itemOf = [&](int block) { return itemWith(items, info.blocks[size_t(block)]); };
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

Result<Plan> planMove(const Move& move, Stmt nest, int64_t index) {
  BEVEL_TRY(size_t position, positionOf(move, index));
  Stmt root = insertUnder(findLoop(withoutBlock(move.site.path), move.loop->var), position, nest);
  BEVEL_CHECK(checkThreads(root, move.loopPath));
  return Plan{root};
}

} // namespace bevel

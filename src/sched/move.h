// What compute_at and reverse_compute_at share: what both must find and prove, the place in the loop, and the
// move itself.
#pragma once

#include "sched/dataflow.h"

namespace bevel {

struct Move {
  BlockSite site;
  Path loopPath;
  For loop;
};
/// The block is a whole block or reduction that provably runs for all values of its axes, in the loop's scope
/// but not under it. The analyzer knows all around both afterwards.
Result<Move> moveOf(const Schedule& sch, BlockRV block, LoopRV loop, Analyzer& analyzer);

/// The place among the items of the loop's body that `index` names (-1: the last possible, -2: the first),
/// between the block's producers and its consumers there. Threads around it must stay independent.
Result<Plan> planMove(const Move& move, Stmt nest, int64_t index);

} // namespace bevel

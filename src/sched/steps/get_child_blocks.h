#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Gives the blocks directly inside a block, or under a loop, in program order.
struct GetChildBlocks {
  RV blockOrLoop;
  Array<BlockRV> results = {};
  STEP_FIELDS(GetChildBlocks, IN(blockOrLoop), OUT(results))
};

} // namespace bevel::steps

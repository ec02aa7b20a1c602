#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Gives the blocks of the same scope that write what a block reads, in program order.
struct GetProducers {
  BlockRV block;
  Array<BlockRV> results = {};
  STEP_FIELDS(GetProducers, IN(block), OUT(results))
};

} // namespace bevel::steps

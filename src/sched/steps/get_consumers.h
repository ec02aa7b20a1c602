#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Gives the blocks of the same scope that read what a block writes, in program order.
struct GetConsumers {
  BlockRV block;
  Array<BlockRV> results = {};
  STEP_FIELDS(GetConsumers, IN(block), OUT(results))
};

} // namespace bevel::steps

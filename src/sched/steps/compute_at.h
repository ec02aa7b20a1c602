#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Moves a producer under a loop of its consumers: each iteration computes what that iteration reads, no
/// more and no less.
struct ComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserveUnitLoops = false;
  int64_t index = -1;
  STEP_FIELDS(ComputeAt, IN(block), IN(loop), OPTION(preserveUnitLoops), OPTION(index))
};

} // namespace bevel::steps

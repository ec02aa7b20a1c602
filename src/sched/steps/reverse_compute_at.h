#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Moves a consumer under a loop of its producers: each iteration consumes what that iteration has
/// produced.
struct ReverseComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserveUnitLoops = false;
  int64_t index = -1;
  STEP_FIELDS(ReverseComputeAt, IN(block), IN(loop), OPTION(preserveUnitLoops), OPTION(index))
};

} // namespace bevel::steps

#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Gives the loops around a block within its scope, outermost first.
struct GetLoops {
  BlockRV block;
  Array<LoopRV> results = {};
  STEP_FIELDS(GetLoops, IN(block), OUT(results))
};

} // namespace bevel::steps

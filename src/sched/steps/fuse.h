#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Fuses nested loops, given outermost first, into one.
struct Fuse {
  Array<LoopRV> loops;
  bool preserveUnitIters = true;
  LoopRV result = {};
  STEP_FIELDS(Fuse, VARIADIC(loops), OPTION(preserveUnitIters), OUT(result))
};

} // namespace bevel::steps

#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Writes out the iterations of a loop one after the other. The extent must be a constant.
struct Unroll {
  LoopRV loop;
  STEP_FIELDS(Unroll, IN(loop))
};

} // namespace bevel::steps

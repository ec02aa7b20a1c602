#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Runs the iterations of a loop on several threads.
struct Parallel {
  LoopRV loop;
  STEP_FIELDS(Parallel, IN(loop))
};

} // namespace bevel::steps

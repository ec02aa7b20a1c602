#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Runs the iterations of a loop as the lanes of vectors.
struct Vectorize {
  LoopRV loop;
  STEP_FIELDS(Vectorize, IN(loop))
};

} // namespace bevel::steps

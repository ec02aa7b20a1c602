#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Binds a loop to an axis of a GPU's threads: blockIdx.x/y/z, threadIdx.x/y/z, vthread, vthread.x/y/z.
struct Bind {
  LoopRV loop;
  std::string threadAxis;
  STEP_FIELDS(Bind, IN(loop), IN(threadAxis))
};

} // namespace bevel::steps

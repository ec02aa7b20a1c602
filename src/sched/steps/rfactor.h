#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Makes one loop of a reduction independent: each of its iterations reduces into a place of its own, and a
/// second block combines the places.
struct Rfactor {
  LoopRV loop;
  int64_t factorAxis = 0;
  BlockRV result = {};
  STEP_FIELDS(Rfactor, IN(loop), IN(factorAxis), OUT(result))
};

} // namespace bevel::steps

#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Puts a loop of one iteration around a block or a loop.
struct AddUnitLoop {
  RV blockOrLoop;
  LoopRV result = {};
  STEP_FIELDS(AddUnitLoop, IN(blockOrLoop), OUT(result))
};

} // namespace bevel::steps

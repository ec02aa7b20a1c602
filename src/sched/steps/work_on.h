#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Chooses the function of a module in which `get_sblock` looks for blocks from now on.
struct WorkOn {
  std::string funcName = {};
  STEP_FIELDS(WorkOn, IN(funcName))
};

} // namespace bevel::steps

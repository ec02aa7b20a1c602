#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Gives the handle of a block by its name.
struct GetSblock {
  std::string name;
  std::string funcName = {};
  BlockRV result = {};
  STEP_FIELDS(GetSblock, IN(name), OPTION(funcName), OUT(result))
};

} // namespace bevel::steps

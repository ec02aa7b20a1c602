#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Records which of several candidates a schedule rule took, and what the model thinks each costs.
struct Decide {
  std::string name;
  Array<AnyArg> candidates; // an integer, a list of integers, or a name
  std::vector<double> costs = {};
  IntArg decision = {};
  std::string why = {};
  Array<ExprRV> results = {};
  STEP_FIELDS(Decide, IN(name), IN(candidates), OPTION(costs), DECISION(decision), OPTION(why), OUT(results))
};

} // namespace bevel::steps

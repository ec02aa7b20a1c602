#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Splits a loop into nested loops; at most one factor is None and is inferred.
struct Split {
  LoopRV loop;
  Factors factors;
  bool preserveUnitIters = true;
  bool disablePredication = false;
  Array<LoopRV> results = {};
  STEP_FIELDS(Split, IN(loop), IN(factors), OPTION(preserveUnitIters), OPTION(disablePredication),
              OUT(results))
};

} // namespace bevel::steps

#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Samples `n` factors whose product is the extent of a loop, the innermost at most `max_innermost_factor`.
struct SamplePerfectTile {
  LoopRV loop;
  int64_t n = 1;
  int64_t maxInnermostFactor = 16;
  std::vector<int64_t> decision = {};
  Array<ExprRV> results = {};
  STEP_FIELDS(SamplePerfectTile, IN(loop), IN(n), OPTION(maxInnermostFactor), DECISION(decision),
              OUT(results))
};

} // namespace bevel::steps

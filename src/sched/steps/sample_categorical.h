#pragma once

#include "sched/step_of.h"

namespace bevel::steps {

/// Samples one of several integers with given probabilities. The decision is the position of the chosen
/// one.
struct SampleCategorical {
  std::vector<int64_t> candidates;
  std::vector<double> probs;
  IntArg decision = {};
  ExprRV result = {};
  STEP_FIELDS(SampleCategorical, IN(candidates), IN(probs), DECISION(decision), OUT(result))
};

} // namespace bevel::steps

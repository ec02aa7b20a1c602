// Steps that choose: integers for other steps.
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

/// Samples one of several integers with given probabilities. The decision is the position of the chosen
/// one.
struct SampleCategorical {
  std::vector<int64_t> candidates;
  std::vector<double> probs;
  IntArg decision = {};
  ExprRV result = {};
  STEP_FIELDS(SampleCategorical, IN(candidates), IN(probs), DECISION(decision), OUT(result))
};

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

#include "sched/steps/sample.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Samples one of several integers with given probabilities. The decision is the position of the chosen one.)";

static int64_t sampleIndex(Schedule& sch, const std::vector<double>& probs) {
  double sum = 0;
  for (double p : probs) sum += p;
  double at = double(sch.nextRandom() >> 11) * 0x1p-53 * sum;
  for (size_t i = 0; i < probs.size(); ++i) {
    at -= probs[i];
    if (at < 0 && probs[i] > 0) return int64_t(i);
  }
  for (size_t i = probs.size(); i-- > 0;) // rounding left a rest: the last possible one
    if (probs[i] > 0) return int64_t(i);
  return 0;
}

static Result<Plan> check(Schedule& sch, SampleCategorical& s) {
  if (s.candidates.empty() || s.candidates.size() != s.probs.size())
    return fail(ErrorCode::kUsage, "candidates and probabilities must be equally many, at least one");
  double sum = 0;
  for (double p : s.probs) {
    if (!(p >= 0)) return fail(ErrorCode::kUsage, "a probability is negative or not a number");
    sum += p;
  }
  if (!(sum > 0)) return fail(ErrorCode::kUsage, "all probabilities are zero");
  if (!s.decision) s.decision = sampleIndex(sch, s.probs);
  BEVEL_TRY(size_t position, positionOf(s.decision, s.candidates.size()));
  return Plan{.results = {intImm(s.candidates[position])}};
}

STEP_INFO(SampleCategorical, "sample_categorical", kDoc)

} // namespace bevel::steps

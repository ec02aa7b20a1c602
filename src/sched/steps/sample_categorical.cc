#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Samples one of several integers with given probabilities. The decision is the position of the chosen one.)",
    R"(@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.sblock("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + T.float32(1)
)",
    R"(b = sch.get_sblock(name="B")
i, = sch.get_loops(block=b)
x = sch.sample_categorical(candidates=[0, 16, 64], probs=[0.25, 0.5, 0.25], decision=1)
sch.annotate(block_or_loop=i, ann_key="pragma_auto_unroll_max_step", ann_val=x)
)",
    R"(@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in T.serial(64, annotations={"pragma_auto_unroll_max_step": 16}):
        with T.sblock("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + T.float32(1)
)"};

struct SampleCategorical {
  std::vector<int64_t> candidates;
  std::vector<double> probs;
  std::optional<int64_t> decision;
  ExprRV result;
  STEP_FIELDS(SampleCategorical, IN(candidates), IN(probs), DECISION(decision), OUT(result))
};

static Result<NoPlan> check(const Schedule&, const SampleCategorical& s) {
  if (s.candidates.empty() || s.candidates.size() != s.probs.size())
    return fail(ErrorCode::kUsage, "candidates and probabilities must be equally many, at least one");
  double sum = 0;
  for (double p : s.probs) {
    if (!(p >= 0)) return fail(ErrorCode::kUsage, "a probability is negative or not a number");
    sum += p;
  }
  if (!(sum > 0)) return fail(ErrorCode::kUsage, "all probabilities are zero");
  if (s.decision && (*s.decision < 0 || *s.decision >= int64_t(s.candidates.size())))
    return illegal("the decision is not the position of a candidate");
  return NoPlan{};
}

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

static void apply(Schedule& sch, SampleCategorical& s, NoPlan&&) {
  if (!s.decision) s.decision = sampleIndex(sch, s.probs);
  s.result = sch.addValue(s.candidates[size_t(*s.decision)]);
}

STEP_INFO(SampleCategorical, "sample_categorical", kDoc)

} // namespace bevel::steps

namespace bevel {
Result<ExprRV> Schedule::sampleCategorical(std::vector<int64_t> candidates, std::vector<double> probs,
                                           std::optional<int64_t> decision) {
  return runStep(*this, steps::SampleCategorical{std::move(candidates), std::move(probs), decision, {}},
                 &steps::SampleCategorical::result);
}
} // namespace bevel

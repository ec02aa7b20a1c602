#include "sched/steps/sample.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Samples `n` factors whose product is the extent of a loop, the innermost at most `max_innermost_factor`.

The extent must be a constant. Every prime factor of it goes to a random place. The decision is the list of factors; given, it is taken as
it is, if it is valid.)";

/// Distributes the prime factors; the innermost place takes one only while it stays within the limit.
static std::vector<int64_t> sampleTile(Schedule& sch, int64_t extent, size_t n, int64_t limit) {
  std::vector<int64_t> out(n, 1);
  auto give = [&](int64_t prime) {
    size_t place = size_t(sch.nextRandom() % n);
    if (place == n - 1 && n > 1 && out[place] * prime > limit) place = size_t(sch.nextRandom() % (n - 1));
    out[place] *= prime;
  };
  for (int64_t p = 2; p <= extent / p; ++p)
    for (; extent % p == 0; extent /= p) give(p);
  if (extent > 1) give(extent);
  return out;
}

static Result<Plan> check(Schedule& sch, SamplePerfectTile& s) {
  BEVEL_TRY(Path path, sch.locate(s.loop));
  auto extent = asConst(loopAt(path)->extent);
  if (!extent || *extent <= 0)
    return illegal("the extent of " + quoted(loopAt(path)) + " is not a positive constant");
  if (s.n < 1 || s.n > 16) return fail(ErrorCode::kUsage, "n must be from 1 to 16");
  if (s.maxInnermostFactor < 1) return fail(ErrorCode::kUsage, "max_innermost_factor must be positive");
  if (s.decision.empty()) s.decision = sampleTile(sch, *extent, size_t(s.n), s.maxInnermostFactor);
  int64_t product = 1;
  for (int64_t f : s.decision)
    if (f <= 0 || __builtin_mul_overflow(product, f, &product))
      return illegal("the decision has a factor that is not positive, or overflows");
  if (int64_t(s.decision.size()) != s.n || product != *extent)
    return illegal("the decision does not give " + std::to_string(s.n) + " factors of " +
                   std::to_string(*extent));
  if (s.n > 1 && s.decision.back() > s.maxInnermostFactor)
    return illegal("the innermost factor of the decision is larger than max_innermost_factor");
  Plan plan;
  for (int64_t f : s.decision) plan.results.push_back(intImm(f));
  return plan;
}

STEP_INFO(SamplePerfectTile, "sample_perfect_tile", kDoc)

} // namespace bevel::steps

// Random programs under random traces: the results must not change by a bit. A failing trace is shrunk before
// it is shown. BEVEL_FUZZ=n runs n programs instead of the default number.
#include "arith/iter_map.h"
#include "tests/sched/random_nests.h"
#include "tests/sched/random_program.h"

namespace bevel::testing {
namespace {

/// What differs after the trace on the program; "" also when the trace does not apply.
std::string failure(const PrimFunc& f, const Sizes& sizes, const Trace& trace) {
  auto sch = Schedule::create(f);
  if (!sch || !trace.applyTo(*sch)) return "";
  return difference(f, sch->func(), sizes);
}

Trace shrink(const PrimFunc& f, const Sizes& sizes, Trace trace) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = trace.steps.size(); i-- > 0;) {
      Trace without = trace;
      without.steps.raw().erase(without.steps.raw().begin() + ptrdiff_t(i));
      if (failure(f, sizes, without).empty()) continue;
      trace = without;
      smaller = true;
    }
  }
  return trace;
}

/// Random steps on the program; counts those that applied.
void fuzz(const PrimFunc& f, const Sizes& sizes, uint64_t seed, size_t& applied) {
  auto sch = Schedule::create(f);
  ASSERT_TRUE(sch.has_value()) << sch.error().str() << print(f);
  Dice dice(hashMix(seed * 31 + 7));
  int steps = 4 + int(dice.upTo(16));
  for (int s = 0; s < steps; ++s) {
    PrimFunc before = sch->func();
    bool done = RandomStep(*sch, dice).take().has_value();
    ASSERT_TRUE(done || sch->func() == before) << "a refused step changed the program";
    applied += sch->func() != before;
  }
  std::string wrong = difference(f, sch->func(), sizes);
  if (!wrong.empty()) {
    Trace small = shrink(f, sizes, sch->trace().simplified());
    FAIL() << "seed " << seed << "\n" << print(f) << "\n" << small.str() << "\n" << failure(f, sizes, small);
  }
  auto again = Trace::parse(sch->trace().str());
  ASSERT_TRUE(again.has_value()) << again.error().str() << "\n" << sch->trace().str();
  Schedule replayed = scheduleOf(f);
  Status replay = again->applyTo(replayed);
  ASSERT_TRUE(replay.has_value()) << replay.error().str() << "\n" << sch->trace().str();
  ASSERT_TRUE(structuralEqual(replayed.func(), sch->func()));
}

/// Holds quick answers against the general ones, in these tests alone: under what other tests assume, only the quick
/// recognition may find a map that is one to one whatever holds.
struct ComparedAnswers {
  ComparedAnswers() { compareQuickAnswers = true; }
  ~ComparedAnswers() { compareQuickAnswers = false; }
};

TEST(Fuzz, RandomTracesKeepResults) {
  std::vector<uint64_t> seeds = fuzzSeeds(150);
  ComparedAnswers compared;
  size_t applied = 0;
  for (uint64_t seed : seeds) {
    fuzz(RandomProgram(hashMix(seed + 1)).make(), {}, seed, applied);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(applied, seeds.size()); // the fuzzer does something
}

TEST(Fuzz, RandomNestsKeepResults) {
  std::vector<uint64_t> seeds = fuzzSeeds(250);
  ComparedAnswers compared;
  size_t applied = 0;
  for (uint64_t seed : seeds) {
    RandomNests program(hashMix(seed + 2));
    auto parsed = parseFunction(program.make());
    ASSERT_TRUE(parsed.has_value()) << parsed.error().str();
    fuzz(cast<PrimFuncNode>(*parsed), program.sizes, seed, applied);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(applied, seeds.size() / 2);
}

} // namespace
} // namespace bevel::testing

// Random programs under random traces: the results must not change by a bit. A failing trace is shrunk before
// it is shown. BEVEL_FUZZ=n runs n programs instead of the default number.
#include "arith/iter_map.h"
#include "tests/sched/random_program.h"

namespace bevel::testing {
namespace {

/// What differs after the trace on the program; "" also when the trace does not apply.
std::string failure(const PrimFunc& f, const Trace& trace) {
  auto sch = Schedule::create(f);
  if (!sch || !trace.applyTo(*sch)) return "";
  return difference(f, sch->func());
}

Trace shrink(const PrimFunc& f, Trace trace) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = trace.steps.size(); i-- > 0;) {
      Trace without = trace;
      without.steps.erase(without.steps.begin() + ptrdiff_t(i));
      if (failure(f, without).empty()) continue;
      trace = without;
      smaller = true;
    }
  }
  return trace;
}

TEST(Fuzz, RandomTracesKeepResults) {
  std::vector<uint64_t> seeds = fuzzSeeds(150);
  compareQuickAnswers = true;
  size_t applied = 0;
  for (uint64_t seed : seeds) {
    PrimFunc f = RandomProgram(hashMix(seed + 1)).make();
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
    std::string wrong = difference(f, sch->func());
    if (!wrong.empty()) {
      Trace small = shrink(f, sch->trace().simplified());
      FAIL() << "seed " << seed << "\n" << print(f) << "\n" << small.str() << "\n" << failure(f, small);
    }
    auto again = Trace::parse(sch->trace().str());
    ASSERT_TRUE(again.has_value()) << again.error().str() << "\n" << sch->trace().str();
    Schedule replayed = scheduleOf(f);
    Status replay = again->applyTo(replayed);
    ASSERT_TRUE(replay.has_value()) << replay.error().str() << "\n" << sch->trace().str();
    ASSERT_TRUE(structuralEqual(replayed.func(), sch->func()));
  }
  EXPECT_GT(applied, seeds.size()); // the fuzzer does something
}

} // namespace
} // namespace bevel::testing

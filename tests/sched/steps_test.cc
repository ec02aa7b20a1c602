// Every step's documented example runs and gives the documented program; its trace survives text and replay.
#include "ir/parser.h"
#include "tests/sched/support.h"

namespace bevel::testing {
namespace {

Module parsed(const char* text) {
  auto m = parseModule(text, "example");
  EXPECT_TRUE(m.has_value()) << m.error().str() << "\n" << text;
  return m ? *m : nullptr;
}

TEST(Steps, DocumentedExamplesRun) {
  for (const StepInfo* step : allSteps()) {
    SCOPED_TRACE(step->name);
    Module before = parsed(step->doc.before), after = parsed(step->doc.after);
    ASSERT_TRUE(before && after);
    auto sch = Schedule::create(before);
    ASSERT_TRUE(sch.has_value()) << sch.error().str();
    Status done = runScript(*sch, step->doc.script, step->name);
    ASSERT_TRUE(done.has_value()) << done.error().str();
    EXPECT_TRUE(structuralEqual(sch->mod(), after)) << firstDifference(sch->mod(), after) << "\n"
                                                    << print(sch->mod());
    EXPECT_NE(std::string(step->doc.text), "");

    auto again = Trace::parse(sch->trace().str());
    ASSERT_TRUE(again.has_value()) << again.error().str();
    EXPECT_TRUE(*again == sch->trace());
    EXPECT_EQ(again->str(), sch->trace().str());
    EXPECT_EQ(again->hash(), sch->trace().hash());
    auto replayed = Schedule::create(before);
    Status replay = again->applyTo(*replayed);
    ASSERT_TRUE(replay.has_value()) << replay.error().str();
    EXPECT_TRUE(structuralEqual(replayed->mod(), after));
  }
}

TEST(Steps, ExamplesKeepResults) {
  for (const StepInfo* step : allSteps()) {
    SCOPED_TRACE(step->name);
    Module before = parsed(step->doc.before), after = parsed(step->doc.after);
    ASSERT_TRUE(before && after);
    for (size_t i = 0; i < before->functions.size(); ++i)
      EXPECT_EQ(difference(cast<PrimFuncNode>(before->functions[i]), cast<PrimFuncNode>(after->functions[i])),
                "");
  }
}

TEST(Steps, FoundByAlias) {
  EXPECT_EQ(findStep("get_block"), findStep("get_sblock"));
  EXPECT_NE(findStep("split"), nullptr);
  EXPECT_EQ(findStep("splat"), nullptr);
}

} // namespace
} // namespace bevel::testing

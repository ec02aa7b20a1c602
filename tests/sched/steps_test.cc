// The example of every step: its trace survives text and replay, and it keeps the program's results. The program that
// it gives is compared by the golden tests. Programs may add steps of their own.
#include "base/file.h"
#include "sched/steps/get.h"
#include "sched/steps/loops.h"
#include "sched/steps/step_impl.h"
#include "tests/sched/support.h"

namespace bevel {
namespace steps {

/// Shares all loops of a block among threads.
struct ShareAll {
  BlockRV block;
  LoopRV result = {};
  STEP_FIELDS(ShareAll, IN(block), OUT(result))
};

static Result<Plan> check(const Schedule& sch, const ShareAll& s) {
  Schedule inside = sch; // what it takes are steps of its own, not of the trace
  BEVEL_TRY(auto loops, inside.run(GetLoops{s.block}));
  BEVEL_TRY(LoopRV all, inside.run(Fuse{loops}));
  BEVEL_CHECK(inside.run(Parallel{all}));
  BEVEL_TRY(Var shared, inside.varOf(all));
  return Plan{inside.func()->body, {shared}};
}

STEP_INFO(ShareAll, "share_all", "Shares all loops of a block among threads.", "share_every_loop")

} // namespace steps

namespace testing {
namespace {

struct Example {
  Module before;
  std::string script;
};

Example exampleOf(const StepInfo& step) {
  std::string path = BEVEL_SOURCE_DIR "/tests/golden/steps/" + step.name() + ".txt";
  auto text = readFile(path);
  EXPECT_TRUE(text.has_value()) << path;
  auto section = [&](const std::string& begin, const std::string& end) {
    size_t from = text->find(begin) + begin.size();
    return text->substr(from, text->find(end, from) - from + 1);
  };
  auto before = parseModule(section("# input\n", "\n# input trace.py"), path);
  EXPECT_TRUE(before.has_value()) << before.error().str();
  return {*before, section("# input trace.py\n", "\n# run")};
}

TEST(Steps, ExamplesSurviveTextAndReplay) {
  for (const StepInfo* step : allSteps()) {
    SCOPED_TRACE(step->name());
    Example example = exampleOf(*step);
    auto sch = Schedule::create(example.before);
    ASSERT_TRUE(sch.has_value()) << sch.error().str();
    ASSERT_OK(runScript(*sch, example.script, step->name()));
    EXPECT_NE(sch->trace().str().find("sch." + step->name() + "("), std::string::npos);
    EXPECT_NE(std::string(step->doc), "");

    auto again = Trace::parse(sch->trace().str());
    ASSERT_TRUE(again.has_value()) << again.error().str();
    EXPECT_TRUE(*again == sch->trace()) << firstDifference(again->node(), sch->trace().node()) << "\n"
                                        << again->str();
    EXPECT_EQ(again->str(), sch->trace().str());
    EXPECT_EQ(again->hash(), sch->trace().hash());
    auto replayed = Schedule::create(example.before);
    ASSERT_OK(again->applyTo(*replayed));
    EXPECT_TRUE(structuralEqual(replayed->mod(), sch->mod()));
    for (size_t i = 0; i < example.before->functions.size(); ++i)
      EXPECT_EQ(difference(cast<PrimFuncNode>(example.before->functions[i]),
                           cast<PrimFuncNode>(sch->mod()->functions[i])),
                "");
  }
}

TEST(Steps, FoundByAlias) {
  EXPECT_EQ(findStep("get_block"), findStep("get_sblock"));
  EXPECT_NE(findStep("split"), nullptr);
  EXPECT_EQ(findStep("splat"), nullptr);
}

TEST(Steps, TracesThatDifferAreNotEqual) {
  auto parsed = [](const char* text) { return *Trace::parse(text); };
  Trace one = parsed("b = sch.get_sblock(\"C\")\ni, j = sch.get_loops(b)\nsch.parallel(i)\n");
  Trace renamed = parsed("x = sch.get_sblock(name=\"C\")\ny, z = sch.get_loops(block=x)\nsch.parallel(y)\n");
  EXPECT_TRUE(one == renamed);
  EXPECT_EQ(one.hash(), renamed.hash());
  for (const char* other : {"b = sch.get_sblock(\"C\")\ni, j = sch.get_loops(b)\nsch.parallel(j)\n",
                            "b = sch.get_sblock(\"C\")\ni, j = sch.get_loops(b)\nsch.unroll(i)\n",
                            "b = sch.get_sblock(\"D\")\ni, j = sch.get_loops(b)\nsch.parallel(i)\n"}) {
    EXPECT_FALSE(one == parsed(other)) << other;
    EXPECT_NE(one.hash(), parsed(other).hash()) << other;
  }
}

TEST(Steps, AProgramRegistersItsOwn) {
  ASSERT_OK(registerStep(steps::info<steps::ShareAll>()));
  EXPECT_REFUSED(registerStep(steps::info<steps::ShareAll>()), "already");
  PrimFunc f = matmulBiasRelu(4, 6, 5);
  Schedule sch = scheduleOf(f);
  ASSERT_OK(runScript(sch, "b = sch.get_sblock(\"E\")\nl = sch.share_every_loop(block=b)\n"));
  EXPECT_EQ(difference(f, sch.func()), "");
  EXPECT_NE(print(sch.func()).find("T.parallel(T.int64(24))"), std::string::npos) << print(sch.func());
  EXPECT_EQ(sch.trace().str(), "b = sch.get_sblock(name=\"E\")\nl = sch.share_all(block=b)\n");
  Schedule again = scheduleOf(f);
  ASSERT_OK(Trace::parse(sch.trace().str())->applyTo(again));
  EXPECT_TRUE(structuralEqual(again.func(), sch.func()));
}

} // namespace
} // namespace testing
} // namespace bevel

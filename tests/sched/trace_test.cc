// Trace text: reading, printing, errors with their places, replay with other decisions.
#include "tests/sched/support.h"

namespace bevel::testing {
namespace {

constexpr const char* kScript = R"(# a schedule
b0 = sch.get_sblock(name="C", func_name="main")
i, j, k = sch.get_loops(block=b0)
v0, v1 = sch.sample_perfect_tile(loop=i, n=2, max_innermost_factor=4)
i0, i1 = sch.split(loop=i, factors=[v0, v1])
sch.reorder(i0, j, i1, k)
)";

TEST(Trace, TextIsAnIdentity) {
  auto trace = Trace::parse(kScript);
  ASSERT_TRUE(trace.has_value()) << trace.error().str();
  EXPECT_EQ(trace->steps.size(), 5u);
  std::string text = trace->str();
  EXPECT_EQ(text, std::string(kScript).substr(std::string(kScript).find("b0")));
  EXPECT_EQ(Trace::parse(text)->str(), text);
}

TEST(Trace, RecordsDecisionsAndReplaysOthers) {
  PrimFunc f = matmul(8, 6, 5);
  auto trace = Trace::parse(kScript);
  Schedule sch = scheduleOf(f);
  ASSERT_OK(trace->applyTo(sch));
  auto sampling = sch.trace().samplingSteps();
  ASSERT_EQ(sampling.size(), 1u);
  auto decision = sch.trace().decision(sampling[0]);
  ASSERT_TRUE(decision.has_value());
  EXPECT_EQ((*decision)[0] * (*decision)[1], 8);

  Schedule other = scheduleOf(f);
  ASSERT_OK(sch.trace().withDecision(sampling[0], {4, 2}).applyTo(other));
  EXPECT_NE(other.trace().str().find("decision=[4, 2]"), std::string::npos);
  EXPECT_EQ(difference(f, other.func()), "");

  Schedule bad = scheduleOf(f);
  PrimFunc untouched = bad.func();
  EXPECT_REFUSED(sch.trace().withDecision(sampling[0], {3, 2}).applyTo(bad), "decision");
  EXPECT_EQ(bad.func(), untouched);
  EXPECT_TRUE(bad.trace().steps.empty());
}

TEST(Trace, BlockLayoutThatJoinsAxes) {
  PrimFunc f = matmul(4, 128, 5);
  Schedule sch = scheduleOf(f);
  ASSERT_OK(runScript(sch, R"(b = sch.get_sblock(name="C")
sch.transform_block_layout(block=b, index_map=lambda i, j, k: (i * 128 + j, k))
)"));
  EXPECT_EQ(difference(f, sch.func()), "");
  auto again = Trace::parse(sch.trace().str());
  ASSERT_TRUE(again.has_value()) << again.error().str();
  Schedule replayed = scheduleOf(f);
  ASSERT_OK(again->applyTo(replayed));
  EXPECT_TRUE(structuralEqual(replayed.func(), sch.func()));
}

TEST(Trace, SameSeedSameDecisions) {
  auto trace = Trace::parse(kScript);
  PrimFunc f = matmul(64, 6, 5);
  auto a = *Schedule::create(f, 5), b = *Schedule::create(f, 5);
  ASSERT_OK(trace->applyTo(a));
  ASSERT_OK(trace->applyTo(b));
  EXPECT_EQ(a.trace().str(), b.trace().str());
}

void expectErrorAt(const char* text, int line, int column, const char* part) {
  auto trace = Trace::parse(text, "trace.py");
  ASSERT_FALSE(trace.has_value()) << text;
  EXPECT_EQ(trace.error().span.line, line) << trace.error().str();
  EXPECT_EQ(trace.error().span.column, column) << trace.error().str();
  EXPECT_NE(trace.error().str().find(part), std::string::npos) << trace.error().str();
}

TEST(Trace, ErrorsPointAtThePlace) {
  expectErrorAt("b = sch.get_sblock(name=\"C\")\nl = sch.splt(loop=b)\n", 2, 9, "no schedule step splt");
  expectErrorAt("sch.parallel(loop=x)\n", 1, 19, "'x' is not defined");
  expectErrorAt("b = sch.get_sblock(name=3)\n", 1, 9, "expected a string");
  expectErrorAt("b = sch.get_sblock(nam=\"C\")\n", 1, 9, "there is no argument nam");
  expectErrorAt("b = sch.get_sblock()\n", 1, 9, "argument name is missing");
  expectErrorAt("b = sch.get_sblock(name=\"C\"\n", 1, 19, "'(' is never closed");
  expectErrorAt("b = sch.get_sblock(name=\"C)\n", 1, 25, "never closed");
  expectErrorAt("b = sch.get_sblock(name=\"C\") x\n", 1, 30, "end of the line");
  expectErrorAt("b = 99999999999999999999\n", 1, 5, "64 bits");
  expectErrorAt("b ? 3\n", 1, 3, "unexpected character");
  expectErrorAt("loops = sch.get_loops(block=[1])\n", 1, 13, "expected a block");
}

TEST(Trace, HostileTextIsRefused) {
  std::string deep(100000, '[');
  EXPECT_FALSE(Trace::parse("sch.reorder(" + deep).has_value());
  EXPECT_FALSE(Trace::parse("sch.transform_layout(lambda i: " + std::string(100000, '(')).has_value());
  EXPECT_FALSE(Trace::parse("sch.transform_layout(lambda i: " + std::string(100000, '-')).has_value());
  for (uint64_t seed = 0; seed < 2000; ++seed) { // random cuts and changes of a valid text
    std::string text = kScript;
    uint64_t h = hashMix(seed + 1);
    text[h % text.size()] = "()[]{},=.\"'0a-\n"[(h >> 20) % 15];
    text.resize((h >> 32) % text.size() + 1);
    (void)Trace::parse(text);
  }
}

TEST(Script, ListsAndNestedCalls) {
  PrimFunc f = matmul(8, 6, 5);
  Schedule sch = scheduleOf(f);
  ASSERT_OK(runScript(sch, R"(loops = sch.get_loops(sch.get_block("C"))
sch.parallel(sch.fuse(*loops)) if_is_not_python
)")
                    .has_value()
                ? Status(fail(ErrorCode::kInternal, "accepted nonsense"))
                : Status());
  EXPECT_EQ(sch.func(), f);
  ASSERT_OK(runScript(sch, R"(b = sch.get_block("C")
loops = sch.get_loops(b)
sch.parallel(sch.fuse(loops[0], loops[-2]))
)"));
  EXPECT_EQ(difference(f, sch.func()), "");
  EXPECT_NE(print(sch.func()).find("T.parallel("), std::string::npos);
}

TEST(Trace, SimplifiedDropsWhatNothingUses) {
  auto trace = Trace::parse("b = sch.get_sblock(name=\"C\")\nc = sch.get_sblock(name=\"C\")\ni, j, k = "
                            "sch.get_loops(block=b)\nsch.parallel(loop=i)\n");
  EXPECT_EQ(trace->simplified().steps.size(), 3u);
}

} // namespace
} // namespace bevel::testing

// Steps on odd sizes, and steps that must be refused: results before and after are compared bit by bit.
#include "sched/steps/get.h"
#include "sched/steps/loops.h"
#include "tests/sched/support.h"

namespace bevel::testing {

using namespace steps;
namespace {

/// Runs a script on a program and compares; "" or what went wrong.
std::string scheduled(const PrimFunc& f, const char* script, const Sizes& sizes = {}) {
  auto sch = Schedule::create(f);
  if (!sch) return sch.error().str();
  if (Status s = runScript(*sch, script, "script"); !s) return s.error().str();
  return difference(f, sch->func(), sizes);
}

Status refused(const PrimFunc& f, const char* script) {
  auto sch = Schedule::create(f);
  if (!sch) return fail(sch.error());
  Status s = runScript(*sch, script, "script");
  EXPECT_EQ(sch->func(), f); // a failed script leaves the program as it was
  return s;
}

constexpr const char* kTiled = R"(b = sch.get_sblock("C")
i, j, k = sch.get_loops(b)
i0, i1 = sch.split(i, [None, 4])
j0, j1 = sch.split(j, [None, 8])
k0, k1 = sch.split(k, [None, 3])
sch.reorder(i0, j0, k0, i1, k1, j1)
)";

TEST(Legality, TilesOfOddSizes) {
  for (auto [n, m, k] : {std::array{1, 1, 1}, {4, 8, 3}, {5, 9, 4}, {7, 13, 11}, {8, 16, 6}, {3, 2, 1}})
    EXPECT_EQ(scheduled(matmul(n, m, k), kTiled), "") << n << " " << m << " " << k;
  EXPECT_EQ(scheduled(matmul(0, 5, 3), kTiled), "");
}

TEST(Legality, TilesOfSymbolicSizes) {
  Var n = var("n"), m = var("m"), k = var("k");
  PrimFunc f = matmul(n, m, k);
  for (auto [a, b, c] : {std::array{1, 1, 1}, {4, 8, 3}, {5, 9, 4}, {7, 3, 11}})
    EXPECT_EQ(scheduled(f, kTiled, {{"n", a}, {"m", b}, {"k", c}}), "");
}

TEST(Legality, MicroKernel) {
  constexpr const char* whole = R"(d = sch.get_sblock("D")
e = sch.get_sblock("E")
c = sch.get_sblock("C")
sch.reverse_compute_inline(e)
i, j, k = sch.get_loops(c)
i0, i1 = sch.split(i, [None, 6])
j0, jx = sch.split(j, [None, 16])
j1, j2 = sch.split(jx, [2, 8])
sch.reorder(i0, j0, k, i1, j1, j2)
sch.set_scope(c, 0, "register")
sch.reverse_compute_at(d, j0)
init = sch.decompose_reduction(c, k)
sch.unroll(i1)
sch.unroll(j1)
sch.vectorize(j2)
l = sch.get_loops(init)
sch.unroll(l[-3])
sch.unroll(l[-2])
sch.vectorize(l[-1])
m = sch.get_loops(d)
x, y = sch.split(m[-1], [2, 8])
sch.unroll(m[-2])
sch.unroll(x)
sch.vectorize(y)
sch.parallel(i0)
)";
  for (auto [n, m, k] : {std::array{12, 32, 8}, {13, 33, 7}, {5, 15, 3}, {6, 16, 1}, {7, 17, 5}})
    EXPECT_EQ(scheduled(matmulBiasRelu(n, m, k), whole), "") << n << " " << m << " " << k;
}

TEST(Legality, CacheWriteMicroKernel) {
  constexpr const char* script = R"(c = sch.get_sblock("C")
w = sch.cache_write(c, 0, "register")
i, j, k = sch.get_loops(c)
i0, i1 = sch.split(i, [None, 4])
j0, j1 = sch.split(j, [None, 8])
sch.reorder(i0, j0, k, i1, j1)
sch.reverse_compute_at(w, j0)
init = sch.decompose_reduction(c, k)
sch.vectorize(j1)
sch.unroll(i1)
)";
  for (auto [n, m, k] : {std::array{8, 16, 4}, {9, 17, 5}, {3, 7, 2}, {1, 8, 1}})
    EXPECT_EQ(scheduled(matmul(n, m, k), script), "") << n << " " << m << " " << k;
  Var n = var("n"), m = var("m"), k = var("k");
  for (auto [a, b, c] : {std::array{8, 16, 4}, {9, 17, 5}, {3, 7, 2}})
    EXPECT_EQ(scheduled(matmul(n, m, k), script, {{"n", a}, {"m", b}, {"k", c}}), "");
}

/// Shared case 17, first part: C = A + B, D = 2C, E = D + A over symbolic n.
PrimFunc threeStages() {
  Var n = var("n");
  auto a = te::placeholder({n}, kFloat32, "A"), b = te::placeholder({n}, kFloat32, "B");
  auto c = te::compute({n}, "C", [&](const Array<Var>& i) { return a({i[0]}) + b({i[0]}); });
  auto d = te::compute({n}, "D", [&](const Array<Var>& i) { return c({i[0]}) * constantFloat(kFloat32, 2); });
  auto e = te::compute({n}, "E", [&](const Array<Var>& i) { return d({i[0]}) + a({i[0]}); });
  return te::createPrimFunc({a, b, e});
}

TEST(Case17, ReverseComputeAtWritesEverything) {
  for (int64_t n : {1024, 1000, 7, 1, 32, 33}) {
    EXPECT_EQ(scheduled(threeStages(), R"(d = sch.get_sblock("D")
e = sch.get_sblock("E")
i0, i1 = sch.split(sch.get_loops(d)[0], [None, 32])
sch.reverse_compute_at(e, i0)
)",
                        {{"n", n}}),
              "")
        << n;
    EXPECT_EQ(scheduled(threeStages(), R"(d = sch.get_sblock("D")
e = sch.get_sblock("E")
i0, i1 = sch.split(sch.get_loops(d)[0], [None, 32])
sch.reverse_compute_at(e, i1)
sch.compute_at(sch.get_sblock("C"), i0)
)",
                        {{"n", n}}),
              "")
        << n;
  }
}

/// Row sums and a consumer of each.
PrimFunc rowSum(int64_t rows, int64_t columns) {
  auto a = te::placeholder(dims({rows, columns}), kFloat32, "A");
  IterVar k = te::reduceAxis(intImm(columns), "k");
  auto s =
      te::compute(dims({rows}), "S", [&](const Array<Var>& i) { return te::sum(a({i[0], k->var}), {k}); });
  auto c = te::compute(dims({rows, columns}), "C",
                       [&](const Array<Var>& i) { return a({i[0], i[1]}) - s({i[0]}); });
  return te::createPrimFunc({a, c});
}

TEST(Case17, TailPredicatesGuardInitAndUpdate) {
  for (int64_t factor : {20, 8, 21, 1, 40}) {
    std::string script = "c = sch.get_sblock(\"C\")\ni, j = sch.get_loops(c)\ni0, i1 = sch.split(i, [None, " +
                         std::to_string(factor) + "])\nsch.compute_at(sch.get_sblock(\"S\"), ";
    for (const char* loop : {"i0", "i1", "j"})
      EXPECT_EQ(scheduled(rowSum(21, 13), (script + loop + ")\n").c_str()), "") << factor << loop;
  }
}

TEST(Case17, RowSumsOf101By100) {
  EXPECT_EQ(scheduled(rowSum(101, 101), R"(i, j = sch.get_loops(sch.get_sblock("C"))
i0, i1 = sch.split(i, [None, 100])
sch.compute_at(sch.get_sblock("S"), i1)
)"),
            "");
}

TEST(Case19, AllocationDominatesReductionLoops) {
  auto a = te::placeholder(dims({8, 8, 8}), kFloat32, "A");
  IterVar k = te::reduceAxis(intImm(8), "k");
  auto s = te::compute(dims({8, 8}), "S",
                       [&](const Array<Var>& i) { return te::sum(a({i[0], k->var, i[1]}), {k}); });
  PrimFunc f = te::createPrimFunc({a, s});
  EXPECT_EQ(scheduled(f, R"(s = sch.get_sblock("S")
i, j, k = sch.get_loops(s)
i0, i1 = sch.split(i, [2, 4])
j0, j1 = sch.split(j, [2, 4])
k0, k1 = sch.split(k, [2, 4])
sch.reorder(i0, k0, j0, i1, k1, j1)
w = sch.cache_write(s, 0, "local")
sch.reverse_compute_at(w, j0)
)"),
            "");
}

TEST(Legality, InliningThroughPadding) {
  auto a = te::placeholder(dims({5}), kFloat32, "A");
  auto b = te::compute(dims({5}), "B",
                       [&](const Array<Var>& i) { return a({i[0]}) * constantFloat(kFloat32, 3); });
  auto p = te::compute(dims({9}), "P", [&](const Array<Var>& i) {
    return ifThenElse(logicalAnd(i[0] >= intImm(2), i[0] < intImm(7)), b({i[0] - 2}),
                      constantFloat(kFloat32, -1));
  });
  auto w = te::compute(dims({7}), "W",
                       [&](const Array<Var>& i) { return p({i[0]}) + p({i[0] + 1}) + p({i[0] + 2}); });
  PrimFunc f = te::createPrimFunc({a, w});
  EXPECT_EQ(
      scheduled(f, "sch.compute_inline(sch.get_sblock(\"B\"))\nsch.compute_inline(sch.get_sblock(\"P\"))\n"),
      "");
  EXPECT_REFUSED(refused(f, "sch.reverse_compute_inline(sch.get_sblock(\"P\"))\n"),
                 "does not provably write all");
  EXPECT_REFUSED(refused(f, "sch.reverse_compute_inline(sch.get_sblock(\"W\"))\n"), "several");
  // The window needs its halo: each tile computes it again.
  for (const char* loop : {"i0", "i1"})
    EXPECT_EQ(scheduled(f, (std::string("i0, i1 = sch.split(sch.get_loops(sch.get_sblock(\"W\"))[0], [None, "
                                        "3])\nsch.compute_at(sch.get_sblock(\"P\"), ") +
                            loop + ")\n")
                               .c_str()),
              "")
        << loop;
}

TEST(Legality, ReverseInlineOfAPart) {
  auto a = te::placeholder(dims({6, 4}), kFloat32, "A");
  auto b = te::compute(dims({6, 4}), "B",
                       [&](const Array<Var>& i) { return a({i[0], i[1]}) + constantFloat(kFloat32, 1); });
  auto c =
      te::compute(dims({4, 3}), "C", [&](const Array<Var>& i) { return b({i[1], i[0]}) * b({i[1], i[0]}); });
  EXPECT_EQ(scheduled(te::createPrimFunc({a, c}), "sch.reverse_compute_inline(sch.get_sblock(\"C\"))\n"), "");
  auto d = te::compute(dims({16}), "D", [&](const Array<Var>& i) {
    return b({floordiv(i[0], 4) + 1, floormod(i[0], 4)}) * constantFloat(kFloat32, 2);
  });
  EXPECT_EQ(scheduled(te::createPrimFunc({a, d}), "sch.reverse_compute_inline(sch.get_sblock(\"D\"))\n"), "");
}

TEST(Refused, FailedStepLeavesTheScheduleUsable) {
  PrimFunc f = matmul(8, 8, 8);
  Schedule sch = scheduleOf(f);
  auto b = *sch.run(GetSblock{"C"});
  auto l = *sch.run(GetLoops{b});
  EXPECT_FALSE(sch.run(Parallel{l[2]}).has_value());
  EXPECT_EQ(sch.func(), f);
  EXPECT_EQ(sch.trace().steps.size(), 2u);
  ASSERT_OK(sch.run(Parallel{l[0]}));
  Schedule copy = sch;
  ASSERT_OK(copy.run(Vectorize{l[1]}).has_value() ? Status()
                                                  : Status(fail(ErrorCode::kInternal, "vectorize")));
  EXPECT_NE(copy.func(), sch.func());
  ASSERT_TRUE(sch.run(Fuse{{l[1], l[2]}}).has_value());
  EXPECT_FALSE(sch.run(Unroll{l[1]}).has_value()); // the handle's loop is gone
}

TEST(Layout, PackedWithTails) {
  for (auto [n, m] : {std::array{8, 8}, {5, 7}, {1, 1}, {4, 3}}) {
    auto a = te::placeholder(dims({n, m}), kFloat32, "A");
    auto b = te::compute(dims({n, m}), "B",
                         [&](const Array<Var>& i) { return a({i[0], i[1]}) + constantFloat(kFloat32, 1); });
    auto c = te::compute(dims({m, n}), "C",
                         [&](const Array<Var>& i) { return b({i[1], i[0]}) * constantFloat(kFloat32, 2); });
    PrimFunc f = te::createPrimFunc({a, c});
    EXPECT_EQ(
        scheduled(
            f,
            "sch.transform_layout(sch.get_sblock(\"B\"), (\"write\", 0), lambda i, j: (j // 4, i, j % 4))\n"),
        "")
        << n << m;
    EXPECT_EQ(scheduled(f, "sch.transform_layout(sch.get_sblock(\"C\"), (\"read\", 0), lambda i, j: (j // 4, "
                           "i, j % 4), pad_value=0.0)\n"),
              "")
        << n << m;
    EXPECT_EQ(
        scheduled(f, "sch.transform_block_layout(sch.get_sblock(\"B\"), lambda i, j: (j // 4, i, j % 4))\n"),
        "")
        << n << m;
    EXPECT_EQ(scheduled(f, "sch.transform_block_layout(sch.get_sblock(\"C\"), lambda i, j: (j, i))\n"), "")
        << n << m;
  }
}

} // namespace
} // namespace bevel::testing

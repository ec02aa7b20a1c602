// Reductions with several results, and with results that a comparison chooses, taken apart by rfactor: the interpreter
// gives the same values. The values are few, so that equal ones are many.
#include "tests/loop/lowered_programs.h"
#include "tests/sched/support.h"

#include <fmt/format.h>

namespace bevel::testing {
namespace {

struct Results {
  const char* name;
  const char* init; // of P (int32) and Q (int32) at [vi]
  const char* body; // {x}: the value of the step, vk: its place
  bool anyLoop;     // else the outermost reduction loop only
};

const Results kResults[] = {
    {"ArgMax", "P[vi] = -1\nQ[vi] = -5", R"(p: T.int32 = T.Select(Q[vi] >= {x}, P[vi], vk)
q: T.int32 = T.Select(Q[vi] >= {x}, Q[vi], {x})
P[vi] = p
Q[vi] = q)",
     false},
    {"ArgMaxOfValuesBelowTheInit", "P[vi] = -1\nQ[vi] = 5", R"(P[vi] = T.Select(Q[vi] >= {x}, P[vi], vk)
Q[vi] = T.max({x}, Q[vi]))",
     false},
    {"ArgMinReplacing", "P[vi] = -1\nQ[vi] = 5", R"(P[vi] = T.Select({x} < Q[vi], vk, P[vi])
Q[vi] = T.Select({x} < Q[vi], {x}, Q[vi]))",
     false},
    {"ArgMaxTiesToTheLeast", "P[vi] = 100\nQ[vi] = -5",
     R"(p: T.int32 = T.Select(Q[vi] > {x} or (Q[vi] == {x} and P[vi] < vk), P[vi], vk)
q: T.int32 = T.Select(Q[vi] > {x}, Q[vi], {x})
P[vi] = p
Q[vi] = q)",
     true},
    {"ArgMinTiesToTheGreatest", "P[vi] = -1\nQ[vi] = 5",
     R"(p: T.int32 = T.Select(Q[vi] < {x} or ({x} == Q[vi] and vk <= P[vi]), P[vi], vk)
P[vi] = p
Q[vi] = T.min(Q[vi], {x}))",
     true},
    {"Sums", "P[vi] = 0\nQ[vi] = 0", "P[vi] = P[vi] + {x}\nQ[vi] = Q[vi] + {x} * {x}", true},
    {"SumAndMaximum", "Q[vi] = -5\nP[vi] = 0", "P[vi] = {x} + P[vi]\nQ[vi] = T.max(Q[vi], {x})", true},
};

constexpr const char* kProgram = R"(
@T.prim_func
def main(A: T.Buffer((5, 14), "int32"), P: T.Buffer((5,), "int32"), Q: T.Buffer((5,), "int32")):
    for i, k in T.grid(5, 14):
        with T.sblock("B"):
            vi = T.axis.spatial(5, i)
            vk = T.axis.reduce(14, k)
            with T.init():
{}
{}
)";

std::string indented(const std::string& lines, size_t by) {
  std::string out(by, ' ');
  for (char c : lines) {
    out += c;
    if (c == '\n') out += std::string(by, ' ');
  }
  return out;
}

PrimFunc programOf(const Results& r) {
  std::string body = fmt::format(fmt::runtime(r.body), fmt::arg("x", "(A[vi, vk] % 3)"));
  return test::parsed(fmt::format(fmt::runtime(kProgram), indented(r.init, 16), indented(body, 12)).c_str());
}

class RfactorOf : public ::testing::TestWithParam<Results> {};

TEST_P(RfactorOf, KeepsResults) {
  PrimFunc f = programOf(GetParam());
  ASSERT_TRUE(f);
  for (const char* loop : {"k0", "k1"})
    for (int axis : {0, -1}) {
      auto sch = Schedule::create(f);
      ASSERT_TRUE(sch);
      std::string script = fmt::format(R"(b = sch.get_sblock("B")
i, k = sch.get_loops(b)
k0, k1 = sch.split(k, [7, 2])
sch.rfactor({}, {})
)",
                                       loop, axis);
      Status applied = runScript(*sch, script.c_str(), "script");
      bool legal = GetParam().anyLoop || loop == std::string("k0");
      ASSERT_EQ(bool(applied), legal) << (applied ? "accepted" : applied.error().str());
      if (legal) {
        EXPECT_EQ(difference(f, sch->func(), {}), "") << loop << " " << axis;
      } else {
        EXPECT_NE(applied.error().str().find("keeps the first of equal values"), std::string::npos);
      }
    }
}

/// Where the order of equal values does not matter, reduction loops change places too.
TEST_P(RfactorOf, ReorderAgrees) {
  auto sch = Schedule::create(programOf(GetParam()));
  ASSERT_TRUE(sch);
  Status applied = runScript(*sch, R"(b = sch.get_sblock("B")
i, k = sch.get_loops(b)
k0, k1 = sch.split(k, [7, 2])
d = sch.decompose_reduction(b, k0)
sch.reorder(k1, k0)
)",
                             "script");
  EXPECT_EQ(bool(applied), GetParam().anyLoop) << (applied ? "accepted" : applied.error().str());
  if (applied) {
    EXPECT_EQ(difference(programOf(GetParam()), sch->func(), {}), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, RfactorOf, ::testing::ValuesIn(kResults),
                         [](const auto& info) { return info.param.name; });

} // namespace
} // namespace bevel::testing

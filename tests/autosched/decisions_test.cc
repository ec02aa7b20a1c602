// The rules run again with every alternative of each of their decisions: the program computes the same, or the
// answer is refused with a reason. The trace of each run is its record.
#include "autosched/autosched.h"
#include "tests/sched/support.h"

#include <cmath>
#include <set>

namespace bevel::testing {
namespace {

const char* const kMatmul = R"(@T.prim_func
def main(A: T.Buffer((13, 24), "float32"), B: T.Buffer((24, 40), "float32"), D: T.Buffer((13, 40), "float32")):
    C = T.sblock_alloc_buffer((13, 40))
    for i, j, k in T.grid(13, 40, 24):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(13, 40):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
)";
const char* const kConv = R"(@T.prim_func
def main(X: T.Buffer((1, 9, 9, 8), "float32"), W: T.Buffer((3, 3, 8, 24), "float32"), Y: T.Buffer((1, 7, 7, 24), "float32")):
    T.func_attr({"layout_free_buffers": [1]})
    for n, y, x, f, r, s, c in T.grid(1, 7, 7, 24, 3, 3, 8):
        with T.sblock("Y"):
            vn, vy, vx, vf, vr, vs, vc = T.axis.remap("SSSSRRR", [n, y, x, f, r, s, c])
            with T.init():
                Y[vn, vy, vx, vf] = T.float32(0)
            Y[vn, vy, vx, vf] = Y[vn, vy, vx, vf] + X[vn, vy + vr, vx + vs, vc] * W[vr, vs, vc, vf]
)";
const char* const kDepthwise = R"(@T.prim_func
def main(X: T.Buffer((1, 9, 9, 24), "float32"), W: T.Buffer((3, 3, 24), "float32"), Y: T.Buffer((1, 7, 7, 24), "float32")):
    for n, y, x, c, r, s in T.grid(1, 7, 7, 24, 3, 3):
        with T.sblock("Y"):
            vn, vy, vx, vc, vr, vs = T.axis.remap("SSSSRR", [n, y, x, c, r, s])
            with T.init():
                Y[vn, vy, vx, vc] = T.float32(0)
            Y[vn, vy, vx, vc] = Y[vn, vy, vx, vc] + X[vn, vy + vr, vx + vs, vc] * W[vr, vs, vc]
)";
const char* const kSoftmax = R"(@T.prim_func
def main(A: T.Buffer((5, 40), "float32"), B: T.Buffer((5, 40), "float32")):
    M = T.sblock_alloc_buffer((5,))
    E = T.sblock_alloc_buffer((5, 40))
    S = T.sblock_alloc_buffer((5,))
    for i, k in T.grid(5, 40):
        with T.sblock("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-1000)
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid(5, 40):
        with T.sblock("E"):
            vi, vk = T.axis.remap("SS", [i, k])
            E[vi, vk] = T.exp(A[vi, vk] - M[vi])
    for i, k in T.grid(5, 40):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, k in T.grid(5, 40):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = E[vi, vk] / S[vi]
)";
const char* const kElementwise = R"(@T.prim_func
def main(A: T.Buffer((64, 33), "float32"), C: T.Buffer((64, 33), "float32")):
    B = T.sblock_alloc_buffer((64, 33))
    for i, j in T.grid(64, 33):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(64, 33):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * B[vi, vj]
)";
const char* const kTranspose = R"(@T.prim_func
def main(A: T.Buffer((48, 40), "float32"), B: T.Buffer((40, 48), "float32")):
    for i, j in T.grid(40, 48):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
)";

struct Case {
  const char* name;
  const char* program;
  std::set<std::string> asked; // at least
};
const Case kCases[] = {
    {"matmul",
     kMatmul,
     {"register tile of C", "pack panels of C", "panels inside of rows of C", "threads share of C"}},
    {"conv", kConv, {"register tile of Y", "rule of reductions in root"}},
    {"depthwise", kDepthwise, {"register tile of Y"}},
    {"softmax", kSoftmax, {"move S into rows of B", "vector lanes of S", "threads share rows of B"}},
    {"elementwise", kElementwise, {"inline B", "vector lanes of C", "rule of C"}},
    {"transpose", kTranspose, {"square side of B", "rule of B"}},
};

/// The largest difference of the results, relative to one; infinite for NaN.
double distance(const PrimFunc& a, const PrimFunc& b) {
  auto x = runOn(a, {}, 3), y = runOn(b, {}, 3, 7);
  if (!x || !y) {
    ADD_FAILURE() << (!x ? x.error().str() : y.error().str()) << "\n" << print(b);
    return HUGE_VAL;
  }
  double most = 0;
  for (size_t i = 0; i < x->size(); ++i)
    for (int64_t k = 0; k < (*x)[i]->size(); ++k) {
      double p = (*x)[i]->asDouble(k), q = (*y)[i]->asDouble(k);
      double d = std::abs(p - q) / std::max(1.0, std::abs(p));
      most = d <= most ? most : d == d ? d : HUGE_VAL;
    }
  return most;
}

class Decisions : public ::testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    auto parsed = parseFunction(GetParam().program);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().str();
    f_ = cast<PrimFuncNode>(*parsed);
    target_ = *Target::parse("x86-64-v3");
  }
  /// The trace's text gives the same program, and its answers give the same trace.
  void expectRecord(const DefaultSchedule& made) {
    auto trace = Trace::parse(made.trace.str());
    ASSERT_TRUE(trace.has_value()) << trace.error().str() << made.trace.str();
    Schedule sch = scheduleOf(f_);
    ASSERT_OK(trace->applyTo(sch));
    EXPECT_TRUE(structuralEqual(sch.func()->body, made.function->body)) << made.trace.str();
    auto again = scheduleDefault(f_, target_, recordedAnswers(*trace));
    ASSERT_TRUE(again.has_value()) << again.error().str();
    EXPECT_EQ(again->trace.str(), made.trace.str());
  }
  PrimFunc f_;
  Target target_;
};

TEST_P(Decisions, EveryAlternativeIsRightOrRefused) {
  auto made = scheduleDefault(f_, target_);
  ASSERT_TRUE(made.has_value());
  expectRecord(*made);
  std::set<std::string> open = GetParam().asked;
  size_t taken = 0;
  for (const DecisionReport& d : decisionsOf(made->trace)) {
    open.erase(d.name);
    for (size_t other = 0; other < d.candidates.size(); ++other) {
      SCOPED_TRACE(d.name + ": " + d.candidates[other]);
      auto answers = [&](const Question& q) { return q.name == d.name ? other : q.choice; };
      auto result = scheduleDefault(f_, target_, answers);
      if (!result) {
        EXPECT_NE(other, d.decision);
        EXPECT_NE(result.error().message.find("is refused: "), std::string::npos) << result.error().str();
        continue;
      }
      ++taken;
      EXPECT_LT(distance(f_, result->function), 1e-5) << result->trace.str();
      expectRecord(*result);
    }
  }
  EXPECT_TRUE(open.empty()) << *open.begin() << " is not asked:\n" << made->trace.str();
  EXPECT_GT(taken, decisionsOf(made->trace).size()); // alternatives were taken, not only refused
}

INSTANTIATE_TEST_SUITE_P(All, Decisions, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace bevel::testing

// What the reference interpreter refuses, and what it lets pass, about elements that were never written.
#include "loop/interpreter.h"
#include "tests/loop/lowered_programs.h"

namespace bevel {
namespace {

using namespace test;

// S[3] is never written; `body` runs behind.
std::string faultOf(const std::string& body) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(A: T.Buffer((3,), "int32"), C: T.Buffer((4,), "int32")):
    S = T.alloc_buffer((4,), "int32")
    U = T.alloc_buffer((4,), "int32")
    for i in range(3):
        S[i] = A[i]
    for i in range(4):
        U[i] = S[i]
)" + body);
  Status done = interpret(f, makeArguments(f));
  return done ? "" : done.error().message;
}

TEST(Interpreter, CopiesOfUnwrittenElementsHaveNoValue) {
  EXPECT_EQ(faultOf("    for i in range(3):\n        C[i] = U[i]\n"), "");
  EXPECT_EQ(faultOf("    for i in range(4):\n        C[i] = U[i]\n"),
            "element 3 of 'U' is read before it is written");
  EXPECT_EQ(faultOf("    for i in range(4):\n        C[i] = U[i] + 1\n"),
            "element 3 of 'U' is read before it is written");
  EXPECT_EQ(faultOf("    if U[3] > 0:\n        C[0] = 1\n"), "element 3 of 'U' is read before it is written");
  // A copy takes a value away, and a store gives one.
  EXPECT_EQ(faultOf("    U[0] = U[3]\n    C[0] = U[0]\n"), "element 0 of 'U' is read before it is written");
  EXPECT_EQ(faultOf("    U[3] = 7\n    C[0] = U[3]\n"), "");
}

TEST(Interpreter, ReductionsOverNothingGiveTheirInit) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(z: T.handle, S: T.Buffer((5,), "int32"), R: T.Buffer((2,), "int32")):
    n = T.int64()
    Z = T.match_buffer(z, (n, 5), "int32")
    for k, i in T.grid(n, 5):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = 7
            S[vi] = S[vi] + Z[vk, vi]
    for i, k in T.grid(2, 3):
        for l in range(2 - k):
            with T.sblock("R"):
                vi, vk, vl = T.axis.spatial(2, i), T.axis.reduce(3, k), T.axis.reduce(2, l)
                with T.init():
                    R[vi] = 3
                R[vi] = R[vi] + 1
)");
  ASSERT_TRUE(f);
  for (int64_t n : {0, 2}) {
    auto arguments = makeArguments(f, {{"n", n}});
    ASSERT_TRUE(interpret(f, arguments).has_value());
    for (int64_t i = 0; i < 5; ++i) {
      int64_t sum = 7;
      for (int64_t k = 0; k < n; ++k) sum += arguments[0]->asInt(k * 5 + i);
      EXPECT_EQ(arguments[1]->asInt(i), sum);
    }
    EXPECT_EQ(arguments[2]->asInt(0), 3 + 2 + 1); // the last, empty step does not begin again
    EXPECT_EQ(arguments[2]->asInt(1), 3 + 2 + 1);
  }
}

TEST(Interpreter, IntegerScalarsKeepAllBits) {
  PrimFunc f = parsed(R"(
@T.prim_func
def main(s: T.int64, t: T.float64, C: T.Buffer((1,), "int64")):
    C[0] = s + T.Cast("int64", t)
)");
  ASSERT_TRUE(f);
  auto arguments = makeArguments(f);
  ASSERT_TRUE(interpret(f, arguments, {(int64_t(1) << 53) + 1, 2.0}).has_value());
  EXPECT_EQ(arguments[0]->asInt(0), (int64_t(1) << 53) + 3);
}

} // namespace
} // namespace bevel

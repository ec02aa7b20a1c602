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

} // namespace
} // namespace bevel

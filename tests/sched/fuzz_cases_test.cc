// What the fuzzer of schedules found, shrunk: a program and the trace under which its results changed.
#include "tests/sched/support.h"

#include "ir/parser.h"

namespace bevel::testing {
namespace {

/// The trace must apply, and keep the results.
void expectKept(const char* program, const char* script) {
  auto parsed = parseFunction(program);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().str();
  PrimFunc f = cast<PrimFuncNode>(*parsed);
  Schedule sch = scheduleOf(f);
  ASSERT_OK(runScript(sch, script));
  EXPECT_EQ(difference(f, sch.func()), "");
}

// The cache copies the layout's padding, which has no values.
TEST(FuzzCases, CopyOfPaddingWithoutValues) {
  expectKept(R"(
@T.prim_func
def main(A: T.Buffer((4, 7), "float32"), B: T.Buffer((4, 7), "float32")):
    S = T.sblock_alloc_buffer((4, 7), "float32")
    for i, j in T.grid(4, 7):
        with T.sblock("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, 6 - vj] + A[vi, vj]
    for i, j in T.grid(4, 7):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(vi >= 1, S[vi - 1, vj], T.float32(0)) + S[vi, vj]
)",
             R"(s = sch.get_sblock(name="S")
b = sch.get_sblock(name="B")
sch.transform_layout(block=s, buffer=("write", 0), index_map=lambda i0, i1: (i1 // 2, i0, i1 % 2))
sch.cache_read(block=b, read_buffer_index=0, storage_scope="shared")
)");
}

} // namespace
} // namespace bevel::testing

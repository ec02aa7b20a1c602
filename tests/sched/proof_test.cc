// Steps are proved or refused: small programs on which an unproved step changed the results.
#include "tests/sched/support.h"

namespace bevel::testing {
namespace {

// The init keeps the condition of the first step.
TEST(Proved, DecomposeTriangle) {
  EXPECT_OK(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        for k in range(4):
            with T.sblock("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(i <= k)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]
)",
                      R"(b = sch.get_sblock("C")
i, k = sch.get_loops(b)
sch.decompose_reduction(b, k)
)"));
}

// Every thread computes all that it reads, so each gets the buffer to itself.
TEST(Proved, ComputeAtUnderThreads) {
  Status done = scheduled(R"(@T.prim_func
def main(A: T.Buffer((64, 2048), "int32"), C: T.Buffer((64,), "int32")):
    B = T.sblock_alloc_buffer((64,), "int32")
    for i, k in T.grid(64, 2048):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
    for io, ii in T.grid(8, 8):
        with T.sblock("C"):
            vi = T.axis.spatial(64, io * 8 + ii)
            C[vi] = B[vi] + B[T.if_then_else(vi < 60, vi + 3, vi)]
)",
                          R"(b = sch.get_sblock("B")
c = sch.get_sblock("C")
io, ii = sch.get_loops(c)
sch.parallel(io)
sch.compute_at(b, io)
)");
  EXPECT_TRUE(done) << done.error().str();
}

// That another loop runs is not known where the buffer is read.
TEST(Proved, SizesOfOtherLoopsInLayouts) {
  EXPECT_OK(scheduled(R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (1,), "int32")
    B = T.sblock_alloc_buffer((n + 1,), "int32")
    for i in range(n + 1):
        with T.sblock("B"):
            vi = T.axis.spatial(n + 1, i)
            B[vi] = T.Cast("int32", vi) + 7
    for j in range(n):
        with T.sblock("D"):
            vj = T.axis.spatial(n, j)
            A[vj] = B[vj]
    for k in range(1):
        with T.sblock("C"):
            vk = T.axis.spatial(1, k)
            C[vk] = B[T.max(n - 1, 0)]
)",
                      R"(b = sch.get_sblock("B")
sch.transform_layout(block=b, buffer=("write", 0), index_map=lambda i: (0, i))
)",
                      {{"n", 0}}));
}

TEST(Proved, SizesOfOtherLoopsInFusion) {
  EXPECT_OK(scheduled(R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (2, 3), "int32")
    for i, j in T.grid(T.int64(2), T.int64(3)):
        for k in range(n):
            with T.sblock("X"):
                vi = T.axis.spatial(2, i)
                vj = T.axis.spatial(3, j)
                vk = T.axis.spatial(n, k)
                A[vk] = 1
        with T.sblock("Y"):
            vi = T.axis.spatial(T.int64(2), i)
            vj = T.axis.spatial(T.int64(3), j)
            T.where(n >= 1)
            C[vi, vj] = 5
)",
                      R"(b = sch.get_sblock("Y")
i, j = sch.get_loops(b)
f = sch.fuse(i, j)
)",
                      {{"n", 0}}));
}

TEST(Proved, HandleOfAnotherFunction) {
  auto module = parseModule(R"(from tvm.script import ir as I
from tvm.script import tirx as T
@I.ir_module
class M:
    @T.prim_func
    def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.sblock("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]
)");
  ASSERT_TRUE(module.has_value()) << module.error().str();
  auto sch = Schedule::create(*module);
  ASSERT_TRUE(sch.has_value()) << sch.error().str();
  EXPECT_REFUSED(runScript(*sch, R"(fb = sch.get_sblock("B", "f")
mb = sch.get_sblock("C", "main")
x = sch.cache_read(mb, 0, "shared", consumer_blocks=[fb])
)"),
                 "belongs to function f");
}

} // namespace
} // namespace bevel::testing

// Steps are proved or refused: small programs on which an unproved step changed the results.
#include "tests/sched/support.h"

namespace bevel::testing {
namespace {

TEST(Proved, DeclaredRegionOfOneElement) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("W"):
            vi = T.axis.spatial(8, i)
            T.reads(A[0])
            T.writes(C[0])
            C[vi] = A[vi]
)",
                           R"(b = sch.get_sblock("W")
)"),
                 "not provably inside");
}

TEST(Proved, DeclaredRegionOfAnIndirectStore) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("W"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi], I[vi])
            T.writes(C[vi])
            C[I[vi]] = A[vi]
)",
                           R"(b = sch.get_sblock("W")
i, = sch.get_loops(b)
sch.parallel(i)
)"),
                 "not provably inside");
}

TEST(Proved, DeclaredRegionMissesARead) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(C: T.Buffer((9,), "int32")):
    for i in range(8):
        with T.sblock("W"):
            vi = T.axis.spatial(8, i)
            T.reads(C[vi + 1])
            T.writes(C[vi + 1])
            C[vi + 1] = C[vi + T.if_then_else(vi > 3, 0, 1)] + 1
)",
                           R"(b = sch.get_sblock("W")
)"),
                 "not provably inside");
}

TEST(Proved, ReorderOfAWavefront) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(B: T.Buffer((5, 5), "int32")):
    for i, j in T.grid(4, 4):
        with T.sblock("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi + 1, vj] = B[vi, vj + 1] + 1
)",
                           R"(b = sch.get_sblock("W")
i, j = sch.get_loops(b)
sch.reorder(j, i)
)"),
                 "carries a dependence");
}

TEST(Proved, ReorderOfHornersRule) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((1,), "int32")):
    for i, j in T.grid(2, 2):
        with T.sblock("W"):
            vk = T.axis.reduce(4, i * 2 + j)
            with T.init():
                C[0] = 0
            C[0] = C[0] * 2 + A[vk]
)",
                           R"(b = sch.get_sblock("W")
i, j = sch.get_loops(b)
sch.reorder(j, i)
)"),
                 "init must come first");
}

TEST(Proved, ReorderOfCalls) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")):
    for i, j in T.grid(8, 8):
        with T.sblock("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.evaluate(T.call_extern("int32", "log_line", vi, vj))
            C[vi, vj] = A[vi, vj]
)",
                           R"(b = sch.get_sblock("P")
i, j = sch.get_loops(b)
sch.reorder(j, i)
)"),
                 "effect");
}

TEST(Proved, ParallelCalls) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("P"):
            vi = T.axis.spatial(8, i)
            T.evaluate(T.call_extern("int32", "log_line", vi))
            C[vi] = A[vi]
)",
                           R"(b = sch.get_sblock("P")
i, = sch.get_loops(b)
sch.parallel(i)
)"),
                 "effect");
}

TEST(Proved, MoveAcrossABarrier) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.sblock_alloc_buffer((8,), "int32", scope="shared")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    with T.sblock("S"):
        T.evaluate(T.tvm_storage_sync("shared"))
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[7 - vi]
)",
                           R"(b = sch.get_sblock("B")
c = sch.get_sblock("C")
i, = sch.get_loops(c)
sch.compute_at(b, i)
)"),
                 "cannot be moved across");
}

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

TEST(Proved, DecomposeBeforeAnotherWriter) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer((5,), "int32")):
    for i in range(4):
        for k in range(4):
            with T.sblock("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]
        with T.sblock("D"):
            vi = T.axis.spatial(4, i)
            C[vi + 1] = 100
)",
                           R"(b = sch.get_sblock("C")
i, k = sch.get_loops(b)
sch.decompose_reduction(b, i)
)"),
                 "later iterations");
}

TEST(Proved, DecomposeBeforeAnotherReader) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer((5,), "int32"), D: T.Buffer((4,), "int32")):
    for i in range(4):
        for k in range(4):
            with T.sblock("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]
        with T.sblock("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = C[vi + 1]
)",
                           R"(b = sch.get_sblock("C")
i, k = sch.get_loops(b)
sch.decompose_reduction(b, i)
)"),
                 "later iterations");
}

TEST(Proved, DecomposeWhatDoesNotBeginAtItsStart) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((1,), "int32")):
    for k in range(7):
        with T.sblock("C"):
            vk = T.axis.reduce(8, k + 1)
            with T.init():
                C[0] = 0
            C[0] = C[0] + A[vk]
)",
                           R"(b = sch.get_sblock("C")
k, = sch.get_loops(b)
sch.decompose_reduction(b, k)
)"),
                 "at its start");
}

TEST(Proved, DecomposeWhatRunsBackwards) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((1,), "int32")):
    for k in range(8):
        with T.sblock("C"):
            vk = T.axis.reduce(8, 7 - k)
            with T.init():
                C[0] = 0
            C[0] = C[0] + A[vk]
)",
                           R"(b = sch.get_sblock("C")
k, = sch.get_loops(b)
sch.decompose_reduction(b, k)
)"),
                 "at its start");
}

TEST(Proved, RfactorOfAPart) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((1,), "int32")):
    for k in range(7):
        with T.sblock("C"):
            vk = T.axis.reduce(8, k + 1)
            with T.init():
                C[0] = 0
            C[0] = C[0] + A[vk]
)",
                           R"(b = sch.get_sblock("C")
k, = sch.get_loops(b)
r = sch.rfactor(k, 0)
)"),
                 "provably executed");
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

TEST(Proved, ConditionOfTheWriterOnly) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(X: T.Buffer((8,), "int32"), A: T.Buffer((4,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("W"):
            va = T.axis.spatial(4, i % 4)
            vi = T.axis.spatial(8, i)
            T.where(i < 4)
            A[va] = X[vi]
        with T.sblock("R"):
            va = T.axis.spatial(4, i % 4)
            vi = T.axis.spatial(8, i)
            B[vi] = A[va]
)",
                           R"(b = sch.get_sblock("R")
l, = sch.get_loops(b)
sch.parallel(l)
)"),
                 "carries a dependence");
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

TEST(Proved, FuseOfNegativeExtents) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (4,), "int32")
    for i, j in T.grid(n - 5, n - 5):
        with T.sblock("W"):
            C[0] = C[0] + 1
)",
                           R"(b = sch.get_sblock("W")
i, j = sch.get_loops(b)
sch.fuse(i, j)
)"),
                 "negative");
}

TEST(Proved, CacheWriteForAnEarlierReader) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.sblock("X"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]
    for i in range(4):
        with T.sblock("Y"):
            vi = T.axis.spatial(4, i)
            B[vi] = 7
)",
                           R"(y = sch.get_sblock("Y")
x = sch.get_sblock("X")
sch.cache_write(y, 0, "local", consumer_blocks=[x])
)"),
                 "holds nothing yet");
}

TEST(Proved, InlineOfTheOnlyBlock) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    B = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
)",
                           R"(b = sch.get_sblock("B")
sch.compute_inline(b)
)"),
                 "only block");
}

TEST(Proved, FactorsBeyondTheLoopsType) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 8), "int32")):
    for i, j in T.grid(T.int32(4), T.int32(8)):
        with T.sblock("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 3
)",
                           R"(b = sch.get_sblock("W")
i, j = sch.get_loops(b)
x, y = sch.split(i, [None, 8589934592])
)"),
                 "does not fit");
}

TEST(Proved, ParallelAroundParallel) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 8), "int32")):
    for i, j in T.grid(4, 8):
        with T.sblock("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 3
)",
                           R"(b = sch.get_sblock("W")
i, j = sch.get_loops(b)
sch.parallel(j)
sch.parallel(i)
)"),
                 "already");
}

TEST(Proved, TwoLoopsOfOneThreadAxis) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 8), "int32")):
    for i, j in T.grid(4, 8):
        with T.sblock("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 3
)",
                           R"(b = sch.get_sblock("W")
i, j = sch.get_loops(b)
sch.bind(j, "threadIdx.x")
sch.bind(i, "threadIdx.x")
)"),
                 "already");
}

TEST(Proved, ReorderOfThreadsIntoLanes) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 8), "int32")):
    for i, j in T.grid(4, 8):
        with T.sblock("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 3
)",
                           R"(b = sch.get_sblock("W")
i, j = sch.get_loops(b)
sch.parallel(i)
sch.vectorize(j)
sch.reorder(j, i)
)"),
                 "would be inside");
}

TEST(Proved, HandleOfARemovedBlock) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.sblock("R"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
)",
                           R"(b = sch.get_sblock("R")
c = sch.cache_read(b, 0, "local")
sch.compute_inline(c)
d = sch.cache_read(b, 0, "local")
l, = sch.get_loops(c)
)"),
                 "no longer");
}

TEST(Proved, SecondViewOfAllocated) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer((16,), "int32")):
    with T.sblock("root"):
        B = T.sblock_alloc_buffer((4, 4), "int32")
        B1 = T.decl_buffer((16,), "int32", data=B.data)
        for i, j in T.grid(4, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i in range(16):
            with T.sblock("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B1[vi]
)",
                           R"(b = sch.get_sblock("B")
sch.set_scope(b, ("write",0), "shared")
)"),
                 "second view");
}

TEST(Proved, SecondViewOfAParameter) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((T.int64(16),), "int32"), C: T.Buffer((T.int64(16),), "int32")):
    A1 = T.decl_buffer((T.int64(4), T.int64(4)), "int32", data=A.data)
    for i in range(T.int64(16)):
        with T.sblock("X"):
            vi = T.axis.spatial(T.int64(16), i)
            A1[vi // T.int64(4), vi % T.int64(4)] = A[T.int64(15) - vi]
)",
                           R"(b = sch.get_sblock("X")
i, = sch.get_loops(b)
sch.parallel(i)
)"),
                 "second view");
}

TEST(Proved, LayoutOfAMatchedRegion) {
  EXPECT_REFUSED(scheduled(R"(@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    B = T.sblock_alloc_buffer((4, 8), "int32")
    for i in range(4):
        with T.sblock("outer"):
            vo = T.axis.spatial(4, i)
            T.reads(A[vo, 0:8])
            T.writes(B[vo, 0:8])
            V = T.match_buffer(B[vo, 0:8], (1, 8), "int32", offset_factor=1)
            for j in range(8):
                with T.sblock("inner"):
                    vj = T.axis.spatial(8, j)
                    V[0, vj] = A[vo, vj]
    for i, j in T.grid(4, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
)",
                           R"(b = sch.get_sblock("inner")
sch.transform_layout(block=b, buffer=("write", 0), index_map=lambda i, j: (j, i))
)"),
                 "V is a view of B in block outer");
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

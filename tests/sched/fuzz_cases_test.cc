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

// The producer's condition does not only cut a tail of its domain: its tiles overlap, and the consumer would run where
// nothing was produced.
TEST(FuzzCases, ConsumerOfAConditionThatIsNoTail) {
  EXPECT_REFUSED(scheduled(R"(
@T.prim_func
def main(A: T.Buffer((2, 4), "int32"), B: T.Buffer((2, 4), "int32")):
    S = T.sblock_alloc_buffer((2,), "int32")
    for i, k in T.grid(2, 4):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = 0
            S[vi] = S[vi] + A[vi, vk]
    for i, j in T.grid(2, 4):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] - S[vi]
)",
                           R"(s = sch.get_sblock("S")
b = sch.get_sblock("B")
i, j = sch.get_loops(b)
sch.compute_at(s, j, preserve_unit_loops=True)
loops = sch.get_loops(s)
l0, l1 = sch.split(loops[2], [None, 4])
sch.reverse_compute_at(b, l1)
)"),
                 "leaves out more than tails");
}

// A reversed index is as good as a forward one.
TEST(FuzzCases, ReversedConsumers) {
  const char* program = R"(
@T.prim_func
def main(A: T.Buffer((10, 12), "int32"), B: T.Buffer((10, 12), "int32")):
    S = T.sblock_alloc_buffer((10, 12), "int32")
    for i, j in T.grid(10, 12):
        with T.sblock("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj] * 2
    for i, j in T.grid(10, 12):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = S[9 - vi, vj] + vi
)";
  expectKept(program, R"(b = sch.get_sblock("B")
s = sch.get_sblock("S")
i, j = sch.get_loops(s)
i0, i1 = sch.split(i, [None, 4])
sch.reverse_compute_at(b, i0)
)");
  expectKept(program, R"(b = sch.get_sblock("B")
sch.reverse_compute_inline(b)
)");
}

// No instance initialises after it accumulated, whatever the order of the loops over its axes: also of some of them, and
// around others.
TEST(FuzzCases, ReductionLoopsOfATiledConvolution) {
  expectKept(R"(
@T.prim_func
def main(X: T.Buffer((1, 4, 6, 6), "int32"), W: T.Buffer((8, 4, 3, 3), "int32"), Y: T.Buffer((1, 8, 4, 4), "int32")):
    for n, c, y, x, rc, ry, rx in T.grid(1, 8, 4, 4, 4, 3, 3):
        with T.sblock("Y"):
            vn, vc, vy, vx, vrc, vry, vrx = T.axis.remap("SSSSRRR", [n, c, y, x, rc, ry, rx])
            with T.init():
                Y[vn, vc, vy, vx] = 0
            Y[vn, vc, vy, vx] = Y[vn, vc, vy, vx] + X[vn, vrc, vy + vry, vx + vrx] * W[vc, vrc, vry, vrx]
)",
             R"(b = sch.get_sblock("Y")
n, c, y, x, rc, ry, rx = sch.get_loops(b)
rc_0, rc_1 = sch.split(rc, [2, 2])
ry_0, ry_1 = sch.split(ry, [1, 3])
rx_0, rx_1 = sch.split(rx, [3, 1])
c_0, c_1 = sch.split(c, [2, 4])
y_0, y_1 = sch.split(y, [2, 2])
sch.reorder(n, c_0, y_0, x, rc_0, ry_0, rx_0, c_1, rc_1, ry_1, rx_1, y_1)
sch.reorder(ry_1, rc_1)
sch.reorder(rx_1, y_1, ry_1)
)");
}

// A block of tiles, as an accelerator computes them: operands and accumulator in memories of their own, the copy back
// when a tile is complete, the initialisation before.
TEST(FuzzCases, BlockOfTiles) {
  expectKept(R"(
@T.prim_func
def main(A: T.Buffer((8, 12), "int32"), B: T.Buffer((8, 12), "int32"), C: T.Buffer((8, 8), "int32")):
    for i0, j0, k0 in T.grid(2, 2, 3):
        with T.sblock("tile"):
            vi0, vj0, vk0 = T.axis.remap("SSR", [i0, j0, k0])
            with T.init():
                for i1, j1 in T.grid(4, 4):
                    with T.sblock("zero"):
                        vi1, vj1 = T.axis.remap("SS", [i1, j1])
                        C[vi0 * 4 + vi1, vj0 * 4 + vj1] = 0
            for i1, j1, k1 in T.grid(4, 4, 4):
                with T.sblock("element"):
                    vi1, vj1, vk1 = T.axis.remap("SSR", [i1, j1, k1])
                    C[vi0 * 4 + vi1, vj0 * 4 + vj1] = C[vi0 * 4 + vi1, vj0 * 4 + vj1] + A[vi0 * 4 + vi1, vk0 * 4 + vk1] * B[vj0 * 4 + vj1, vk0 * 4 + vk1]
)",
             R"(b = sch.get_sblock("tile")
i, j, k = sch.get_loops(b)
x = sch.cache_read(b, 0, "global.A_reg")
y = sch.cache_read(b, 1, "global.B_reg")
sch.compute_at(x, k)
sch.compute_at(y, k)
z = sch.cache_write(b, 0, "global.accumulator")
sch.reverse_compute_at(z, j)
sch.decompose_reduction(b, k)
)");
}

// What a loop around the block writes apart in its iterations does not keep the block from moving out of it.
TEST(FuzzCases, OutOfALoopWhoseIterationsAreApart) {
  const char* program = R"(
@T.prim_func
def main(A: T.Buffer((8, 4), "int32"), C: T.Buffer((8, 4), "int32")):
    X = T.sblock_alloc_buffer((8, 4), "int32")
    Y = T.sblock_alloc_buffer((8, 4), "int32")
    for i, j in T.grid(8, 4):
        with T.sblock("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi, vj] = A[vi, vj] + 1
        with T.sblock("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * 2
    for i, j in T.grid(8, 4):
        with T.sblock("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = Y[7 - vi, vj]
)";
  expectKept(program, R"(z = sch.get_sblock("Z")
i, j = sch.get_loops(z)
s = sch.get_sblock("S")
sch.compute_at(s, j)
)");
  expectKept(program, R"(s = sch.get_sblock("S")
sch.compute_inline(s)
)");
}

} // namespace
} // namespace bevel::testing

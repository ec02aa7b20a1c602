// Schedules of the ML compilation course (shared list, programs 3, 7 and 14) give the programs that the
// course shows.
#include "ir/parser.h"
#include "tests/sched/support.h"

namespace bevel::testing {
namespace {

constexpr const char* kBmmRelu = R"(@T.prim_func
def bmm_relu(A: T.Buffer((16, 32, 32), "float32"), B: T.Buffer((16, 32, 32), "float32"), C: T.Buffer((16, 32, 32), "float32")):
    T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
    Y = T.alloc_buffer((16, 32, 32), dtype="float32")
    for n, i, j, k in T.grid(16, 32, 32, 32):
        with T.block("Y"):
            vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
            with T.init():
                Y[vn, vi, vj] = T.float32(0)
            Y[vn, vi, vj] = Y[vn, vi, vj] + A[vn, vi, vk] * B[vn, vk, vj]
    for n, i, j in T.grid(16, 32, 32):
        with T.block("C"):
            vn, vi, vj = T.axis.remap("SSS", [n, i, j])
            C[vn, vi, vj] = T.max(Y[vn, vi, vj], T.float32(0))
)";

constexpr const char* kBmmReluTarget = R"(@T.prim_func
def bmm_relu(A: T.Buffer((16, 32, 32), "float32"), B: T.Buffer((16, 32, 32), "float32"), C: T.Buffer((16, 32, 32), "float32")):
    T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
    Y = T.alloc_buffer((16, 32, 32), dtype="float32")
    for i0 in T.parallel(16):
        for i1, i2_0 in T.grid(32, 4):
            for ax0_init in T.vectorized(8):
                with T.block("Y_init"):
                    n, i = T.axis.remap("SS", [i0, i1])
                    j = T.axis.spatial(32, i2_0 * 8 + ax0_init)
                    Y[n, i, j] = T.float32(0)
            for ax1_0 in T.serial(8):
                for ax1_1 in T.unroll(4):
                    for ax0 in T.serial(8):
                        with T.block("Y_update"):
                            n, i = T.axis.remap("SS", [i0, i1])
                            j = T.axis.spatial(32, i2_0 * 8 + ax0)
                            k = T.axis.reduce(32, ax1_0 * 4 + ax1_1)
                            Y[n, i, j] = Y[n, i, j] + A[n, i, k] * B[n, k, j]
            for i2_1 in T.vectorized(8):
                with T.block("C"):
                    n, i = T.axis.remap("SS", [i0, i1])
                    j = T.axis.spatial(32, i2_0 * 8 + i2_1)
                    C[n, i, j] = T.max(Y[n, i, j], T.float32(0))
)";

TEST(Course, BmmReluReachesItsTarget) {
  auto before = parseModule(kBmmRelu), target = parseModule(kBmmReluTarget);
  ASSERT_TRUE(before.has_value()) << before.error().str();
  ASSERT_TRUE(target.has_value()) << target.error().str();
  auto sch = Schedule::create(*before);
  ASSERT_TRUE(sch.has_value()) << sch.error().str();
  ASSERT_OK(runScript(*sch, R"(Y = sch.get_block("Y", func_name="bmm_relu")
C = sch.get_block("C", func_name="bmm_relu")
n, i, j = sch.get_loops(C)
j0, j1 = sch.split(j, factors=[4, 8])
sch.compute_at(Y, j0)
n, i, j0, ax0, ax1 = sch.get_loops(Y)
k0, k1 = sch.split(ax1, factors=[8, 4])
sch.reorder(k0, k1, ax0)
init = sch.decompose_reduction(Y, k0)
sch.unroll(k1)
sch.vectorize(sch.get_loops(init)[-1])
sch.vectorize(j1)
sch.parallel(n)
)",
                      "bmm.py"));
  EXPECT_TRUE(structuralEqual(sch->mod(), *target)) << firstDifference(sch->mod(), *target) << "\n"
                                                    << print(sch->mod());
  EXPECT_EQ(difference(cast<PrimFuncNode>((*before)->functions[0]), sch->func()), "");
}

/// mm_relu with its loop j split by jfactor, the relu computed for each row part, the sum initialised apart.
TEST(Course, TransformWithJfactor) {
  PrimFunc f = matmulBiasRelu(16, 32, 8);
  for (int jfactor : {1, 4, 8, 32}) {
    auto sch = Schedule::create(f);
    std::string script = R"(sch.reverse_compute_inline(sch.get_sblock("E"))
Y = sch.get_sblock("C")
D = sch.get_sblock("D")
i, j, k = sch.get_loops(Y)
j0, j1 = sch.split(j, factors=[None, )" +
                         std::to_string(jfactor) + R"(])
sch.reorder(i, j0, k, j1)
sch.reverse_compute_at(D, j0)
sch.decompose_reduction(Y, k)
)";
    ASSERT_OK(runScript(*sch, script));
    EXPECT_EQ(difference(f, sch->func()), "") << jfactor;
  }
}

} // namespace
} // namespace bevel::testing

# Course program 7 (2.5): what `bmm_relu` (p07_bmm_relu.py) has to become: samples in parallel, each row in strips of
# eight columns, a strip's sums begun, built up four steps of k at a time and finished by the relu before the next one.
from tvm.script import tirx as T


@T.prim_func
def bmm_relu(
    A: T.Buffer((16, 128, 128), "float32"),
    B: T.Buffer((16, 128, 128), "float32"),
    C: T.Buffer((16, 128, 128), "float32"),
):
    T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
    Y = T.sblock_alloc_buffer((16, 128, 128), dtype="float32")
    for i0 in T.parallel(16):
        for i1, i2_0 in T.grid(128, 16):
            for ax0_init in T.vectorized(8):
                with T.sblock("Y_init"):
                    n, i = T.axis.remap("SS", [i0, i1])
                    j = T.axis.spatial(128, i2_0 * 8 + ax0_init)
                    Y[n, i, j] = T.float32(0)
            for ax1_0 in range(32):
                for ax1_1 in T.unroll(4):
                    for ax0 in range(8):
                        with T.sblock("Y_update"):
                            n, i = T.axis.remap("SS", [i0, i1])
                            j = T.axis.spatial(128, i2_0 * 8 + ax0)
                            k = T.axis.reduce(128, ax1_0 * 4 + ax1_1)
                            Y[n, i, j] = Y[n, i, j] + A[n, i, k] * B[n, k, j]
            for i2_1 in T.vectorized(8):
                with T.sblock("C"):
                    n, i = T.axis.remap("SS", [i0, i1])
                    j = T.axis.spatial(128, i2_0 * 8 + i2_1)
                    C[n, i, j] = T.max(Y[n, i, j], T.float32(0))

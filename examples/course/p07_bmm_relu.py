# Course program 7 (2.5): batched matmul and relu, 16x128x128, before it is scheduled. p07_trace.py brings it to
# p07_target.py.
#
#   bevel opt p07_bmm_relu.py --schedule p07_trace.py
from tvm.script import tirx as T


@T.prim_func
def bmm_relu(
    A: T.Buffer((16, 128, 128), "float32"),
    B: T.Buffer((16, 128, 128), "float32"),
    C: T.Buffer((16, 128, 128), "float32"),
):
    T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
    Y = T.sblock_alloc_buffer((16, 128, 128), dtype="float32")
    for n, i, j, k in T.grid(16, 128, 128, 128):
        with T.sblock("Y"):
            vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
            with T.init():
                Y[vn, vi, vj] = T.float32(0)
            Y[vn, vi, vj] = Y[vn, vi, vj] + A[vn, vi, vk] * B[vn, vk, vj]
    for n, i, j in T.grid(16, 128, 128):
        with T.sblock("C"):
            vn, vi, vj = T.axis.remap("SSS", [n, i, j])
            C[vn, vi, vj] = T.max(Y[vn, vi, vj], T.float32(0))

# Course program 2 (2.4): C = max(A @ B, 0) over 128x128 as a tensor program, in the forms that the course compares.
#
#   bevel run p02_mm_relu.py --function mm_relu --random 1        any of the functions, by machine code
#   bevel run p02_mm_relu.py --function mm_relu --random 1 --interpret
#   bevel opt p02_mm_relu.py                                      all of them in the canonical form
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class MmRelu:
    # Every axis by itself: a block says which of its axes are independent (spatial) and which are summed over (reduce),
    # and with which loop each of them runs.
    @T.prim_func
    def mm_relu(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        Y = T.sblock_alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.sblock("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                vk = T.axis.reduce(128, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.sblock("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    # The same with the sugar for axes that run over their loop as it is.
    @T.prim_func
    def mm_relu_remap(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        Y = T.sblock_alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    # The same in two functions: whoever calls them makes the tensor between them.
    @T.prim_func
    def mm(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        Y: T.Buffer((128, 128), "float32"),
    ):
        for i, j, k in T.grid(128, 128, 128):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def relu(Y: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
        for i, j in T.grid(128, 128):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    # One such caller: a graph function.
    @R.function
    def main(A: R.Tensor((128, 128), "float32"), B: R.Tensor((128, 128), "float32")) -> R.Tensor(
        (128, 128), "float32"
    ):
        cls = MmRelu
        with R.dataflow():
            Y = R.call_tir(cls.mm, (A, B), out_sinfo=R.Tensor((128, 128), "float32"))
            C = R.call_tir(cls.relu, (Y,), out_sinfo=R.Tensor((128, 128), "float32"))
            R.output(C)
        return C

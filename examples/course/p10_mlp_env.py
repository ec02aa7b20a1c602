# Course program 10 (3): the network by packed functions that a user registers, `env.linear` and `env.relu`. The module
# knows only their names; the last argument of each is the result, which `R.call_dps_packed` makes.
#
# The functions come with the program that runs this: p10_mlp_env.cc in one process, p10_main.c with the compiled library.
#
#   bevel compile p10_mlp_env.py -o p10.so
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class Mlp:
    @R.function
    def main(
        x: R.Tensor((1, "m"), "float32"),
        w0: R.Tensor(("n", "m"), "float32"),
        b0: R.Tensor(("n",), "float32"),
        w1: R.Tensor(("k", "n"), "float32"),
        b1: R.Tensor(("k",), "float32"),
    ) -> R.Tensor((1, "k"), "float32"):
        m, n, k = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            lv0 = R.call_dps_packed("env.linear", (x, w0, b0), out_sinfo=R.Tensor((1, n), "float32"))
            lv1 = R.call_dps_packed("env.relu", (lv0,), out_sinfo=R.Tensor((1, n), "float32"))
            out = R.call_dps_packed("env.linear", (lv1, w1, b1), out_sinfo=R.Tensor((1, k), "float32"))
            R.output(out)
        return out

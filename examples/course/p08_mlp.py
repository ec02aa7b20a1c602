# Course program 8 (3): the network of data/ (28x28 picture → 128 → relu → 10 classes) as a graph function in operators,
# the one that the others of this chapter are compared with.
#
#   bevel run p08_mlp.py --input x=data/x.npy --input w0=data/w0.npy --input b0=data/b0.npy \
#     --input w1=data/w1.npy --input b1=data/b1.npy
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Mlp:
    @R.function
    def main(
        x: R.Tensor((1, 784), "float32"),
        w0: R.Tensor((128, 784), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ) -> R.Tensor((1, 10), "float32"):
        with R.dataflow():
            w0t = R.permute_dims(w0, axes=[1, 0])
            lv0 = R.matmul(x, w0t)
            lv1 = R.add(lv0, b0)
            lv2 = R.nn.relu(lv1)
            w1t = R.permute_dims(w1, axes=[1, 0])
            lv3 = R.matmul(lv2, w1t)
            out = R.add(lv3, b1)
            R.output(out)
        return out

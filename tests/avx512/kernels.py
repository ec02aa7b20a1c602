"""Small models whose kernels take every form that 512-bit vectors have: whole vectors, tails, packed weights, each type.

`kernels()` gives name: (model, feeds, rtol, atol as a part of the largest value).
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT_LIMIT = (0, 1e-5)
HALF_LIMIT = (0, 2e-3)
EXACT = (0, 0)
# Elementwise functions: relative to each value; sine and the like also to one, where they cross zero.
FUNCTION_LIMIT = (2e-6, 2e-7)


class Kernels:
    def __init__(self):
        self.found = {}
        self.rng = np.random.default_rng(3)

    def normal(self, *shape, dtype=np.float32):
        return self.rng.standard_normal(shape).astype(dtype)

    def integers(self, dtype, *shape):
        info = np.iinfo(dtype)
        return self.rng.integers(max(info.min, -(2**40)), min(info.max, 2**40), shape, dtype, endpoint=True)

    def add(
        self,
        name,
        op,
        feeds,
        weights=(),
        limit=FLOAT_LIMIT,
        opset=18,
        outputs=("y",),
        then=None,
        **attributes,
    ):
        """One operator, on `feeds` and then on constants; `then` is an elementwise operator after it."""
        constants = [numpy_helper.from_array(np.asarray(value), f"w{i}") for i, value in enumerate(weights)]
        names = [f"x{i}" for i in range(len(feeds))]
        inputs = [*names, *(constant.name for constant in constants)]
        produced = ["before"] if then else list(outputs)
        nodes = [helper.make_node(op, inputs, produced, **attributes)]
        if then:
            back = {"to": TensorProto.FLOAT} if then == "Cast" else {}
            nodes.append(helper.make_node(then, produced, list(outputs), **back))
        infos = [
            helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for key, value in zip(names, feeds)
        ]
        results = [helper.make_empty_tensor_value_info(output) for output in outputs]
        graph = helper.make_graph(nodes, "kernel", infos, results, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        assert name not in self.found
        self.found[name] = (onnx.shape_inference.infer_shapes(model), dict(zip(names, feeds)), *limit)


def products(k):
    for columns in [*range(1, 18), 31, 33, 47, 48, 63, 65, 100, 260]:
        k.add(f"matmul_constant_17x19x{columns}", "MatMul", [k.normal(17, 19)], [k.normal(19, columns)])
    for columns in [1, 3, 8, 15, 16, 17, 40, 129]:
        k.add(f"matmul_13x24x{columns}", "MatMul", [k.normal(13, 24), k.normal(24, columns)])
        k.add(f"matmul_batch_5x{columns}", "MatMul", [k.normal(3, 5, 9), k.normal(3, 9, columns)])
    for rows in [1, 2, 5, 29, 64]:
        k.add(f"matmul_rows_{rows}", "MatMul", [k.normal(rows, 70)], [k.normal(70, 50)], then="Relu")
    k.add("matmul_deep", "MatMul", [k.normal(9, 1500)], [k.normal(1500, 72)])
    k.add("matmul_128", "MatMul", [k.normal(128, 128)], [k.normal(128, 128)])
    k.add("gemm", "Gemm", [k.normal(11, 37)], [k.normal(41, 37), k.normal(41)], transB=1, alpha=0.5)
    k.add("gemm_transposed", "Gemm", [k.normal(37, 11), k.normal(37, 21)], transA=1)
    half = [k.normal(9, 33, dtype=np.float16), k.normal(33, 50, dtype=np.float16)]
    k.add("matmul_half", "MatMul", half, limit=HALF_LIMIT)
    k.add("matmul_double", "MatMul", [k.normal(9, 33, dtype=np.float64), k.normal(33, 21, dtype=np.float64)])
    for columns in [5, 16, 33]:
        # 7 bits: sums of two larger products saturate in the oracle on processors without VNNI.
        bytes_in = [k.integers(np.uint8, 7, 45) >> 1, k.integers(np.int8, 45, columns)]
        k.add(f"matmul_integer_{columns}", "MatMulInteger", bytes_in, limit=EXACT)
    k.add("attention_scores", "MatMul", [k.normal(2, 4, 24, 20), k.normal(2, 4, 20, 24)], then="Tanh")


def convolutions(k):
    for channels in [3, 16, 24, 40, 72]:
        x = k.normal(1, channels, 13, 14)
        for size in (1, 3):
            pads = [size // 2] * 4
            name = f"conv{size}x{size}_{channels}"
            k.add(name, "Conv", [x], [k.normal(24, channels, size, size)], then="HardSwish", pads=pads)
            k.add(
                f"{name}_wide", "Conv", [x], [k.normal(100, channels, size, size), k.normal(100)], pads=pads
            )
        for size, stride in ((3, 1), (5, 2)):
            weights = [k.normal(channels, 1, size, size), k.normal(channels)]
            form = {"group": channels, "strides": [stride] * 2, "pads": [size // 2] * 4}
            k.add(f"depthwise{size}x{size}_{channels}", "Conv", [x], weights, then="Relu", **form)
        k.add(f"maxpool_{channels}", "MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        k.add(f"averagepool_{channels}", "AveragePool", [x], kernel_shape=[3, 3], pads=[1] * 4)
        k.add(f"globalpool_{channels}", "GlobalAveragePool", [x])
    k.add(
        "conv_stem", "Conv", [k.normal(1, 3, 33, 31)], [k.normal(64, 3, 7, 7)], strides=[2, 2], pads=[3] * 4
    )
    k.add("conv_groups", "Conv", [k.normal(1, 24, 9, 9)], [k.normal(40, 6, 3, 3)], group=4, pads=[1] * 4)
    k.add("conv_dilated", "Conv", [k.normal(2, 5, 17, 16)], [k.normal(17, 5, 3, 3)], dilations=[2, 2])
    k.add("conv_1d", "Conv", [k.normal(1, 19, 50)], [k.normal(33, 19, 5)], pads=[2, 2])
    k.add(
        "conv_transposed", "ConvTranspose", [k.normal(1, 24, 7, 8)], [k.normal(24, 17, 3, 3)], strides=[2, 2]
    )
    k.add("conv_winograd_size", "Conv", [k.normal(1, 64, 16, 16)], [k.normal(64, 64, 3, 3)], pads=[1] * 4)


def rows(k):
    for size in [1, 7, 15, 16, 17, 31, 33, 100, 1000]:
        x = k.normal(5, size)
        k.add(f"softmax_{size}", "Softmax", [x], axis=-1)
        k.add(f"layernorm_{size}", "LayerNormalization", [x], [k.normal(size), k.normal(size)])
        for op in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2", "ReduceLogSumExp"):
            k.add(f"{op}_{size}", op, [x], [np.array([1], np.int64)], keepdims=0)
        k.add(f"ArgMax_{size}", "ArgMax", [x], limit=EXACT, axis=1)
        k.add(f"CumSum_{size}", "CumSum", [x], [np.array(1, np.int64)])
    for axis in ([0], [1], [2], [0, 2], [0, 1, 2]):
        word = "".join(map(str, axis))
        for dtype in (np.float32, np.int32):
            x = k.normal(6, 19, 35) if dtype == np.float32 else k.integers(np.int16, 6, 19, 35).astype(dtype)
            for op in ("ReduceSum", "ReduceMin", "ReduceMax"):
                limit = EXACT if dtype == np.int32 else FLOAT_LIMIT
                k.add(f"{op}_axes_{word}_{np.dtype(dtype)}", op, [x], [np.array(axis, np.int64)], limit)
    k.add("softmax_middle", "Softmax", [k.normal(3, 19, 21)], axis=1)
    k.add("logsoftmax", "LogSoftmax", [k.normal(3, 37)], axis=1)
    k.add("instancenorm", "InstanceNormalization", [k.normal(2, 24, 7, 9)], [k.normal(24), k.normal(24)])
    k.add(
        "batchnorm",
        "BatchNormalization",
        [k.normal(2, 24, 5, 5)],
        [k.normal(24), k.normal(24), k.normal(24), np.abs(k.normal(24)) + 1],
    )
    k.add("topk", "TopK", [k.normal(3, 50)], [np.array([5], np.int64)], outputs=("y", "i"))


def moves(k):
    for shape, orders in {
        (17, 33): [(1, 0)],
        (64, 48): [(1, 0)],
        (3, 17, 40): [(0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1)],
        (2, 5, 33, 7): [(0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0)],
    }.items():
        for order in orders:
            for dtype in (np.float32, np.int8, np.int64):
                name = f"transpose_{'x'.join(map(str, shape))}_{''.join(map(str, order))}_{np.dtype(dtype)}"
                x = k.normal(*shape) if dtype == np.float32 else k.integers(dtype, *shape)
                k.add(name, "Transpose", [x], limit=EXACT, perm=order)
    places = k.rng.integers(-30, 30, (4, 19))
    for axis in (0, 1):
        shape = (30, 41) if axis == 0 else (21, 30)
        k.add(f"gather_{axis}", "Gather", [k.normal(*shape), places], limit=EXACT, axis=axis)
        k.add(f"gather_elements_{axis}", "GatherElements", [k.normal(30, 30), places], limit=EXACT, axis=axis)
    k.add("gather_nd", "GatherND", [k.normal(6, 7, 33), k.rng.integers(0, 6, (5, 2))], limit=EXACT)
    k.add(
        "scatter_nd",
        "ScatterND",
        [k.normal(30, 33), np.array([[3], [7], [29]]), k.normal(3, 33)],
        limit=EXACT,
    )
    k.add("where", "Where", [k.rng.random((9, 35)) > 0.5, k.normal(9, 35), k.normal(1, 35)], limit=EXACT)
    k.add("concat", "Concat", [k.normal(3, 17), k.normal(3, 5), k.normal(3, 33)], limit=EXACT, axis=1)
    k.add("pad", "Pad", [k.normal(5, 31)], [np.array([1, 3, 2, 6], np.int64)], limit=EXACT)
    k.add(
        "pad_reflect",
        "Pad",
        [k.normal(5, 31)],
        [np.array([1, 3, 2, 6], np.int64)],
        limit=EXACT,
        mode="reflect",
    )
    steps = [np.array(value, np.int64) for value in ([1, 40], [9, 2], [0, 1], [2, -3])]
    k.add("slice", "Slice", [k.normal(10, 45)], steps, limit=EXACT)
    k.add(
        "resize",
        "Resize",
        [k.normal(1, 24, 7, 9)],
        [np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)],
        mode="linear",
    )


def types(k):
    wide = np.concatenate([k.normal(90) * 300, [0, -0.0, 1e-7, 6e-8, 65504, 70000, np.inf, -np.inf, np.nan]])
    wide = wide.astype(np.float32)
    k.add("cast_to_half", "Cast", [wide], limit=EXACT, to=TensorProto.FLOAT16)
    k.add("cast_to_bfloat16", "Cast", [wide], limit=EXACT, then="Cast", to=TensorProto.BFLOAT16)
    k.add(
        "cast_from_half", "Cast", [wide.clip(-6e4, 6e4).astype(np.float16)], limit=EXACT, to=TensorProto.FLOAT
    )
    small = (k.normal(99) * 50).clip(-127, 127)  # in the range of every type
    for kind in ("INT8", "INT16", "INT32", "INT64", "DOUBLE", "BOOL"):
        k.add(f"cast_to_{kind.lower()}", "Cast", [small], limit=EXACT, to=getattr(TensorProto, kind))
    for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint32, np.uint64):
        x = k.integers(dtype, 77)
        k.add(f"cast_from_{np.dtype(dtype)}", "Cast", [x], limit=EXACT, to=TensorProto.FLOAT)
    for dtype in (np.int32, np.int64, np.uint8, np.int8):
        x, y = k.integers(dtype, 9, 35), np.maximum(np.abs(k.integers(dtype, 9, 35) // 3), 1).astype(dtype)
        for op in ("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Less", "Equal"):
            k.add(f"{op}_{np.dtype(dtype)}", op, [x, y], limit=EXACT)
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        k.add(op, op, [k.integers(np.int32, 77), k.integers(np.int32, 77)], limit=EXACT)
    for op in ("Add", "Mul", "Div", "Max"):
        pair = [k.normal(9, 35, dtype=np.float16), k.normal(9, 35, dtype=np.float16) + np.float16(4)]
        k.add(f"{op}_half", op, pair, limit=HALF_LIMIT)
    scale = [np.array(0.02, np.float32), np.array(3, np.uint8)]
    k.add("quantize", "QuantizeLinear", [k.normal(9, 35)], scale, limit=EXACT)
    k.add("dequantize", "DequantizeLinear", [k.integers(np.uint8, 9, 35)], scale)


def functions(k):
    """Over their range, with the values at its ends and those that are no numbers."""
    special = [0.0, -0.0, 1e-45, -1e-39, 1e-30, 1.0, -1.0, np.inf, -np.inf, np.nan]
    for op, low, high in [
        ("Exp", -104, 89), ("Log", 0, 1e30), ("Sin", -1000, 1000), ("Cos", -1000, 1000), ("Tan", -1.5, 1.5),
        ("Tanh", -12, 12), ("Sigmoid", -90, 90), ("Erf", -5, 5), ("Sqrt", 0, 1e30), ("Reciprocal", -9, 9),
        ("Asin", -1, 1), ("Acos", -1, 1), ("Atan", -50, 50), ("Sinh", -80, 80), ("Cosh", -80, 80),
        ("Asinh", -99, 99), ("Acosh", 1, 1e4), ("Atanh", -0.99, 0.99), ("Softplus", -90, 90),
        ("HardSwish", -5, 5), ("Softsign", -9, 9), ("Floor", -9, 9), ("Ceil", -9, 9), ("Round", -9, 9),
        ("Abs", -9, 9), ("Neg", -9, 9), ("Sign", -9, 9), ("Relu", -9, 9), ("Elu", -20, 9), ("Selu", -20, 9),
        ("IsNaN", -9, 9),
    ]:  # fmt: skip
        spread = np.linspace(low, high, 500)
        if op in ("Log", "Sqrt"):
            spread = np.geomspace(1e-38, high, 500)
        x = np.concatenate([spread, special]).astype(np.float32)
        if op == "Softplus":
            x = x[np.isfinite(x)]
        k.add(f"function_{op}", op, [x], limit=FUNCTION_LIMIT)
    k.add("function_Pow", "Pow", [np.abs(k.normal(9, 35)) * 9, k.normal(9, 35) * 3], limit=FUNCTION_LIMIT)
    x = np.concatenate([k.normal(90), special]).astype(np.float32)
    for op in ("Min", "Max"):
        k.add(f"{op}_special", op, [x, x[::-1].copy()], limit=EXACT)
    k.add(
        "clip", "Clip", [k.normal(9, 35)], [np.array(-0.5, np.float32), np.array(1, np.float32)], limit=EXACT
    )
    k.add("gelu", "Gelu", [k.normal(9, 35) * 3], limit=FUNCTION_LIMIT, opset=20)
    k.add("broadcast", "Add", [k.normal(7, 1, 33), k.normal(5, 1)])


def kernels():
    made = Kernels()
    for family in (products, convolutions, rows, moves, types, functions):
        family(made)
    return made.found

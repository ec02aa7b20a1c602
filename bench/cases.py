"""What is measured: real models with their inputs, and single kernels as small ONNX models."""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "models"))

from model_inputs import CASES  # noqa: E402

# model: which of its test inputs
MODELS = {
    "resnet18": "224",
    "resnet50": "224",
    "mobilenet_v2": "224",
    "mobilenet_v3_small": "224",
    "efficientnet_b0": "224",
    "vit_tiny": "224",
    "all-MiniLM-L6-v2": "1x128",
    "bert_base": "128",
    "gpt2": "1x64",
    "ch_PP-OCRv4_rec": "320",
    "ch_ppocr_mobile_v2.0_cls": "192",
    "magika": "one",
    "silero_vad_16k_op15": "later",
    "silero_vad": "later",
    "lstm_bidirectional": "64",
}


def one_op(op, shape, weights=None, inputs=("x",), opset=17, **attributes):
    """A model of one operator; `weights` are further constant inputs."""
    constants = [numpy_helper.from_array(value, f"w{index}") for index, value in enumerate(weights or [])]
    node = helper.make_node(
        op, [*inputs, *(constant.name for constant in constants)], ["y"], "the_node", **attributes
    )
    return model_of([node], [(name, shape) for name in inputs], constants, opset)


def model_of(nodes, inputs, constants, opset=17):
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "kernel", infos, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def chain(shape):
    """Eight elementwise operators in a row: relu((x + y) * sigmoid(x) - 0.5 * y) and a clip."""
    half = numpy_helper.from_array(np.array(0.5, np.float32), "half")
    six = numpy_helper.from_array(np.array(6.0, np.float32), "six")
    node = helper.make_node
    nodes = [
        node("Add", ["x", "y0"], ["a"]),
        node("Sigmoid", ["x"], ["s"]),
        node("Mul", ["a", "s"], ["m"]),
        node("Mul", ["y0", "half"], ["h"]),
        node("Sub", ["m", "h"], ["d"]),
        node("Relu", ["d"], ["r"]),
        node("Min", ["r", "six"], ["c"]),
        node("Tanh", ["c"], ["y"]),
    ]
    return model_of(nodes, [("x", shape), ("y0", shape)], [half, six])


def kernels():
    """name: model"""
    rng = np.random.default_rng(7)

    def weight(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    conv = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    return {
        "matmul_512": one_op("MatMul", [512, 512], [weight(512, 512)]),
        "matmul_128x768x768": one_op("MatMul", [128, 768], [weight(768, 768)]),
        "matmul_1x768x3072": one_op("MatMul", [1, 768], [weight(768, 3072)]),
        "conv3x3_64_64_56": one_op("Conv", [1, 64, 56, 56], [weight(64, 64, 3, 3)], **conv),
        "conv1x1_256_64_56": one_op("Conv", [1, 256, 56, 56], [weight(64, 256, 1, 1)]),
        "conv7x7_s2_3_64_224": one_op(
            "Conv", [1, 3, 224, 224], [weight(64, 3, 7, 7)], strides=[2, 2], pads=[3] * 4
        ),
        "depthwise3x3_96_56": one_op("Conv", [1, 96, 56, 56], [weight(96, 1, 3, 3)], group=96, **conv),
        "softmax_1536x128": one_op("Softmax", [1536, 128]),
        "layernorm_128x768": one_op(
            "LayerNormalization", [128, 768], [weight(768, 1)[:, 0], weight(768, 1)[:, 0]]
        ),
        "reduce_mean_64x3136": one_op("ReduceMean", [64, 3136], axes=[1]),
        "chain_1M": chain([1024, 1024]),
        "chain_64k": chain([256, 256]),
    }


def model_cases():
    """[(name, path, inputs)]"""
    found = []
    for name, case in MODELS.items():
        path = ROOT / ".cache" / "models" / f"{name}.onnx"
        found.append((name, path, CASES[name][case](np.random.default_rng(1))))
    return found


def kernel_cases(folder):
    found = []
    for name, model in kernels().items():
        path = pathlib.Path(folder) / f"{name}.onnx"
        onnx.save(model, path)
        rng = np.random.default_rng(1)
        inputs = {}
        for info in model.graph.input:
            shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
            inputs[info.name] = rng.standard_normal(shape).astype(np.float32)
        found.append((name, path, inputs))
    return found

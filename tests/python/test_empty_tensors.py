"""Tensors of many rows without an element: what computes them returns at once, with the right shape."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

N = 2**40
FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def i64(*values):
    return np.array(values, np.int64)


def one(*shape):
    return np.ones(shape, np.float32)


# Operator and attributes, shapes of the inputs that the run gives (dtype float32), constants, shapes of the results.
CASES = {
    "Relu": ({}, [(N, 0)], [], [(N, 0)]),
    "Add": ({}, [(N, 0), (1, 1)], [], [(N, 0)]),
    "Where": ({}, [(N, 0), (N, 0)], [np.array([True])], [(N, 0)]),
    "Cast": ({"to": INT}, [(0, N)], [], [(0, N)]),
    "Transpose": ({"perm": [1, 0, 2]}, [(N, 3, 0)], [], [(3, N, 0)]),
    "Concat": ({"axis": 1}, [(N, 0), (N, 0)], [], [(N, 0)]),
    "Split": ({"axis": 1, "num_outputs": 2}, [(N, 0)], [], [(N, 0), (N, 0)]),
    "Reshape": ({"allowzero": 1}, [(N, 0)], [i64(0, N)], [(0, N)]),
    "Expand": ({}, [(1, 0)], [i64(N, 0)], [(N, 0)]),
    "Tile": ({}, [(N, 0)], [i64(2, 3)], [(2 * N, 0)]),
    "Slice": ({}, [(N, 0)], [i64(5), i64(2**50), i64(0), i64(2)], [(2**39 - 2, 0)]),
    "Pad": ({}, [(N, 0)], [i64(1, 0, 1, 0)], [(N + 2, 0)]),
    "Pad reflected": ({"mode": "reflect"}, [(N, 0)], [i64(1, 0, 1, 0)], [(N + 2, 0)]),
    "Gather": ({"axis": 1}, [(N, 3, 0)], [i64(2, 0)], [(N, 2, 0)]),
    "Gather rows": ({}, [(N, 0)], [i64(7, N - 1)], [(2, 0)]),
    "GatherElements": ({"axis": 1}, [(N, 0)], [np.zeros((5, 0), np.int64)], [(5, 0)]),
    "GatherND": ({}, [(N, 0)], [i64(7, 3).reshape(2, 1)], [(2, 0)]),
    "ScatterElements": ({}, [(N, 0)], [np.zeros((1, 0), np.int64), one(1, 0)], [(N, 0)]),
    "ScatterND": ({}, [(N, 0)], [i64(7).reshape(1, 1), one(1, 0)], [(N, 0)]),
    "ReduceSum": ({}, [(N, 0)], [], [(1, 1)]),
    "ReduceMean": ({"keepdims": 0}, [(0, N, 0)], [i64(1)], [(0, 0)]),
    "ReduceMax": ({}, [(N, 5, 0)], [i64(1)], [(N, 1, 0)]),
    "ReduceL2": ({"keepdims": 0}, [(0, N, 0)], [i64(1, 2)], [(0,)]),
    "ArgMax": ({"axis": 1}, [(N, 4, 0)], [], [(N, 1, 0)]),
    "Softmax": ({"axis": 1}, [(N, 0)], [], [(N, 0)]),
    "Softmax rows": ({"axis": 0}, [(N, 0)], [], [(N, 0)]),
    "LogSoftmax": ({"axis": 1}, [(N, 4, 0)], [], [(N, 4, 0)]),
    "Hardmax": ({"axis": 1}, [(N, 4, 0)], [], [(N, 4, 0)]),
    "LayerNormalization": ({}, [(N, 0), (0,), (0,)], [], [(N, 0)]),
    "RMSNormalization": ({}, [(N, 0), (0,)], [], [(N, 0)]),
    "InstanceNormalization": ({}, [(N, 2, 0), (2,), (2,)], [], [(N, 2, 0)]),
    "GroupNormalization": ({"num_groups": 2}, [(N, 4, 0), (4,), (4,)], [], [(N, 4, 0)]),
    "BatchNormalization": ({}, [(N, 2, 0), (2,), (2,), (2,), (2,)], [], [(N, 2, 0)]),
    "LpNormalization": ({"axis": 1}, [(N, 4, 0)], [], [(N, 4, 0)]),
    "LRN": ({"size": 3}, [(N, 3, 0, 5)], [], [(N, 3, 0, 5)]),
    "CumSum": ({}, [(N, 0)], [np.array(1)], [(N, 0)]),
    "CumSum rows": ({}, [(N, 0)], [np.array(0)], [(N, 0)]),
    "TopK": ({"axis": 1}, [(N, 0)], [i64(0)], [(N, 0), (N, 0)]),
    "TopK of none": ({"axis": 1}, [(0, N)], [i64(2)], [(0, 2), (0, 2)]),
    "TopK rows": ({"axis": 1}, [(N, 4, 0)], [i64(2)], [(N, 2, 0), (N, 2, 0)]),
    "NonMaxSuppression": ({}, [(N, 0, 4), (N, 3, 0)], [i64(5)], [(0, 3)]),
    "NonZero": ({}, [(N, 0)], [], [(2, 0)]),
    "Compress": ({"axis": 0}, [(N, 0)], [np.array([True, False, True])], [(2, 0)]),
    "Unique": ({"axis": 1}, [(N, 0)], [], [(N, 0), (0,), (0,), (0,)]),
    "MatMul over nothing": ({}, [(N, 0), (0, 0)], [], [(N, 0)]),
    "MatMul batched": ({}, [(N, 3, 0), (N, 0, 0)], [], [(N, 3, 0)]),
    "Gemm": ({}, [(N, 0), (0, 0)], [], [(N, 0)]),
    "Einsum": ({"equation": "ij,ik->jk"}, [(N, 0), (N, 0)], [], [(0, 0)]),
    "Conv": ({}, [(0, 2, 2**20, 2**20 + 1)], [one(3, 2, 1, 1)], [(0, 3, 2**20, 2**20 + 1)]),
    "Conv fixed": ({}, [(0, 2, 2**20, 2**20)], [one(3, 2, 3, 3)], [(0, 3, 2**20 - 2, 2**20 - 2)]),
    "ConvTranspose": ({}, [(0, 2, 2**20, 2**20)], [one(2, 3, 3, 3)], [(0, 3, 2**20 + 2, 2**20 + 2)]),
    "MaxPool": ({"kernel_shape": [2, 2]}, [(N, 0, 4, 4)], [], [(N, 0, 3, 3)]),
    "AveragePool": ({"kernel_shape": [2, 2]}, [(N, 0, 4, 4)], [], [(N, 0, 3, 3)]),
    "GlobalAveragePool": ({}, [(N, 0, 4, 4)], [], [(N, 0, 1, 1)]),
    "DepthToSpace": ({"blocksize": 2}, [(N, 4, 0, 3)], [], [(N, 1, 0, 6)]),
    "Resize": ({}, [(N, 0, 4, 4)], [one(0), np.array([1, 1, 2, 2], np.float32)], [(N, 0, 8, 8)]),
    "GridSample": ({}, [(N, 0, 4, 4), (N, 3, 0, 2)], [], [(N, 0, 3, 0)]),
    "OneHot": ({}, [(N, 0)], [i64(3), one(2)], [(N, 0, 3)]),
    "Trilu": ({}, [(N, 0)], [], [(N, 0)]),
    "EyeLike": ({}, [(N, 0)], [], [(N, 0)]),
    "QuantizeLinear": ({}, [(N, 0)], [one()], [(N, 0)]),
    "Dropout": ({}, [(N, 0)], [], [(N, 0)]),
    "RandomNormalLike": ({}, [(N, 0)], [], [(N, 0)]),
    "Bernoulli": ({}, [(N, 0)], [], [(N, 0)]),
    "Mod": ({"fmod": 1}, [(N, 0), (N, 0)], [], [(N, 0)]),
}


def model_of(name, symbolic):
    attributes, shapes, constants, results = CASES[name]
    sizes = [
        [f"size{k}{d}" if symbolic and size in (0, N) else size for d, size in enumerate(s)]
        for k, s in enumerate(shapes)
    ]
    inputs = [helper.make_tensor_value_info(f"i{k}", FLOAT, s) for k, s in enumerate(sizes)]
    weights = [numpy_helper.from_array(value, f"c{k}") for k, value in enumerate(constants)]
    names = [i.name for i in inputs] + [w.name for w in weights]
    if name == "Where":
        names = names[-1:] + names[:-1]
    nodes = [helper.make_node(name.split()[0], names, [f"o{k}" for k in range(len(results))], **attributes)]
    outputs = [onnx.ValueInfoProto(name=f"o{k}") for k in range(len(results))]
    graph = helper.make_graph(nodes, "one", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_returns_at_once(bevel, tmp_path, name, symbolic):
    _, shapes, _, results = CASES[name]
    onnx.save(model_of(name, symbolic), tmp_path / "m.onnx")
    given = []
    for k, shape in enumerate(shapes):
        np.save(tmp_path / f"i{k}.npy", np.ones(shape, np.float32))
        given += ["--input", f"i{k}={tmp_path}/i{k}.npy"]
    bevel("run", tmp_path / "m.onnx", *given, "--output-dir", tmp_path, "--npy", "--threads", 1, timeout=20)
    for k, shape in enumerate(results):
        assert np.load(tmp_path / f"output_{k}.npy").shape == shape

"""Single operators and chains whose kernels take unusual forms, against onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper


def check(bevel, folder, nodes, shape, weights=None, dims=None, tolerance=1e-6):
    """Runs a model from "x" to "y"; the difference to onnxruntime is relative to the largest value."""
    graph = helper.make_graph(
        nodes,
        "kernel",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims or shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path = folder / "kernel.onnx"
    onnx.save(model, path)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) / 10
    np.save(folder / "x.npy", x)
    bevel("run", path, "--input", f"x={folder}/x.npy", "--output-dir", folder, "--npy", timeout=60)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    got = np.load(folder / "output_0.npy")
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * np.abs(expected).max(), strict=True)


@pytest.mark.parametrize("kind", ["add", "swish", "product of the last two"])
def test_value_used_twice_by_a_long_chain_is_computed_once(bevel, tmp_path, kind):
    nodes, last, before = [], "x", "x"
    for i in range(24):
        out = "y" if i == 23 else f"v{i}"
        if kind == "add":
            nodes.append(helper.make_node("Add", [last, last], [out]))
        elif kind == "swish":
            nodes.append(helper.make_node("Sigmoid", [last], [f"s{i}"]))
            nodes.append(helper.make_node("Mul", [last, f"s{i}"], [out]))
        else:
            nodes.append(helper.make_node("Add" if i % 2 else "Mul", [last, before], [out]))
        last, before = out, last
    check(bevel, tmp_path, nodes, [4, 6])


@pytest.mark.parametrize("shape", [[1, 17, 9], [1, 17, 8], [1, 5, 1], [3, 17, 9], [1, 1, 33]], ids=str)
def test_sum_over_the_first_axis(bevel, tmp_path, shape):
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    check(bevel, tmp_path, [node], shape, {"axes": np.array([0], np.int64)})


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("columns", [1, 8, 9, 17])
def test_matmul_of_little_depth(bevel, tmp_path, depth, columns):
    weight = np.random.default_rng(1).standard_normal((depth, columns)).astype(np.float32)
    check(bevel, tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], [17, depth], {"w": weight})


@pytest.mark.parametrize("channels", [1, 8, 9])
def test_depthwise_convolution_of_one_element(bevel, tmp_path, channels):
    weight = np.random.default_rng(1).standard_normal((channels, 1, 1, 1)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=channels)
    check(bevel, tmp_path, [node], [1, channels, 5, 7], {"w": weight})


@pytest.mark.parametrize("dims", [None, ["n", "c", "h", "w"]], ids=["static", "dynamic"])
def test_local_response_normalization(bevel, tmp_path, dims):
    check(bevel, tmp_path, [helper.make_node("LRN", ["x"], ["y"], size=3)], [1, 9, 5, 7], dims=dims)

"""No model is lost by a default schedule: programs whose register tiles once could not be lowered, and chains of operators
whose schedule once took exponential time."""

import json
import time

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def build(nodes, inputs, output, weights, opset=17):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*output)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def pool(op, **attrs):
    node = helper.make_node(op, ["x"], ["y"], kernel_shape=[3, 3], **attrs)
    return build([node], [("x", FLOAT, [1, 4, "h", "w"])], ("y", FLOAT, None), {}), {"x": normal(1, 4, 9, 11)}


def product():
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    inputs = [("x", FLOAT, [1, 12, "s", 64])]
    return build([node], inputs, ("y", FLOAT, None), {"w": normal(64, 64)}), {"x": normal(1, 12, 7, 64)}


def fused_convolution():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Mul", ["c", "s"], ["y"]),
    ]
    inputs = [("x", FLOAT, [1, 3, 32, "width"])]
    return build(nodes, inputs, ("y", FLOAT, None), {"w": normal(16, 3, 3, 3)}), {"x": normal(1, 3, 32, 45)}


def recurrent(op, hidden, time, batch):
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op]
    node = helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=hidden)
    weights = {"w": normal(1, gates * hidden, 2), "r": normal(1, gates * hidden, hidden)}
    return build([node], [("x", FLOAT, [time, batch, 2])], ("y", FLOAT, None), weights, 14), {
        "x": normal(4, 2, 2)
    }


def bisection(steps):
    nodes, lo, hi = [], "lo", "hi"
    for j in range(steps):
        nodes += [
            helper.make_node("Add", [lo, hi], [f"s{j}"]),
            helper.make_node("Div", [f"s{j}", "two"], [f"m{j}"]),
            helper.make_node("Gather", ["b", f"m{j}"], [f"v{j}"]),
            helper.make_node("GreaterOrEqual", [f"v{j}", "x"], [f"c{j}"]),
            helper.make_node("Add", [f"m{j}", "one"], [f"p{j}"]),
            helper.make_node("Where", [f"c{j}", lo, f"p{j}"], [f"l{j}"]),
            helper.make_node("Where", [f"c{j}", f"m{j}", hi], [f"h{j}"]),
        ]
        lo, hi = f"l{j}", f"h{j}"
    inputs = [("x", FLOAT, [4]), ("lo", INT64, [4]), ("hi", INT64, [4]), ("b", FLOAT, [33])]
    model = build(nodes, inputs, (lo, INT64, None), {"two": np.int64(2), "one": np.int64(1)})
    values = {
        "x": normal(4),
        "lo": np.zeros(4, np.int64),
        "hi": np.full(4, 32, np.int64),
        "b": np.linspace(-1, 1, 33).astype(np.float32),
    }
    return model, values


def residual(steps):
    nodes, value = [], "x"
    for j in range(steps):
        nodes += [
            helper.make_node("Tanh", [value], [f"t{j}"]),
            helper.make_node("Add", [value, f"t{j}"], [f"a{j}"]),
        ]
        value = f"a{j}"
    return build(nodes, [("x", FLOAT, [8])], (value, FLOAT, None), {}), {"x": normal(8)}


def compare(bevel, tmp_path, model, inputs, *options, **rest):
    data = model.SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    arguments = []
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        arguments += ["--input", f"{name}={tmp_path / name}.npy"]
    bevel("run", path, *arguments, "--npy", "--output-dir", tmp_path, *options, **rest)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    expected = session.run(None, inputs)[0]
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), expected, rtol=1e-5, atol=1e-5)
    return path


@pytest.mark.parametrize(
    "model",
    [
        lambda: pool("MaxPool"),
        lambda: pool("MaxPool", pads=[1, 1, 1, 1]),
        lambda: pool("AveragePool"),
        lambda: pool("LpPool"),
        product,
        fused_convolution,
    ],
    ids=["max_pool", "max_pool_padded", "average_pool", "lp_pool", "product", "fused_convolution"],
)
def test_register_tiles_with_batch_one_and_symbolic_sizes(bevel, tmp_path, model):
    compare(bevel, tmp_path, *model())


@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("hidden, time, batch", [(3, "t", 2), (16, "t", "b"), (17, 4, "b")])
def test_steps_of_a_length_that_only_the_run_knows(bevel, tmp_path, op, hidden, time, batch):
    """What one step computes is allocated inside the step: register tiles have constant sizes."""
    model, inputs = recurrent(op, hidden, time, batch)
    path = compare(bevel, tmp_path, model, inputs)
    for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        done = bevel("compile", path, "--target", level, "--json", "-o", tmp_path / "m.so")
        assert json.loads(done.stdout)["simpler_schedules"] == []


@pytest.mark.parametrize(
    "model", [lambda: bisection(12), lambda: residual(300)], ids=["bisection", "residual"]
)
def test_long_chains_take_no_long_time(bevel, tmp_path, model):
    begin = time.monotonic()
    compare(bevel, tmp_path, *model())
    assert time.monotonic() - begin < 60

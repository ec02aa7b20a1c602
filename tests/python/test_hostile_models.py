"""Damaged model files: the tool runs them or refuses them with exit code 3 and a message; no signal, no internal error."""

import random
import subprocess

import numpy as np
import pytest
from conftest import tool_path
from onnx import TensorProto, helper, numpy_helper

RUNS = 48


def model_bytes():
    """Weights, a subgraph, shape arithmetic, a reduction with axes as data."""
    branch = [
        helper.make_graph(
            [helper.make_node(op, ["p"], [f"{op}_out"])],
            op,
            [],
            [helper.make_tensor_value_info(f"{op}_out", TensorProto.FLOAT, ["n", 4, 5, 5])],
        )
        for op in ["Relu", "Sigmoid"]
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("If", ["flag"], ["r"], then_branch=branch[0], else_branch=branch[1]),
        helper.make_node("Shape", ["r"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "minus"], ["t"], axis=0),
        helper.make_node("Reshape", ["r", "t"], ["f"]),
        helper.make_node("ReduceSum", ["f", "axes"], ["y"], keepdims=0),
    ]
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.standard_normal((4, 3, 3, 3), dtype=np.float32),
        "b": np.ones(4, np.float32),
        "zero": np.array([0], np.int64),
        "minus": np.array([-1], np.int64),
        "axes": np.array([1], np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "damaged",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 10, 10]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def damaged(data, seed):
    rng = random.Random(seed)
    kind, data = seed % 4, bytearray(data)
    if kind == 0:
        return bytes(data[: rng.randrange(len(data))])
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data))
        if kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            data[at] ^= 1 << rng.randrange(8)
        else:
            length = rng.randrange(1, 9)
            data[at : at + length] = b"" if rng.random() < 0.5 else bytes(data[at : at + length]) * 2
    return bytes(data)


@pytest.fixture(scope="module")
def whole():
    return model_bytes()


def run(path):
    command = [str(tool_path()), "run", str(path), "--random", "1", "--threads", "1"]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)


def test_the_whole_model_runs(whole, tmp_path):
    (tmp_path / "m.onnx").write_bytes(whole)
    assert run(tmp_path / "m.onnx").returncode == 0


@pytest.mark.parametrize("first", range(0, RUNS, 8))
def test_damaged_models(whole, first, tmp_path):
    for seed in range(first, first + 8):
        path = tmp_path / f"{seed}.onnx"
        path.write_bytes(damaged(whole, seed))
        result = run(path)
        assert result.returncode in (0, 3), f"seed {seed}: exit code {result.returncode}\n{result.stderr}"
        if result.returncode == 3:
            assert result.stderr.count("error:") == 1, f"seed {seed}:\n{result.stderr}"


def ranked_models(rank):
    """A tensor of that many dimensions as an input, a weight and a result."""
    ones, value = [1] * rank, helper.make_tensor_value_info
    weight = helper.make_tensor("w", TensorProto.FLOAT, ones, [1.0])
    shape = numpy_helper.from_array(np.array(ones, np.int64), "s")
    plain = value("x", TensorProto.FLOAT, [1])
    models = {
        "input": ([helper.make_node("Relu", ["x"], ["y"])], value("x", TensorProto.FLOAT, ones), []),
        "weight": ([helper.make_node("Add", ["x", "w"], ["y"])], plain, [weight]),
        "result": ([helper.make_node("Reshape", ["x", "s"], ["y"])], plain, [shape]),
    }
    opsets = [helper.make_opsetid("", 17)]
    for name, (nodes, x, weights) in models.items():
        graph = helper.make_graph(nodes, name, [x], [value("y", TensorProto.FLOAT, None)], weights)
        yield name, helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize(("rank", "code"), [(64, 0), (65, 3), (200, 3)])
def test_rank_is_limited_at_import(rank, code, tmp_path):
    for name, data in ranked_models(rank):
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(data)
        result = subprocess.run(
            [str(tool_path()), "inspect", str(path)], capture_output=True, text=True, timeout=20
        )
        assert result.returncode == code, f"{name}: {result.stderr}"
        assert (f"{rank} dimensions; at most 64" in result.stderr) == (code == 3), result.stderr


def test_names_of_many_nodes_take_linear_time(tmp_path):
    """50,000 nodes whose results ask for the same names; a search from the first suffix each would take minutes."""
    count, value = 50_000, helper.make_tensor_value_info
    nodes = [helper.make_node("Relu", [f"x{k}"], [f"x{k + 1}"]) for k in range(count)]
    ends = [value(name, TensorProto.FLOAT, [4]) for name in ("x0", f"x{count}")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "chain.onnx"
    path.write_bytes(model.SerializeToString())
    result = subprocess.run(
        [str(tool_path()), "inspect", str(path)], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr

"""Debug information of a model library: kernels, their ONNX nodes and the lines of the printed program."""

import re
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def dump(library, *options):
    command = ["llvm-dwarfdump-19", *options, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def two_layers(path):
    weights = {f"w{i}": np.ones((9, 9), np.float32) for i in range(2)}
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], name="/first/MatMul"),
        helper.make_node("Relu", ["a"], ["b"], name="/first/Relu"),
        helper.make_node("MatMul", ["b", "w1"], ["c"], name="/second/MatMul"),
        helper.make_node("Softmax", ["c"], ["y"], name="/second/Softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 9])],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def test_library_names_kernels_nodes_and_lines(bevel, tmp_path):
    two_layers(tmp_path / "m.onnx")
    library = tmp_path / "m.so"
    bevel("compile", tmp_path / "m.onnx", "-o", library)
    names = set(re.findall(r'DW_AT_name\s*\("(.*)"\)', dump(library, "--debug-info")))
    assert {"/first/MatMul", "/first/Relu", "/second/MatMul", "/second/Softmax"} <= names
    kernels = [name for name in names if re.search(r"\[.*/first/MatMul.*/first/Relu.*\]", name)]
    assert kernels, names

    # Each kernel has a file of its own, the program as it is printed, and its code is on several lines of it.
    tables = dump(library, "--debug-line").split("debug_line[")[1:]
    for table in tables:
        assert re.search(r'name: "\w+\.bevel"', table)
        assert len(set(re.findall(r"^0x[0-9a-f]{16}\s+(\d+)", table, re.MULTILINE))) >= 3
    assert len(tables) >= 2

    bevel("compile", tmp_path / "m.onnx", "-o", library, "--no-debug")
    assert "DW_AT_name" not in dump(library, "--debug-info")

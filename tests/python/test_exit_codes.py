"""Exit codes of every command (0 ran, 1 a fault of the tool, 2 wrong usage, 3 refused), and that --json prints JSON."""

import json
import os
import resource

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

GRAPH = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), b: R.Tensor((3,), "float32")) -> R.Tensor(("n", 3), "float32"):
        n = T.int64()
        with R.dataflow():
            lv = R.add(x, b)
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv
"""

PROGRAM = """
@T.prim_func
def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
"""

TRACE = """
b = sch.get_sblock(name="B")
i, = sch.get_loops(block=b)
i0, i1 = sch.split(loop=i, factors=[2, 4])
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "graph.py").write_text(GRAPH)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "trace.py").write_text(TRACE)
    (tmp_path / "illegal.py").write_text(TRACE.replace("[2, 4]", "[2, 3]"))
    (tmp_path / "bad_trace.py").write_text("b = sch.get_sblock(\n")
    (tmp_path / "bad.py").write_text(GRAPH.replace("R.add(x, b)", "R.add(x, c)"))
    (tmp_path / "unknown_op.py").write_text(GRAPH.replace("R.add(x, b)", "R.frobnicate(x, b)"))
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "outside.py").write_text(PROGRAM.replace("A[vi]", "A[vi + 1000000000]"))
    (tmp_path / "wrong_type.py").write_text(GRAPH.replace("lv = ", 'lv: R.Tensor((n, 4), "float32") = '))
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x09\xff\xff\xff")
    batch = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xy"]
    named = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "named", batch[:1], batch[1:])
    onnx.save(helper.make_model(named, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "named.onnx")
    sizes = numpy_helper.from_array(np.array([2**40], np.int64), "sizes")
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])
    huge = helper.make_graph(
        [helper.make_node("ConstantOfShape", ["sizes"], ["y"])], "huge", [], [result], [sizes]
    )
    onnx.save(helper.make_model(huge, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "huge.onnx")
    os.mkfifo(tmp_path / "pipe.so")
    (tmp_path / "link.so").symlink_to("linked.so")
    (tmp_path / "bad.npy").write_bytes(b"no numbers")
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    np.save(tmp_path / "b.npy", np.ones(3, np.float32))
    np.save(tmp_path / "wide.npy", np.ones((2, 4), np.float32))
    np.save(tmp_path / "ints.npy", np.ones((2, 3), np.int32))
    (tmp_path / "file").write_text("")
    return tmp_path


GIVEN = "--input x=x.npy --input b=b.npy"

RAN = [
    "--help",
    "--version",
    *[
        f"{command} --help"
        for command in ["run", "compile", "bench", "opt", "inspect", "explain", "ops", "docs"]
    ],
    f"run graph.py {GIVEN}",
    "run graph.py --random 3 --dim n=4",
    "run program.py --random 3 --schedule trace.py",
    "run program.py --random 3 --interpret",
    "compile graph.py -o graph.so",
    "compile graph.py --dump-dir stages",
    "bench graph.py --seconds 0.01",
    "bench graph.py --seconds 0.01 --profile",
    "bench program.py --seconds 0.01",
    "opt graph.py --passes legalize,fuse",
    "opt program.py --schedule trace.py",
    "opt --list",
    "inspect graph.py",
    "inspect named.onnx --dim batch=3",
    "inspect named.onnx --shape x=2x3",
    "compile graph.py -o link.so",
    "explain graph.py",
    "explain program.py --traces",
    "ops",
    "ops --onnx",
    "docs steps",
]

WRONG_USAGE = [
    "",
    "frob",
    "run",
    "run graph.py --frob",
    "run graph.py --random x",
    "run graph.py --threads -1",
    "run graph.py --dim n",
    "run graph.py --dim n=x",
    "run graph.py --dim n=-1 --random 1",
    "run graph.py --random 1 --dim m=3",
    "run program.py --random 1 --dim n=3",
    "inspect named.onnx --dim rows=3",
    "compile named.onnx -o m.so --dim rows=3",
    "compile named.onnx -o m.so --shape z=1x2",
    "compile graph.py -o m.so --shape x=1x3",
    "compile graph.py -o m.so --compile-threads -5",
    "run graph.py --target vax",
    "run graph.py --input x",
    "run graph.py --input y=x.npy",
    "run graph.py --function other",
    "run program.py --input C=x.npy",
    "compile graph.py",
    "compile graph.py -o graph.exe",
    "bench graph.py --seconds x",
    "bench program.py --profile",
    "opt graph.py --passes frob",
    "opt",
    "opt program.py --passes apply_trace",
    "inspect",
    "explain",
    "docs",
    "docs frob",
]

REFUSED = [
    "run none.onnx",
    "run bad.onnx",
    "run bad.py",
    "run unknown_op.py",
    "run empty.py",
    "run graph.py",
    "run graph.py --input x=none.npy --input b=b.npy",
    "run graph.py --input x=bad.npy --input b=b.npy",
    "run graph.py --input x=wide.npy --input b=b.npy",
    "run graph.py --input x=ints.npy --input b=b.npy",
    "run graph.py --input-dir none",
    "run graph.py --random 1 --dim n=9223372036854775807",
    "run graph.py --random 1 --dim n=1000000000000",
    "run huge.onnx",
    "inspect named.onnx --dim batch=-3",
    "compile graph.py -o pipe.so",
    f"run graph.py {GIVEN} --output-dir file/out",
    "run program.py --input A=x.npy",
    "run program.py --schedule illegal.py",
    "run program.py --schedule bad_trace.py",
    "run program.py --schedule none.py",
    "compile none.py -o m.so",
    "compile graph.py -o none/m.so",
    "compile graph.py --dump-dir file/stages",
    "bench bad.onnx",
    "bench graph.py --input x=wide.npy",
    "opt bad.py",
    "opt graph.py --expect program.py",
    "opt program.py --schedule illegal.py",
    "inspect bad.onnx",
    "inspect bad.py",
    "explain unknown_op.py",
    *[
        f"{command} {file}"
        for file in ["outside.py", "wrong_type.py"]
        for command in ["run", "run --interpret", "compile -o m.so", "bench", "opt", "inspect", "explain"]
    ],
]


@pytest.mark.parametrize("arguments", RAN)
def test_ran(bevel, folder, arguments):
    result = bevel(*arguments.split(), cwd=folder)
    assert (result.stdout or "compile" in arguments) and "error" not in result.stderr


@pytest.mark.parametrize("arguments", WRONG_USAGE)
def test_wrong_usage(bevel, folder, arguments):
    assert bevel(*arguments.split(), code=2, cwd=folder).stderr


@pytest.mark.parametrize("arguments", REFUSED)
def test_refused(bevel, folder, arguments):
    result = bevel(*arguments.split(), code=3, cwd=folder)
    assert "error: " in result.stderr


def test_fault_of_the_tool(bevel, tmp_path):
    """A system that gives no memory is nobody's wrong model; a broken assertion ends with the same code."""

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (300 << 20, 300 << 20))

    (tmp_path / "large.py").write_text("""@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((100000000,), "float32")
    for i in range(100000000):
        with T.sblock("B"):
            vi = T.axis.spatial(100000000, i)
            B[vi] = A[vi % 8]
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi * 100]
""")
    run = ["run", "large.py", "--random", "1", "--interpret"]
    assert "out of memory" in bevel(*run, code=1, cwd=tmp_path, preexec_fn=limit).stderr


JSON = ["run", "compile", "bench", "opt", "inspect", "explain"]


@pytest.mark.parametrize("command", JSON)
def test_json(bevel, folder, command):
    options = {
        "run": GIVEN.split(),
        "compile": ["-o", "m.so"],
        "bench": ["--seconds", "0.01", "--profile"],
        "opt": ["--passes", "legalize"],
    }.get(command, [])
    assert json.loads(bevel(command, "graph.py", *options, "--json", cwd=folder).stdout)
    for model, code, name in [("bad.py", 3, "invalid"), ("none.py", 3, "io"), ("graph.py", 2, "usage")]:
        wrong = ["--target", "vax"] if code == 2 else []
        error = json.loads(bevel(command, model, *wrong, *options, "--json", code=code, cwd=folder).stdout)[
            "error"
        ]
        assert error["code"] == name and error["message"]
    error = json.loads(bevel(command, "--frob", "--json", code=2, cwd=folder).stdout)["error"]
    assert error["code"] == "usage" and error["message"]


def test_json_of_lists(bevel, folder):
    assert len(json.loads(bevel("ops", "--json").stdout)["operators"]) > 50
    assert {"name", "doc", "group"} <= set(json.loads(bevel("opt", "--list", "--json").stdout)["passes"][0])
    value = json.loads(bevel("run", "graph.py", *GIVEN.split(), "--json", cwd=folder).stdout)["outputs"][0][
        "value"
    ]
    assert value == {"dtype": "float32", "shape": [2, 3], "values": [2.0] * 6}
    bench = json.loads(bevel("bench", "program.py", "--seconds", "0.01", "--json", cwd=folder).stdout)
    assert bench["function"] == "scale" and bench["kernels"] == 1 and bench["runs"] >= 3

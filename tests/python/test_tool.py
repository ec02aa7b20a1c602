"""The command line tool: exit codes, inputs and outputs by file, libraries that a C program loads."""

import json
import subprocess
import time

import numpy as np
import onnx
import pytest
from conftest import tool_path
from onnx import TensorProto, helper, numpy_helper

ADD_RELU = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", 5), dtype="float32"), y: R.Tensor((5,), dtype="float32")
    ) -> R.Tensor(("n", 5), dtype="float32"):
        n = T.int64()
        with R.dataflow():
            lv: R.Tensor((n, 5), dtype="float32") = R.add(x, y)
            gv: R.Tensor((n, 5), dtype="float32") = R.nn.relu(lv)
            R.output(gv)
        return gv
"""

SCALE = """
@T.prim_func
def scale(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
    for i in range(7):
        with T.sblock("B"):
            v = T.axis.spatial(7, i)
            B[v] = A[v] * T.float32(2)
"""


def gemm_model(path, transposed=False):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((5, 9) if transposed else (9, 5), dtype=np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="first", transB=int(transposed)),
            helper.make_node("Relu", ["h"], ["y"], name="second"),
        ],
        "gemm",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 9]),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, [5]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 5])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.ones(5, np.float32), "b")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return weight.T if transposed else weight


def test_text_module_with_numpy_files(bevel, tmp_path):
    (tmp_path / "m.py").write_text(ADD_RELU)
    x = np.linspace(-3, 3, 15, dtype=np.float32).reshape(3, 5)
    y = np.arange(5, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    for options in [[], ["--no-opt"]]:
        bevel(
            "run",
            tmp_path / "m.py",
            "--input",
            f"x={tmp_path}/x.npy",
            "--input",
            f"y={tmp_path}/y.npy",
            "--output-dir",
            tmp_path / "out",
            "--npy",
            *options,
        )
        np.testing.assert_array_equal(
            np.load(tmp_path / "out/output_0.npy"), np.maximum(x + y, 0), strict=True
        )


@pytest.mark.parametrize("options", [[], ["--interpret"], ["--no-opt"]])
def test_tensor_program(bevel, tmp_path, options):
    (tmp_path / "p.py").write_text(SCALE)
    x = np.arange(7, dtype=np.float32)
    np.save(tmp_path / "input_0.npy", x)
    out = tmp_path / "out"
    bevel(
        "run",
        tmp_path / "p.py",
        "--function",
        "scale",
        "--input-dir",
        tmp_path,
        "--output-dir",
        out,
        *options,
    )
    np.testing.assert_array_equal(np.load(out / "output_0.npy"), x, strict=True)
    np.testing.assert_array_equal(np.load(out / "output_1.npy"), 2 * x, strict=True)


@pytest.mark.parametrize("given", [False, True])
def test_input_dir_counts_initialised_inputs(bevel, tmp_path, given):
    weight = gemm_model(tmp_path / "m.onnx")
    x = np.linspace(-1, 1, 18, dtype=np.float32).reshape(2, 9)
    bias = np.full(5, -2, np.float32) if given else np.ones(5, np.float32)
    (tmp_path / "input_0.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    if given:
        (tmp_path / "input_1.pb").write_bytes(numpy_helper.from_array(bias).SerializeToString())
    bevel("run", tmp_path / "m.onnx", "--input-dir", tmp_path, "--output-dir", tmp_path / "out")
    proto = TensorProto.FromString((tmp_path / "out/output_0.pb").read_bytes())
    assert proto.name == "y"
    np.testing.assert_allclose(
        numpy_helper.to_array(proto), np.maximum(x @ weight + bias, 0), atol=1e-5, strict=True
    )


def test_malformed_sequence_file(bevel, tmp_path):
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "sequence",
        [helper.make_value_info("x", kind)],
        [helper.make_value_info("y", kind)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    (tmp_path / "input_0.pb").write_bytes(b"\x18\x01")  # a number where a tensor is expected
    shown = bevel("run", tmp_path / "m.onnx", "--input-dir", tmp_path, code=3).stderr
    assert "malformed protocol buffer: a field has the wrong type" in shown


def test_exit_codes(bevel, tmp_path):
    gemm_model(tmp_path / "m.onnx")
    assert "Usage" in bevel("run", "--help").stdout
    bevel("run", code=2)
    bevel("run", tmp_path / "m.onnx", "--input", "nonsense", code=2)
    bevel("run", tmp_path / "m.onnx", "--target", "vax", code=2)
    assert "no such" in bevel("run", tmp_path / "none.onnx", code=3).stderr.lower()
    (tmp_path / "bad.onnx").write_bytes((tmp_path / "m.onnx").read_bytes()[:-7])
    assert "error" in bevel("run", tmp_path / "bad.onnx", code=3).stderr
    assert "'x'" in bevel("run", tmp_path / "m.onnx", code=3).stderr  # not set
    np.save(tmp_path / "x.npy", np.zeros((2, 8), np.float32))
    message = bevel("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.npy", code=3).stderr
    assert "9" in message and "8" in message
    error = json.loads(bevel("inspect", tmp_path / "bad.onnx", "--json", code=3).stdout)
    assert error["error"]["code"] == "invalid"


def test_unsupported_operators_are_listed_together(bevel, tmp_path):
    nodes = [
        helper.make_node("Mystery", ["x"], ["a"], name="one", domain="some.where"),
        helper.make_node("Riddle", ["a"], ["y"], name="two", domain="some.where"),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("some.where", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]), opset_imports=opsets)
    onnx.save(model, tmp_path / "m.onnx")
    message = bevel("run", tmp_path / "m.onnx", code=3).stderr
    assert "Mystery" in message and "Riddle" in message


def test_inspect_explain_bench(bevel, tmp_path):
    gemm_model(tmp_path / "m.onnx")
    seen = json.loads(bevel("inspect", tmp_path / "m.onnx", "--json").stdout)
    assert seen["functions"][0]["inputs"][0]["name"] == "x" and seen["opsets"] == {"": 17}
    explained = json.loads(bevel("explain", tmp_path / "m.onnx", "--json").stdout)
    assert any("first" in call["nodes"] and "second" in call["nodes"] for call in explained["calls"])
    assert explained["schedules"]
    bench = json.loads(
        bevel(
            "bench", tmp_path / "m.onnx", "--seconds", "0.1", "--profile", "--json", "--dim", "batch=4"
        ).stdout
    )
    assert bench["min_ms"] <= bench["median_ms"] <= bench["p99_ms"] and bench["profile"]
    assert "Gemm" in bevel("ops", "--onnx").stdout


def test_a_killed_compile_leaves_nothing(bevel, tmp_path):
    weight = numpy_helper.from_array(np.ones((1024, 1024), np.float32), "w")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1024]) for name in "xy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "big", [x], [y], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")

    command = [tool_path(), "compile", tmp_path / "m.onnx", "-o", tmp_path / "m.so", "--no-cache"]
    for k in range(12):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(0.03 * k)
        process.kill()
        process.wait()
        assert {path.name for path in tmp_path.iterdir()} <= {"m.onnx", "m.so", "m.h"}


def test_profile_of_symbolic_shapes(bevel, tmp_path):
    """Work and traffic of kernels with symbolic dimensions are counted from the dimensions of the run."""
    gemm_model(tmp_path / "m.onnx")
    x = np.ones((4096, 9), np.float32)
    np.save(tmp_path / "x.npy", x)
    arguments = ["bench", tmp_path / "m.onnx", "--seconds", "0.1", "--profile", "--json"]

    def gemm(*more):
        rows = json.loads(bevel(*arguments, *more).stdout)["profile"]
        (row,) = [row for row in rows if "first" in row["nodes"]]
        return row

    symbolic, static = gemm("--input", f"x={tmp_path / 'x.npy'}"), gemm("--dim", "batch=4096")
    for row in symbolic, static:
        assert row["roofline"] > 0
    for rate in "gflops", "gbytes_per_s":  # of one call
        assert symbolic[rate] * symbolic["ms"] == pytest.approx(static[rate] * static["ms"], rel=0.02)


def test_dump_dir_and_opt(bevel, tmp_path):
    gemm_model(tmp_path / "m.onnx")
    bevel("compile", tmp_path / "m.onnx", "--dump-dir", tmp_path / "dump")
    order = (tmp_path / "dump" / "order").read_text().split()
    stages = [tmp_path / "dump" / name for name in order]
    assert set(stages) == set((tmp_path / "dump").glob("*.txt"))
    assert order[0] == "input.txt" and "plan_memory.txt" in order and order[-1] == "plan_workspace.txt"
    for stage in stages:  # each is read again, with its constants beside it, and printed as it was
        bevel("opt", stage, "-o", tmp_path / "again.txt")
        assert (tmp_path / "again.txt").read_text() == stage.read_text()
    text = bevel("opt", tmp_path / "m.onnx", "--passes", "fold_constants,legalize,fuse").stdout
    assert "call_tir" in text and "fused" in text
    assert "fuse" in bevel("opt", "--list").stdout
    assert "fuse" in bevel("opt", tmp_path / "m.onnx", "--passes", "fuze", code=2).stderr


def test_passes_that_a_compile_can_do_without(bevel, tmp_path):
    gemm_model(tmp_path / "m.onnx")

    def values(*options):
        out = json.loads(bevel("run", tmp_path / "m.onnx", "--random", 1, "--json", *options).stdout)
        return np.array(out["outputs"][0]["value"]["values"], dtype=float)

    whole = values()
    rows = json.loads(bevel("opt", "--list", "--json").stdout)["passes"]
    optional = {"fast_math", "apply_trace", "interpret_programs", "lower"}  # not of an ordinary compile
    names = [r["name"] for r in rows if r["group"] != "check" and r["name"] not in optional]
    needed = {r["name"] for r in rows if r["needed"]}
    assert {"legalize", "plan_memory", "vectorize_loops"} <= needed and len(needed) < len(names) / 2
    for name in names:
        if name in needed:
            bevel("run", tmp_path / "m.onnx", "--random", 1, "--without", name, code=2)
        else:
            np.testing.assert_allclose(values("--without", name), whole, rtol=1e-5, atol=1e-6)


MAIN_C = """
#include "my_model.h"
#include <stdio.h>
int main(void) {
  float x[2 * 9];
  for (int i = 0; i < 18; ++i) x[i] = (float)i / 17;
  int64_t shape[2] = {2, 9};
  DLTensor input = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  bevel_model* model;
  bevel_instance* run;
  if (my_model_load(&model) || bevel_instance_create(model, NULL, &run) || bevel_set_input(run, 0, &input) ||
      bevel_run(run)) {
    fprintf(stderr, "%s\\n", bevel_last_error());
    return 1;
  }
  const DLTensor* y = bevel_output(run, 0);
  for (int i = 0; i < 10; ++i) printf("%.9g\\n", ((const float*)y->data)[i]);
  bevel_instance_release(run);
  bevel_model_release(model);
  return 0;
}
"""


def test_library_in_a_c_program(bevel, root, tmp_path):
    library = next(root.glob("build/libbevel_runtime.so"), None)
    if library is None:
        pytest.fail("libbevel_runtime.so is not built: run ./dev build", pytrace=False)
    weight = gemm_model(tmp_path / "m.onnx", transposed=True)
    bevel("compile", tmp_path / "m.onnx", "-o", tmp_path / "my-model.so")
    header = tmp_path / "my-model.h"
    header.rename(tmp_path / "my_model.h")
    (tmp_path / "main.c").write_text(MAIN_C)
    command = [
        "cc",
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "main.c",
        "-o",
        "main",
        f"-I{root}/include",
        "-I.",
    ]
    command += ["-L.", "-l:my-model.so", str(library), f"-Wl,-rpath,{library.parent}:{tmp_path}"]
    subprocess.run(command, cwd=tmp_path, check=True)
    result = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    got = np.array([float(line) for line in result.stdout.split()], np.float32).reshape(2, 5)
    x = (np.arange(18, dtype=np.float32) / np.float32(17)).reshape(2, 9)
    np.testing.assert_allclose(got, np.maximum(x @ weight + 1, 0), atol=1e-5, strict=True)


def test_interpreter_runs_the_text_as_written(bevel, tmp_path):
    """Rounded sums tell the order: the default schedule of this program swaps the two loops of the sum."""
    (tmp_path / "sum.py").write_text("""
@T.prim_func
def main(A: T.Buffer((8, 3, 5), "float32"), W: T.Buffer((5, 3, 32), "float32"), C: T.Buffer((8, 32), "float32")):
    for i, j, k0, k1 in T.grid(8, 32, 5, 3):
        with T.sblock("C"):
            vi, vj, v0, v1 = T.axis.remap("SSRR", [i, j, k0, k1])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, v1, v0] * W[v0, v1, vj]
""")
    random = np.random.default_rng(0)
    a = random.standard_normal((8, 3, 5), np.float32)
    w = random.standard_normal((5, 3, 32), np.float32)
    np.save(tmp_path / "input_0.npy", a)
    np.save(tmp_path / "input_1.npy", w)
    expected = np.zeros((8, 32), np.float32)
    for k0 in range(5):
        for k1 in range(3):
            expected += a[:, k1, k0, None] * w[k0, k1]
    bevel("run", "sum.py", "--interpret", "--input-dir", ".", "--output-dir", "out", cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "out" / "output_2.npy"), expected)


INTERPRETED = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.handle, s: T.int64, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n, 3), "float32")
        Y = T.match_buffer(y, (n, 3), "float32")
        for i, j in T.grid(n, 3):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi + OFFSET, vj] * T.Cast("float32", s)

    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(("n", 3), "float32"):
        n = T.int64()
        y = R.call_tir(Module.scale, (x,), out_sinfo=R.Tensor((n, 3), dtype="float32"), tir_vars=R.shape([n]))
        if c:
            z = R.nn.relu(y)
        else:
            z = R.negative(y)
        return z
"""


@pytest.mark.parametrize("condition", [True, False])
def test_interpreter_runs_graph_functions(bevel, tmp_path, condition):
    (tmp_path / "graph.py").write_text(INTERPRETED.replace("OFFSET", "0"))
    x = np.random.default_rng(0).standard_normal((4, 3), np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "c.npy", np.array(condition))
    bevel(
        "run",
        "graph.py",
        "--interpret",
        "--input",
        "x=x.npy",
        "--input",
        "c=c.npy",
        "--output-dir",
        "out",
        "--npy",
        cwd=tmp_path,
    )
    expected = np.maximum(x * 4, 0) if condition else -(x * 4)
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "output_0.npy"), expected, strict=True)


def test_interpreter_names_the_fault_of_a_graph(bevel, tmp_path):
    (tmp_path / "graph.py").write_text(INTERPRETED.replace("OFFSET", "(vi // 1000 + 1)"))
    message = bevel("run", "graph.py", "--interpret", "--random", "1", code=3, cwd=tmp_path).stderr
    assert "while interpreting 'scale'" in message and "X" in message


@pytest.mark.parametrize("options", [[], ["--interpret"]])
def test_scalar_parameters(bevel, tmp_path, options):
    (tmp_path / "scalars.py").write_text("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), s: T.int32, q: T.uint8, B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * s + T.Cast("int32", q)
""")
    np.save(tmp_path / "a.npy", np.arange(4, dtype=np.int32))
    run = ["run", "scalars.py", *options, "--input", "A=a.npy", "--output-dir", "out"]
    bevel(*run, "--dim", "s=-3", "--dim", "q=7", cwd=tmp_path)
    assert np.load(tmp_path / "out" / "output_1.npy").tolist() == [7, 4, 1, -2]
    assert "--dim q=N" in bevel(*run, "--dim", "s=1", cwd=tmp_path, code=2).stderr
    assert "300 does not fit" in bevel(*run, "--dim", "s=1", "--dim", "q=300", cwd=tmp_path, code=2).stderr


def test_tuples_in_results(bevel, tmp_path):
    (tmp_path / "tuples.py").write_text("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tuple(R.Tensor((2,), "float32"))):
        y = R.negative(x)
        return (x, (y,))
""")
    np.save(tmp_path / "x.npy", np.array([1, 2], np.float32))
    shown = json.loads(bevel("run", "tuples.py", "--input", "x=x.npy", "--json", cwd=tmp_path).stdout)
    first, second = (output["value"] for output in shown["outputs"])
    assert first["values"] == [1, 2]
    assert second[0]["values"] == [-1, -2]

"""The course's programs (examples/course): the text forms by the tool, the C++ forms by build/course, against NumPy."""

import json
import re
import subprocess

import numpy as np
import pytest
from conftest import tool_path


@pytest.fixture
def course(root):
    return root / "examples" / "course"


def load(course, *names):
    return [np.load(course / "data" / f"{name}.npy") for name in names]


def network(course, x):
    w0, b0, w1, b1 = load(course, "w0", "b0", "w1", "b1")
    return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1


def inputs(course, *names):
    return [part for name in names for part in ("--input", f"{name}={course}/data/{name}.npy")]


PARAMETERS = ["w0", "b0", "w1", "b1"]


@pytest.mark.parametrize("number", [2, 3, 7, 8, 9, 10, 11])
def test_cpp_program(bevel, course, number):
    tool = tool_path().parent / "course"
    assert tool.exists(), f"{tool} is not built: run ./dev build"
    result = subprocess.run([tool, str(number)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    if number in (2, 3, 7):
        assert "structurally equal" in result.stdout
    if number in (3, 7):
        assert re.search(r"\d+\.\d x|\d+\.\dx", result.stdout), "a timing table"
    if number >= 8:
        right, total = map(int, re.search(r"(\d+) of (\d+) pictures", result.stdout).groups())
        x = load(course, "images")[0].reshape(total, -1).astype(np.float32) / 255
        assert right == np.sum(network(course, x).argmax(axis=1) == load(course, "labels")[0])
        assert right >= 0.9 * total


@pytest.mark.parametrize("function", ["mm_relu", "mm_relu_remap", "main"])
@pytest.mark.parametrize("options", [[], ["--no-opt"]])
def test_mm_relu(bevel, course, tmp_path, function, options):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 128, 128), dtype=np.float32)
    np.save(tmp_path / "input_0.npy", a)
    np.save(tmp_path / "input_1.npy", b)
    out = tmp_path / "out"
    arguments = ["--function", function, "--input-dir", tmp_path, "--output-dir", out, "--npy"]
    bevel("run", course / "p02_mm_relu.py", *arguments, *options)
    got = np.load(out / ("output_0.npy" if function == "main" else "output_2.npy"))
    np.testing.assert_allclose(got, np.maximum(a @ b, 0), atol=1e-4, strict=True)


@pytest.mark.parametrize("options", [["--no-opt"], ["--interpret"], ["--no-opt", "--threads", "2"]])
def test_transform_by_a_trace_file(bevel, course, tmp_path, options):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 128, 128), dtype=np.float32)
    np.save(tmp_path / "input_0.npy", a)
    np.save(tmp_path / "input_1.npy", b)
    trace = (course / "p03_transform_8.py").read_text()
    for jfactor in [8, 32]:
        (tmp_path / "trace.py").write_text(trace.replace("[None, 8]", f"[None, {jfactor}]"))
        arguments = ["--function", "mm_relu", "--schedule", tmp_path / "trace.py", "--input-dir", tmp_path]
        bevel("run", course / "p02_mm_relu.py", *arguments, "--output-dir", tmp_path / "out", *options)
        got = np.load(tmp_path / "out" / "output_2.npy")
        np.testing.assert_allclose(got, np.maximum(a @ b, 0), atol=1e-4, strict=True)
        if "--interpret" in options:
            break  # 2 million steps take a while


def test_transform_is_shown_and_timed(bevel, course):
    module, trace = course / "p02_mm_relu.py", course / "p03_transform_8.py"
    text = bevel("opt", module, "--schedule", trace, "--function", "mm_relu").stdout
    assert '"Y_init"' in text and "for i, j_0 in T.grid(128, 16)" in text and "mm_relu_remap" not in text
    measure = ["bench", module, "--function", "mm_relu", "--no-opt", "--seconds", "0.05", "--json"]
    for schedule in [[], ["--schedule", trace]]:
        result = json.loads(bevel(*measure, *schedule).stdout)
        assert result["function"] == "mm_relu" and 0 < result["min_ms"] <= result["median_ms"]
        assert result["gflops"] == pytest.approx(2 * 128**3 / result["median_ms"] / 1e6, rel=0.05)


def test_bmm_relu_reaches_its_target(bevel, course):
    program, target = course / "p07_bmm_relu.py", course / "p07_target.py"
    bevel("opt", program, "--schedule", course / "p07_trace.py", "--expect", target)
    message = bevel("opt", program, "--expect", target, code=3).stderr
    assert "differs" in message and "first at" in message


@pytest.mark.parametrize("name", ["p08_mlp", "p09_mlp_symbolic"])
@pytest.mark.parametrize("options", [[], ["--no-opt"]])
def test_network(bevel, course, tmp_path, name, options):
    arguments = inputs(course, "x", *PARAMETERS)
    bevel("run", course / f"{name}.py", *arguments, "--output-dir", tmp_path, "--npy", *options)
    x = load(course, "x")[0]
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), network(course, x), atol=1e-4, strict=True)


@pytest.mark.parametrize("name", ["p10_mlp_env", "p11_mlp_mixed"])
def test_packed_functions_are_missing_in_the_tool(bevel, course, name):
    message = bevel("run", course / f"{name}.py", *inputs(course, "x", *PARAMETERS), code=3).stderr
    assert "no packed function 'env." in message and "bevel_register_packed" in message


@pytest.mark.parametrize("name", ["p10_mlp_env", "p11_mlp_mixed"])
def test_packed_functions_of_a_c_program(bevel, root, course, tmp_path, name):
    bevel("compile", course / f"{name}.py", "-o", tmp_path / "p10.so")
    library = root / "build" / "libbevel_runtime.so"
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", course / "p10_main.c", "-o", tmp_path / "p10"]
    command += [f"-I{root}/include", f"-I{tmp_path}", f"-L{tmp_path}", "-l:p10.so", library]
    subprocess.run([*command, f"-Wl,-rpath,{library.parent}:{tmp_path}"], check=True)
    files = []
    for value_name in ["x", *PARAMETERS]:
        files.append(tmp_path / f"{value_name}.bin")
        load(course, value_name)[0].tofile(files[-1])
    result = subprocess.run([tmp_path / "p10", *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    got = np.array(result.stdout.split(), np.float32)
    np.testing.assert_allclose(got, network(course, load(course, "x")[0])[0], atol=1e-4, strict=True)

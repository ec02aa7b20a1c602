"""Values at the edge of what operators allow: indices out of range, empty axes, wrapping integers, bad splits and steps.

Each model runs in onnxruntime too: the tool gives the same values, or refuses (exit code 3) what onnxruntime refuses.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
node = helper.make_node


def i64(*values):
    return np.array(values, np.int64)


def f32(*values):
    return np.array(values, np.float32)


def value_info(name, value, dynamic):
    shape = [f"{name}{d}" for d in range(value.ndim)] if dynamic and name == "x" else value.shape
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)


def model_of(nodes, inputs, weights=None, outputs=("o",), dynamic=True, opset=18):
    """A model of these nodes; `dynamic`: the dimensions of input x are named, not numbers."""
    graph = helper.make_graph(
        nodes,
        "edge",
        [value_info(name, value, dynamic) for name, value in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def oracle(model, inputs):
    """The outputs of onnxruntime without its rewrites; None where it refuses."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return session.run(None, inputs)
    except Exception:
        return None


@pytest.fixture
def run(bevel, tmp_path):
    def run(model, inputs, code=0, timeout=60):
        onnx.save(model, tmp_path / "m.onnx")
        arguments = []
        for name, value in inputs.items():
            np.save(tmp_path / f"{name}.npy", value)
            arguments += ["--input", f"{name}={tmp_path}/{name}.npy"]
        result = bevel(
            "run",
            tmp_path / "m.onnx",
            *arguments,
            "--output-dir",
            tmp_path / "out",
            "--npy",
            code=code,
            timeout=timeout,
        )
        if code:
            return result.stderr
        return [np.load(tmp_path / f"out/output_{k}.npy") for k in range(len(model.graph.output))]

    return run


@pytest.fixture
def agree(run):
    """Runs the model in both; `refused`: both must refuse, and the message holds this text."""

    def agree(nodes, inputs, weights=None, refused=None, **options):
        model = model_of(nodes, inputs, weights, **options)
        want = oracle(model, inputs)
        if refused is not None:
            assert want is None
            message = run(model, inputs, code=3)
            assert refused in message, message
            return
        assert want is not None
        for got, expected in zip(run(model, inputs), want, strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected, strict=True)
            if got.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(got), np.signbit(expected), strict=True)

    return agree


X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "none"])
def test_scatter_into_shapes(agree, reduction):
    shape = node("Shape", ["x"], ["s"])
    agree(
        [shape, node("ScatterND", ["s", "i", "u"], ["o"], reduction=reduction)],
        {"x": X},
        {"i": i64(0).reshape(1, 1), "u": i64(100)},
    )
    agree(
        [shape, node("ScatterElements", ["s", "i", "s"], ["o"], reduction=reduction)],
        {"x": X},
        {"i": i64(1, 0)},
    )


def test_shapes_in_int32_wrap(agree):
    shape, narrow = node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["a"], to=TensorProto.INT32)
    big = {"b": np.array([100000], np.int32)}
    square = [shape, narrow, node("Mul", ["a", "b"], ["c"]), node("Mul", ["c", "b"], ["d"])]
    agree([*square, node("Div", ["d", "b"], ["o"])], {"x": X}, big)
    agree([*square, node("Cast", ["d"], ["o"], to=TensorProto.INT64)], {"x": X}, big)
    wide = [shape, node("Mul", ["s", "b"], ["w"]), node("Cast", ["w"], ["n"], to=TensorProto.INT32)]
    agree([*wide, node("Cast", ["n"], ["o"], to=TensorProto.INT64)], {"x": X}, {"b": i64(2**31)})
    agree([*wide, node("Cast", ["n"], ["o"], to=TensorProto.INT64)], {"x": X}, {"b": i64(3)})


def test_int32_shapes_stay_symbolic(bevel, tmp_path):
    """Batch times length in int32, as TensorFlow's exporter writes it: no operator runs on shapes."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Cast", ["s"], ["a"], to=TensorProto.INT32),
        node("Split", ["a"], ["n", "m", "k"], num_outputs=3),
        node("Mul", ["n", "m"], ["rows"]),
        node("Concat", ["rows", "k"], ["t"], axis=0),
        node("Cast", ["t"], ["t64"], to=TensorProto.INT64),
        node("Reshape", ["x", "t64"], ["o"]),
    ]
    onnx.save(model_of(nodes, {"x": X.reshape(2, 2, 3)}), tmp_path / "m.onnx")
    text = bevel("inspect", tmp_path / "m.onnx").stdout
    assert "operators   reshape ×1\n" in text, text


@pytest.mark.parametrize("dynamic", [True, False])
def test_reads_of_empty_axes(agree, dynamic):
    options = {"dynamic": dynamic, "refused": "does not hold" if dynamic else "an index into an empty axis"}
    constant = "does not hold" if dynamic else "index 0 is out of range"
    wide = np.zeros((0, 4000000), np.float32)
    agree([node("Gather", ["x", "i"], ["o"])], {"x": wide}, {"i": i64(0)}, dynamic=dynamic, refused=constant)
    agree([node("Gather", ["x", "i"], ["o"])], {"x": wide, "i": i64(0)}, **options)
    rows = np.zeros((3000, 3), np.int64)
    agree([node("GatherElements", ["x", "i"], ["o"])], {"x": wide[:, :3].copy(), "i": rows}, **options)
    agree([node("GatherND", ["x", "i"], ["o"])], {"x": wide, "i": i64(0).reshape(1, 1)}, **options)
    agree([node("Gather", ["x", "i"], ["o"])], {"x": wide, "i": i64()}, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [True, False])
def test_indices_longer_than_the_data(agree, dynamic):
    options = {"dynamic": dynamic, "refused": "does not hold" if dynamic else "longer than the data"}
    x = np.zeros((1, 3), np.float32)
    for rows in [2, 4000000]:
        indices = np.zeros((rows, 3), np.int64)
        gather = [node("GatherElements", ["x", "i"], ["o"], axis=1)]
        agree(gather, {"x": x, "i": indices}, **options)
    scatter = [node("ScatterElements", ["x", "i", "u"], ["o"], axis=1)]
    agree(scatter, {"x": x, "i": indices[:2], "u": np.ones((2, 3), np.float32)}, **options)
    short = {"x": X, "i": np.zeros((2, 3), np.int64)}
    agree([node("GatherElements", ["x", "i"], ["o"], axis=1)], short, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("index", [4, -5, 2**62, -(2**63)])
def test_constant_indices_out_of_range(agree, index, dynamic):
    options = {
        "dynamic": dynamic,
        "refused": "does not hold" if dynamic else f"index {index} is out of range",
    }
    agree([node("Gather", ["x", "i"], ["o"])], {"x": X}, {"i": i64(0, index)}, **options)
    indices = np.full((1, 3), index, np.int64)
    agree([node("GatherElements", ["x", "i"], ["o"])], {"x": X}, {"i": indices}, **options)
    agree([node("GatherND", ["x", "i"], ["o"])], {"x": X}, {"i": i64(index).reshape(1, 1)}, **options)
    weights = {"i": indices, "u": np.ones((1, 3), np.float32)}
    agree([node("ScatterElements", ["x", "i", "u"], ["o"])], {"x": X}, weights, **options)
    weights = {"i": i64(index).reshape(1, 1), "u": np.ones((1, 3), np.float32)}
    agree([node("ScatterND", ["x", "i", "u"], ["o"])], {"x": X}, weights, **options)


def test_refusals_name_the_node(run):
    message = run(
        model_of([node("Gather", ["x", "i"], ["o"], name="lookup")], {"x": X}, {"i": i64(9)}), {"x": X}, 3
    )
    assert "lookup" in message


def test_run_time_indices_stay_inside(run):
    """Out of range, onnxruntime refuses; here reads are clamped and updates are dropped, as docs/numerics.md says."""
    wild = i64(-(2**63), -5, 4, 2**63 - 1)
    inputs = {"x": X, "i": wild}
    got = run(model_of([node("Gather", ["x", "i"], ["o"])], inputs), inputs)
    np.testing.assert_array_equal(got[0], X[[0, 0, 3, 3]], strict=True)
    inputs = {"x": X, "i": wild.reshape(4, 1), "u": np.ones((4, 3), np.float32)}
    scatter = model_of([node("ScatterND", ["x", "i", "u"], ["o"])], inputs, dynamic=False)
    np.testing.assert_array_equal(run(scatter, inputs)[0], X, strict=True)


@pytest.mark.parametrize("size", [2**62, 2**60, 2**45])
def test_results_that_fit_no_memory(run, size):
    zero, one = np.array(0, np.int64), np.array(1, np.int64)
    limits = {"a": zero, "b": np.array(size, np.int64), "c": one}
    for made, weights in [
        (node("Range", ["a", "b", "c"], ["o"]), limits),
        (node("HannWindow", ["b"], ["o"]), {"b": limits["b"]}),
        (node("ConstantOfShape", ["b"], ["o"]), {"b": i64(size)}),
    ]:
        message = run(model_of([made], {}, weights), {}, code=3)
        assert "fit any memory" in message or "overflows" in message, message


@pytest.mark.parametrize("sizes", [[1, 5], [1, 1], [-1, 4]])
def test_split_sizes_that_do_not_add_up(agree, sizes):
    split, x = [node("Split", ["x", "s"], ["o", "p"])], X[:3].copy()
    agree(split, {"x": x, "s": i64(*sizes)}, outputs=("o", "p"), refused="does not hold")
    constant = "a size is negative" if sizes[0] < 0 else "the sizes do not add up"
    agree(split, {"x": x}, {"s": i64(*sizes)}, outputs=("o", "p"), dynamic=False, refused=constant)
    agree(split, {"x": x, "s": i64(1, 2)}, outputs=("o", "p"))


def test_steps_of_zero(agree):
    bounds, zero = {"a": i64(0), "b": i64(3), "c": i64(0)}, i64(0)
    cut = [node("Slice", ["x", "a", "b", "c", "d"], ["o"])]
    agree(cut, {"x": X}, {**bounds, "d": zero}, refused="step of zero")
    agree(cut, {"x": X, "d": zero}, bounds, dynamic=False, refused="does not hold")
    count = [node("Range", ["a", "b", "d"], ["o"])]
    for dtype in [np.int64, np.int32, np.float32]:
        scalars = {"a": np.array(0, dtype), "b": np.array(5, dtype)}
        agree(count, {}, {**scalars, "d": np.array(0, dtype)}, refused="step of zero")
    agree(count, {"a": np.array(0), "b": np.array(5), "d": np.array(0)}, refused="does not hold")


@pytest.mark.parametrize("step", [2**63 - 1, 2**40 + 1, 3, -3, -(2**40) - 1, -(2**63) + 1])
def test_long_steps(agree, step):
    start, end = (0, 2**63 - 1) if step > 0 else (2**63 - 1, -(2**63))
    cut, x = [node("Slice", ["x", "a", "b", "c", "d"], ["o"])], np.arange(5, dtype=np.float32)
    bounds = {"a": i64(start), "b": i64(end), "c": i64(0)}
    for dynamic in [True, False]:
        agree(cut, {"x": x}, {**bounds, "d": i64(step)}, dynamic=dynamic)
    agree(cut, {"x": x, "d": i64(step)}, bounds, dynamic=False)


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    "start,limit,step",
    [
        (LEAST, MOST, 2**62),
        (MOST, LEAST, -(2**62)),
        (LEAST, MOST, MOST),
        (MOST, LEAST, LEAST + 1),
        (MOST - 3, MOST, 1),
        (LEAST + 3, LEAST, -1),
        (MOST, LEAST, 1),
        (LEAST, MOST, -1),
        (LEAST, LEAST, 5),
        (2**62, 2**62 + 10, 3),
        (-7, 8, 3),
        (8, -7, -4),
        (0, 9, 3),
    ],
)
def test_ranges_of_any_integers(agree, start, limit, step):
    values = {"a": np.array(start), "b": np.array(limit), "d": np.array(step)}
    for weights in [[], ["a"], ["d"], ["a", "d"], ["b", "d"], ["a", "b"]]:
        fixed = {name: values[name] for name in weights}
        given = {name: v for name, v in values.items() if name not in weights}
        agree([node("Range", ["a", "b", "d"], ["o"])], given, fixed)


def test_ranges_too_long(run):
    count = [node("Range", ["a", "b", "d"], ["o"])]
    for start, limit, step in [(LEAST, MOST, 1), (MOST, LEAST, -1), (0, 2**62, 1), (5, 0, LEAST)]:
        inputs = {"a": np.array(start), "b": np.array(limit), "d": np.array(step)}
        message = run(model_of(count, inputs), inputs, code=3)
        assert "does not hold" in message or "memory" in message, message


SPECIAL = f32(-0.0, 0.0, -np.inf, np.inf, np.nan, 4, -4)


def test_identities_keep_special_values(run):
    inputs = {"x": SPECIAL}
    for op, weight, want in [
        ("Add", 0.0, SPECIAL + np.float32(0)),
        ("Add", -0.0, SPECIAL),
        ("Sub", 0.0, SPECIAL),
        ("Sub", -0.0, SPECIAL - np.float32(-0.0)),
        ("Pow", 0.5, f32(0, 0, np.inf, np.inf, np.nan, 2, np.nan)),
        ("Pow", -0.5, f32(np.inf, np.inf, 0, 0, np.nan, 0.5, np.nan)),
    ]:
        (got,) = run(
            model_of([node(op, ["x", "w"], ["o"])], inputs, {"w": np.array(weight, np.float32)}), inputs
        )
        np.testing.assert_array_equal(got, want, err_msg=f"{op} {weight}", strict=True)
        ordered = ~np.isnan(want)
        np.testing.assert_array_equal(
            np.signbit(got)[ordered], np.signbit(want)[ordered], err_msg=f"{op} {weight}", strict=True
        )


def test_roots_of_squares_stay_roots(bevel, tmp_path):
    nodes = [
        node("Mul", ["x", "x"], ["q"]),
        node("ReduceMean", ["q"], ["m"]),
        node("Add", ["m", "e"], ["v"]),
        node("Pow", ["v", "h"], ["o"]),
    ]
    onnx.save(
        model_of(nodes, {"x": X}, {"e": f32(1e-5), "h": np.array(0.5, np.float32)}, opset=17),
        tmp_path / "m.onnx",
    )
    bevel("opt", tmp_path / "m.onnx", "--passes", "simplify", "-o", tmp_path / "m.py")
    text = (tmp_path / "m.py").read_text()
    assert "R.sqrt" in text and "R.where" not in text, text


def test_quantizing_zeros(agree):
    names = ("o", "s", "z")
    for x in [np.zeros(3, np.float32), f32(1.5, 2, 3), f32(-1.5, -2, -3), f32(-1, 3)]:
        agree([node("DynamicQuantizeLinear", ["x"], list(names))], {"x": x}, outputs=names)


def loop_model(trips):
    """Scan outputs [n, m] of the run's shape, gathered over trips."""
    body = helper.make_graph(
        [
            node("Identity", ["c"], ["c_out"]),
            node("Add", ["v", "v"], ["v_out"]),
            node("Neg", ["v_out"], ["scan"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, ["n", "m"]),
        ],
        [
            helper.make_tensor_value_info("c_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v_out", TensorProto.FLOAT, ["n", "m"]),
            helper.make_tensor_value_info("scan", TensorProto.FLOAT, ["n", "m"]),
        ],
    )
    loop = node("Loop", ["t", "", "x"], ["o", "p"], body=body)
    return model_of([loop], {"t": np.array(trips), "x": X}, outputs=("o", "p"))


@pytest.mark.parametrize("trips", [1, 3, 40])
def test_scan_outputs_of_symbolic_shape(run, trips):
    inputs = {"t": np.array(trips), "x": X}
    model = loop_model(trips)
    for got, want in zip(run(model, inputs), oracle(model, inputs), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("largest", [0, 1])
def test_large_topk(agree, largest):
    x = np.random.default_rng(0).integers(-50, 50, (2, 20000)).astype(np.float32)
    top = [node("TopK", ["x", "k"], ["o", "p"], largest=largest)]
    for k in [3, 33, 20000]:
        agree(top, {"x": x}, {"k": i64(k)}, outputs=("o", "p"), dynamic=False)
        agree(top, {"x": x}, {"k": i64(k)}, outputs=("o", "p"))
        agree(top, {"x": x, "k": i64(k)}, outputs=("o", "p"))
    agree(top, {"x": x, "k": i64(20001)}, outputs=("o", "p"), refused="larger than the axis")


def test_random_draws_differ(run):
    """Of a function called twice, of the trips of a loop; and each run draws the same."""
    function = helper.make_function(
        "local",
        "Draw",
        [],
        ["r"],
        [node("RandomUniform", [], ["r"], shape=[8], name="u")],
        [helper.make_opsetid("", 18)],
    )
    model = model_of(
        [
            node("Draw", [], ["o"], domain="local", name="a"),
            node("Draw", [], ["p"], domain="local", name="b"),
        ],
        {},
        outputs=("o", "p"),
    )
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    first, second = run(model, {})
    assert not np.any(first == second)
    np.testing.assert_array_equal(run(model, {})[0], first, strict=True)
    body = helper.make_graph(
        [node("Identity", ["c"], ["c_out"]), node("RandomUniform", [], ["r"], shape=[4])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("c_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("r", TensorProto.FLOAT, [4]),
        ],
    )
    loop = [node("Loop", ["t", ""], ["o"], body=body)]
    trips = {"t": np.array(5)}
    for drawn in [run(model_of(loop, trips), trips)[0], run(model_of(loop, {}, trips), {})[0]]:
        assert drawn.shape == (5, 4) and len(np.unique(drawn)) == 20


def test_constant_strings_are_moved(bevel, tmp_path):
    words = np.array([["pear", ""], ["apple", "fig"]], object)
    nodes = [
        node("Transpose", ["words"], ["t"]),
        node("Gather", ["words", "index"], ["g"], axis=1),
        node("Concat", ["words", "words"], ["c"], axis=0),
        node("Where", ["mask", "words", "other"], ["w"]),
    ]
    weights = {
        "words": words,
        "other": words[::-1],
        "index": i64(1, 0),
        "mask": np.array([True, False]),
    }
    model = model_of(nodes, {}, weights, outputs=("t", "g", "c", "w"))
    onnx.save(model, tmp_path / "m.onnx")
    want = oracle(model, {})
    out = bevel("run", tmp_path / "m.onnx").stdout
    for name, value in zip(["t", "g", "c", "w"], want, strict=True):
        quoted = ", ".join(f'"{word}"' for word in value.ravel())
        assert f"{name}: string{list(value.shape)} = {quoted}" in out.splitlines()

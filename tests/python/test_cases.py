"""Operator cases on which other systems fail, through machine code: every input is given to the run, nothing is a constant.

The same cases on constants, through the operators' host evaluation, are in tests/import/onnx_case_test.cc.
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

F, I64 = np.float32, np.int64
NAN, INF = np.nan, np.inf


def f32(*values, shape=None):
    return np.array(values, F) if shape is None else np.array(values, F).reshape(shape)


def i64(*values):
    return np.array(values, I64)


def ramp(*shape, first=0):
    return (np.arange(np.prod(shape)) + first).astype(F).reshape(shape)


ROWS_15 = f32(0, 0, 1, 2, 0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, shape=(1, 1, 4, 4))
CLIPPED = f32(0.5, -3, 4.5, 11, NAN)
POWERS = i64(815730721, 410338673, 893871739, 148035889)

# name: (operator, inputs, attributes, outputs); None: an input that is left out, or an output that is not compared
CASES = {
    "resize_nearest_1.5": ("Resize", [ramp(1, 1, 3, 3), None, f32(1, 1, 1.5, 1.5)], {}, [ROWS_15]),
    "resize_linear_2.5": (
        "Resize",
        [ramp(1, 1, 1, 3), None, f32(1, 1, 1, 2.5)],
        {"mode": "linear"},
        [f32(0, 0.1, 0.5, 0.9, 1.3, 1.7, 2, shape=(1, 1, 1, 7))],
    ),
    "resize_3d": (
        "Resize",
        [ramp(1, 1, 4), None, None, i64(1, 1, 7)],
        {"mode": "linear"},
        [f32(0, 0.357143, 0.928571, 1.5, 2.071429, 2.642857, 3, shape=(1, 1, 7))],
    ),
    "gather_elements_negative": (
        "GatherElements",
        [ramp(3, 4), np.full((3, 4), -1, I64)],
        {"axis": 1},
        [np.repeat(f32(3, 7, 11), 4).reshape(3, 4)],
    ),
    "gather_nd_negative": ("GatherND", [ramp(3, 4), np.array([[-1, -1], [0, -2]], I64)], {}, [f32(11, 2)]),
    "scatter_nd_negative": (
        "ScatterND",
        [np.zeros((3, 4), F), np.array([[-1], [0]], I64), ramp(2, 4, first=1)],
        {},
        [f32(5, 6, 7, 8, 0, 0, 0, 0, 1, 2, 3, 4, shape=(3, 4))],
    ),
    "one_hot_negative": (
        "OneHot",
        [i64(0, 2, 4, -1), I64(5), f32(0, 1)],
        {},
        [np.eye(5, dtype=F)[[0, 2, 4, 4]]],
    ),
    "gather_negative": ("Gather", [ramp(5, first=1), i64(-1, -3, 0)], {}, [f32(5, 3, 1)]),
    "average_pool_ceil": (
        "AveragePool",
        [ramp(1, 1, 12, first=1)],
        {"kernel_shape": [7], "strides": [3], "pads": [0, 3], "ceil_mode": 1, "count_include_pad": 1},
        [f32(4, 7, 57 / 7, 5.5, shape=(1, 1, 4))],
    ),
    "clip_nan_bound": ("Clip", [CLIPPED, F(0), F(NAN)], {}, [f32(0.5, 0, 4.5, 11, NAN)]),
    "clip_max_only": ("Clip", [CLIPPED, None, F(3)], {}, [f32(0.5, -3, 3, 3, NAN)]),
    "clip_crossed": ("Clip", [CLIPPED, F(2), F(1)], {}, [f32(1, 1, 1, 1, NAN)]),
    "reduce_sum_square_noop": (
        "ReduceSumSquare",
        [ramp(2, 2, first=1)],
        {"noop_with_empty_axes": 1},
        [f32(1, 4, 9, 16, shape=(2, 2))],
    ),
    "reduce_sum_no_axes": ("ReduceSum", [ramp(2, 2, first=1), i64()], {"keepdims": 0}, [F(10)]),
    "reduce_sum_negative_axis": (
        "ReduceSum",
        [ramp(2, 2, 2), i64(-2)],
        {},
        [f32(2, 4, 10, 12, shape=(2, 1, 2))],
    ),
    "reduce_max_scalar": ("ReduceMax", [F(3)], {}, [F(3)]),
    "reduce_sum_empty": ("ReduceSum", [np.zeros((2, 0, 4), F), i64(1)], {}, [np.zeros((2, 1, 4), F)]),
    "reduce_prod_empty": ("ReduceProd", [np.zeros((2, 0), F), i64(1)], {}, [np.ones((2, 1), F)]),
    "reduce_max_empty": ("ReduceMax", [np.zeros((1, 0), F), i64(1)], {}, [np.full((1, 1), -INF, F)]),
    "reduce_max_empty_bool": ("ReduceMax", [np.zeros((1, 0), bool), i64(1)], {}, [np.zeros((1, 1), bool)]),
    "reduce_min_empty_bool": ("ReduceMin", [np.zeros((1, 0), bool), i64(1)], {}, [np.ones((1, 1), bool)]),
    "div_truncates": ("Div", [i64(8, -8, 7, -7), i64(-3, 3, -2, 2)], {}, [i64(-2, -2, -3, -3)]),
    "div_smallest": ("Div", [i64(-(2**63), 5), i64(-1, 1)], {}, [i64(-(2**63), 5)]),
    "mod": ("Mod", [i64(-4, 7, 5, 4, -7, 8), i64(2, -3, 8, -2, 3, 5)], {}, [i64(0, -2, 5, 0, 2, 3)]),
    "fmod": (
        "Mod",
        [i64(-4, 7, 5, 4, -7, 8), i64(2, -3, 8, -2, 3, 5)],
        {"fmod": 1},
        [i64(0, 1, 5, 0, -1, 3)],
    ),
    "pow_int64": ("Pow", [i64(13, 17, 19, 23), i64(8, 7, 7, 6)], {}, [POWERS]),
    "sinh": ("Sinh", [f32(89, -88.95)], {}, [f32(2.2448064e38, -2.1353193e38)]),
    "cosh": ("Cosh", [f32(89, -88.95)], {}, [f32(2.2448064e38, 2.1353193e38)]),
    "atan": ("Atan", [f32(3e22)], {}, [f32(1.5707964)]),
    "asinh": ("Asinh", [f32(3e22)], {}, [f32(52.44863)]),
    "acosh": ("Acosh", [f32(3e22)], {}, [f32(52.44863)]),
    "erf_small": ("Erf", [f32(3e-12)], {}, [f32(3.385137e-12)]),
    "tanh": ("Tanh", [f32(50, NAN)], {}, [f32(1, NAN)]),
    "log_sum_exp": ("ReduceLogSumExp", [f32(100, 100)], {"keepdims": 0}, [F(100.693147)]),
    "softmax_large": ("Softmax", [f32(1e4, 1e4, -1e4)], {}, [f32(0.5, 0.5, 0)]),
    "softmax_infinite": ("Softmax", [f32(-INF, 0, -INF)], {}, [f32(0, 1, 0)]),
    "top_k": ("TopK", [ramp(5), i64(2)], {}, [f32(4, 3), i64(4, 3)]),
    "prelu_last_axis": (
        "PRelu",
        [np.full((1, 2, 1, 4), -1, F), f32(1, 2, 3, 4)],
        {},
        [np.tile(f32(-1, -2, -3, -4), 2).reshape(1, 2, 1, 4)],
    ),
    "cumsum_reverse": ("CumSum", [ramp(3, first=1), I64(0)], {"reverse": 1}, [f32(6, 5, 3)]),
    "where_ranks": (
        "Where",
        [np.array([True, False]), ramp(2, 1), F(9)],
        {},
        [f32(0, 9, 1, 9, shape=(2, 2))],
    ),
    "dequantize_rank_1": (
        "DequantizeLinear",
        [np.array([0, 3, 128, 255], np.uint8), F(2), np.uint8(128)],
        {},
        [f32(-256, -250, 0, 254)],
    ),
    "matmul_no_terms": ("MatMul", [np.zeros((2, 0), F), np.zeros((0, 3), F)], {}, [np.zeros((2, 3), F)]),
    "slice_negative": ("Slice", [ramp(6), i64(0), i64(-1), i64(-1), i64(1)], {}, [ramp(5)]),
    "slice_backwards": ("Slice", [ramp(4), i64(-1), i64(-100), i64(0), i64(-2)], {}, [f32(3, 1)]),
    "unique": (
        "Unique",
        [f32(2, 1, 1, 3, 4, 3)],
        {},
        [f32(1, 2, 3, 4), i64(1, 0, 3, 4), i64(1, 0, 0, 2, 3, 2), i64(2, 1, 2, 1)],
    ),
}
INDEX = np.iinfo(np.int32).min


def value_info(name, array):
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype), np.shape(array)
    )


def run_graph(bevel, folder, nodes, feeds, outputs, code=0, opset=19, extents=None):
    """The outputs of a graph; with another exit code: what the tool says. `extents`: inputs with named dimensions."""
    infos = [value_info(name, value) for name, value in feeds.items()]
    for info in infos:
        if extents and info.name in extents:
            info.CopyFrom(helper.make_tensor_value_info(info.name, TensorProto.FLOAT, extents[info.name]))
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    model = helper.make_model(
        helper.make_graph(nodes, "cases", infos, results),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=10,
    )
    onnx.save(model, folder / "m.onnx")
    for index, (name, value) in enumerate(feeds.items()):
        proto = numpy_helper.from_array(np.asarray(value), name)
        (folder / f"input_{index}.pb").write_bytes(proto.SerializeToString())
    run = bevel(
        "run",
        folder / "m.onnx",
        "--input-dir",
        folder,
        "--output-dir",
        folder / "out",
        "--threads",
        1,
        code=code,
    )
    if code:
        return run.stderr
    files = [folder / "out" / f"output_{index}.pb" for index in range(len(outputs))]
    return [numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())) for path in files]


@pytest.fixture(scope="module")
def results(bevel, tmp_path_factory):
    """All cases as one graph: they are compiled together once."""
    nodes, feeds, outputs = [], {}, []
    for name, (op, inputs, attributes, expected) in CASES.items():
        names = ["" if value is None else f"{name}_{index}" for index, value in enumerate(inputs)]
        feeds.update({key: value for key, value in zip(names, inputs) if key})
        given = [f"{name}_out_{index}" for index in range(len(expected))]
        outputs += given
        nodes.append(helper.make_node(op, names, given, name=name, **attributes))
    values = run_graph(bevel, tmp_path_factory.mktemp("cases"), nodes, feeds, outputs)
    return dict(zip(outputs, values))


@pytest.mark.parametrize("name", CASES)
def test_case(name, results):
    for index, want in enumerate(CASES[name][3]):
        got, want = results[f"{name}_out_{index}"], np.asarray(want)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype.kind == "f" else 0, atol=0, strict=True)


@pytest.mark.parametrize("index", [3, -4, INDEX])
def test_scatter_out_of_range_never_writes(index, bevel, tmp_path):
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], name="scatter")
    feeds = {"x": np.zeros((3, 4), F), "i": np.array([[index]], I64), "u": np.ones((1, 4), F)}
    (got,) = run_graph(bevel, tmp_path, [node], feeds, ["y"])
    np.testing.assert_array_equal(got, feeds["x"], strict=True)


def test_average_pool_drops_the_window_in_the_padding(bevel, tmp_path):
    node = helper.make_node(
        "AveragePool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1
    )
    (got,) = run_graph(bevel, tmp_path, [node], {"x": np.ones((1, 1, 17, 17), F)}, ["y"])
    assert got.shape == (1, 1, 9, 9) and np.all(got == 1)


def test_negative_trip_count_is_no_trip(bevel, tmp_path):
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "v"], ["w"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [value_info("i", I64(0)), value_info("c", np.True_), value_info("v", f32(1))],
        [value_info("d", np.True_), value_info("w", f32(1))],
    )
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    (got,) = run_graph(bevel, tmp_path, [node], {"n": I64(-3), "x": f32(7)}, ["y"])
    np.testing.assert_array_equal(got, f32(7), strict=True)


@pytest.mark.parametrize(("extents", "refused"), [((3, 3), False), ((3, 1), False), ((3, 2), True)])
def test_extents_that_do_not_broadcast_are_refused(extents, refused, bevel, tmp_path):
    node = helper.make_node("Add", ["x", "y"], ["z"], name="sum")
    feeds = {"x": ramp(extents[0]), "y": ramp(extents[1])}
    result = run_graph(
        bevel, tmp_path, [node], feeds, ["z"], code=3 if refused else 0, extents={"x": ["n"], "y": ["m"]}
    )
    if refused:
        assert "sum" in result and "n == m" in result and "does not hold" in result
    else:
        np.testing.assert_array_equal(result[0], feeds["x"] + feeds["y"], strict=True)


@pytest.mark.parametrize("length", [2, 3])
def test_an_input_smaller_than_the_kernel_is_refused(length, bevel, tmp_path):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", kernel_shape=[4]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    feeds = {"x": ramp(1, 1, length), "w": np.ones((1, 1, 4), F)}
    extents = {"x": [1, 1, "length"]}
    result = run_graph(bevel, tmp_path, nodes, feeds, ["y"], code=3, extents=extents)
    assert "length - 3 > 0 does not hold" in result


@pytest.mark.parametrize("count", [17, 40, 250])
@pytest.mark.parametrize("symbolic", [False, True])
def test_many_inputs_one_after_the_other(count, symbolic, bevel, tmp_path):
    """Compile time stays small: what an input needs does not grow with the number of the others."""
    names = [f"x{k}" for k in range(count)]
    node = helper.make_node("Concat", names, ["y"], axis=-1)
    feeds = {name: ramp(2, k % 3) + k for k, name in enumerate(names)}
    extents = {name: [2, f"n{k}"] for k, name in enumerate(names)} if symbolic else None
    (y,) = run_graph(bevel, tmp_path, [node], feeds, ["y"], extents=extents)
    np.testing.assert_array_equal(y, np.concatenate(list(feeds.values()), axis=-1), strict=True)


@pytest.mark.parametrize(
    "op, reference", [("ReduceMax", np.max), ("ReduceSum", np.sum), ("ReduceMean", np.mean)]
)
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [(), (3,), (-7, 2, 5), (0, 1, 2, 3, 4, 5, 6)])
def test_axes_that_only_the_run_knows(op, reference, keep, axes, bevel, tmp_path):
    node = helper.make_node(op, ["x", "a"], ["y"], keepdims=keep, noop_with_empty_axes=1)
    feeds = {"x": ramp(2, 1, 3, 2, 2, 1, 2), "a": np.array(axes, np.int64)}
    (y,) = run_graph(bevel, tmp_path, [node], feeds, ["y"])
    np.testing.assert_allclose(y, reference(feeds["x"], axis=axes, keepdims=bool(keep)), rtol=1e-6)


@pytest.mark.parametrize("axes", [(7,), (-8,), (1, -6)])
def test_wrong_axes_of_the_run(axes, bevel, tmp_path):
    node = helper.make_node("ReduceMin", ["x", "a"], ["y"], keepdims=0, name="smallest")
    feeds = {"x": ramp(2, 1, 3, 2, 2, 1, 2), "a": np.array(axes, np.int64)}
    error = run_graph(bevel, tmp_path, [node], feeds, ["y"], code=3)
    assert "smallest" in error and ("n < 7" if len(axes) == 1 else "== 2") in error


TEXT = """
@I.ir_module
class Module:
    @R.function(private=True)
    def fused(x: R.Tensor(("n", 8), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
        n = T.int64()
        with R.dataflow():
            a: R.Tensor((n, 8), dtype="float32") = R.add(x, x)
            R.output(a)
        return a

    @R.function
    def main(x: R.Tensor(("m", 8), dtype="float32")) -> R.Tensor(dtype="float32", ndim=2):
        cls = Module
        m = T.int64()
        n = T.int64()
        with R.dataflow():
            src: R.Tensor((m, 8), dtype="float32") = R.add(x, R.const(0.25, "float32"))
            left = R.match_cast(src, R.Tensor((n, 8), "float32"))
            right: R.Tensor((m, 8), dtype="float32") = R.add(x, R.const(0.125, "float32"))
            doubled: R.Tensor((n, 8), dtype="float32") = cls.fused(left)
            both: R.Tuple(
                R.Tuple(R.Tensor((n, 8), dtype="float32"), R.Tensor((m, 8), dtype="float32")),
                R.Tensor((n, 8), dtype="float32"),
            ) = ((left, right), doubled)
            inner: R.Tuple(R.Tensor((n, 8), dtype="float32"), R.Tensor((m, 8), dtype="float32")) = both[0]
            one: R.Tensor((n, 8), dtype="float32") = inner[0]
            two = R.match_cast(inner[1], R.Tensor((n, 8), "float32"))
            again: R.Tensor((n, 8), dtype="float32") = both[1]
            wide = R.broadcast_to(R.const(1.0, "float32"), R.shape([n, 8]))
            sum1: R.Tensor((n, 8), dtype="float32") = R.add(one, two)
            sum2: R.Tensor((n, 8), dtype="float32") = R.add(sum1, again)
            out: R.Tensor((n, 8), dtype="float32") = R.multiply(sum2, wide)
            R.output(out)
        return out
"""


def test_aliases_and_dimensions_of_a_match_cast(bevel, tmp_path):
    (tmp_path / "m.py").write_text(TEXT)
    x = ramp(5, 8)
    np.save(tmp_path / "x.npy", x)
    bevel(
        "run", tmp_path / "m.py", "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path / "out", "--npy"
    )
    np.testing.assert_array_equal(np.load(tmp_path / "out/output_0.npy"), 4 * x + F(0.875), strict=True)

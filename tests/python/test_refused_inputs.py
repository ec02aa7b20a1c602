"""Inputs whose rank, length or values do not fit: a refusal with exit code 3, or the right result; never a signal.

What is known at import is refused there, what only the run knows when it runs: each model is tried with symbolic shapes as
well where its shapes decide.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

onnxruntime.set_default_logger_severity(4)


def f32(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def model_of(op, inputs, weights=(), symbolic=False, opset=23, outputs=1, **attributes):
    def info(name, value):
        shape = [f"{name}{d}" for d in range(value.ndim)] if symbolic else value.shape
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)

    names = [f"i{k}" if value is not None else "" for k, value in enumerate(inputs)]
    given = {name: value for name, value in zip(names, inputs) if name}
    constant = {names[k] for k in weights}
    results = [f"o{k}" for k in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)],
        "one",
        [info(name, value) for name, value in given.items() if name not in constant],
        [onnx.ValueInfoProto(name=name) for name in results],
        [numpy_helper.from_array(value, name) for name, value in given.items() if name in constant],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return model, {name: value for name, value in given.items() if name not in constant}


@pytest.fixture
def run(bevel, tmp_path):
    def run(model, inputs, code=0, options=()):
        onnx.save(model, tmp_path / "m.onnx")
        arguments = list(options)
        for name, value in inputs.items():
            np.save(tmp_path / f"{name}.npy", value)
            arguments += ["--input", f"{name}={tmp_path}/{name}.npy"]
        folder = ["--output-dir", tmp_path, "--npy", "--threads", 1]
        result = bevel("run", tmp_path / "m.onnx", *arguments, *folder, code=code, timeout=60)
        assert "internal error" not in result.stderr
        return result.stderr if code else np.load(tmp_path / "output_0.npy")

    return run


def agrees(run, op, inputs, options=(), **rest):
    model, given = model_of(op, inputs, **rest)
    level = onnxruntime.SessionOptions()
    level.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), level, ["CPUExecutionProvider"])
    want = session.run(None, given)[0]
    got = run(model, given, options=options)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


QKV = [f32(2, 3, 4, 8)] * 3
LSTM = [f32(5, 3, 2), f32(1, 16, 2), f32(1, 16, 4)]
GRU = [f32(5, 3, 2), f32(1, 12, 2), f32(1, 12, 4)]
WRONG_RANKS = {
    "mask": ("Attention", [*QKV, f32()], {}),
    "past": ("Attention", [*QKV, None, f32(), f32()], {}),
    "limit": ("Range", [i64(0).reshape(()), np.zeros(0, np.int64), i64(1).reshape(())], {}),
    "lengths": ("LSTM", [*LSTM, None, np.array(3, np.int32)], {"hidden_size": 4}),
    "peepholes": ("LSTM", [*LSTM, None, None, None, None, f32(2, 3)], {"hidden_size": 4}),
    "pad": ("Pad", [f32(2, 3), i64(1, 0, 0, 1), f32(1, 1, 1, 1, 1, 1, 1)], {}),
    "region": (
        "Resize",
        [f32(4, 4), f32(2, 2), None, i64(3, 3)],
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
    ),
}


@pytest.mark.parametrize("name", WRONG_RANKS)
def test_ranks(run, name):
    op, inputs, attributes = WRONG_RANKS[name]
    model, given = model_of(op, inputs, **attributes)
    run(model, given, code=3)


WRONG_LENGTHS = {
    "values": ("OneHot", [i64(0, 2), i64(3), f32(1)], [1], {}),
    "bias": ("Conv", [f32(1, 2, 5, 5), f32(3, 2, 3, 3), f32(1)], [1], {}),
    "transposed bias": ("ConvTranspose", [f32(1, 2, 5, 5), f32(2, 3, 3, 3), f32(1)], [1], {}),
    "state": ("LSTM", [*LSTM, None, None, f32(1, 1, 4)], [1, 2], {"hidden_size": 4}),
    "cell": ("LSTM", [*LSTM, None, None, None, f32(1, 3, 1)], [1, 2], {"hidden_size": 4}),
    "lengths": ("GRU", [*GRU, None, np.array([5], np.int32)], [1, 2], {"hidden_size": 4}),
    "expand": ("Expand", [f32(6), i64(4)], [], {}),
    "kernel": ("MaxPool", [f32(1, 1, 3, 3)], [], {"kernel_shape": [5, 5]}),
    "caches": ("RotaryEmbedding", [f32(2, 3, 4, 8), f32(2, 4, 1), f32(2, 4, 1)], [], {}),
    "image": ("GridSample", [f32(1, 1, 0, 3), f32(1, 2, 2, 2)], [], {}),
}


@pytest.mark.parametrize(
    "name, symbolic",
    # the caches are not tried with symbolic extents: the size of a head must be a number
    [(n, s) for n in WRONG_LENGTHS for s in (False, True) if (n, s) != ("caches", True)],
)
def test_lengths(run, name, symbolic):
    op, inputs, weights, attributes = WRONG_LENGTHS[name]
    model, given = model_of(op, inputs, weights, symbolic, **attributes)
    run(model, given, code=3)


WRONG_VALUES = {
    "too long": ("ReverseSequence", [f32(4, 2), i64(3, 5)], {}),
    "longer than time": ("LSTM", [*LSTM, None, np.array([5, 6, 1], np.int32)], {"hidden_size": 4}),
    "slice axis": ("Slice", [f32(3, 4), i64(0), i64(1), i64(2)], {}),
    "cumulative axis": ("CumSum", [f32(3, 4), i64(2).reshape(())], {}),
    "unsqueezed axis": ("Unsqueeze", [f32(3, 4), i64(4)], {}),
    "scale": ("Resize", [f32(1, 1, 2, 2), None, np.array([1, 1, np.nan, 1], np.float32)], {}),
    "pad": ("Pad", [f32(3), i64(2**63 - 1, 2**63 - 1)], {}),
}


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("name", WRONG_VALUES)
def test_values(run, name, constant):
    op, inputs, attributes = WRONG_VALUES[name]
    weights = [k for k, value in enumerate(inputs) if constant and k > 0 and value is not None]
    model, given = model_of(op, inputs, weights, **attributes)
    run(model, given, code=3)


def test_attributes_that_say_nothing(run):
    for op, inputs, attributes in [
        ("ReduceSum", [f32(2, 3)], {"keepdims": 255}),
        ("NegativeLogLikelihoodLoss", [f32(2, 3), i64(0, 1)], {"reduction": "average"}),
    ]:
        model, given = model_of(op, inputs, **attributes)
        run(model, given, code=3)


def test_range_over_all_integers(run):
    lowest, highest = -(2**63), 2**63 - 1
    inputs = [i64(lowest).reshape(()), i64(highest).reshape(()), i64(2**62).reshape(())]
    model, given = model_of("Range", inputs, [0, 1, 2])
    np.testing.assert_array_equal(run(model, given), [lowest, -(2**62), 0, 2**62])


def test_condition_longer_than_the_data(run):
    x = np.array([9, 4, 1], np.float32)
    model, given = model_of("Compress", [x, np.array([1, 0, 0, 1, 1], bool)], axis=0)
    np.testing.assert_array_equal(run(model, given), [9])


WIDE = {"strides": [2**63 - 1, 2**63 - 3]}
HUGE = {
    "stride of a pool": (
        "MaxPool",
        [f32(1, 1, 4, 4)],
        {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"} | WIDE,
    ),
    "stride of a convolution": (
        "Conv",
        [f32(1, 1, 4, 4), f32(1, 1, 2, 2)],
        {"auto_pad": "SAME_LOWER"} | WIDE,
    ),
    "stride of a transposed one": (
        "ConvTranspose",
        [f32(1, 1, 4, 4), f32(1, 1, 2, 2)],
        {"auto_pad": "SAME_LOWER"} | WIDE,
    ),
    "dilation": ("Conv", [f32(1, 1, 4, 4), f32(1, 1, 2, 2)], {"dilations": [2**62, 2**62]}),
    "kernel": ("LpPool", [f32(1, 1, 4, 4)], {"kernel_shape": [2**62, 2**62], "auto_pad": "SAME_UPPER"}),
    "pads": ("AveragePool", [f32(1, 1, 4, 4)], {"kernel_shape": [2, 2], "pads": [2**62] * 4}),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_attributes(run, name):
    op, inputs, attributes = HUGE[name]
    run(*model_of(op, inputs, weights=[1][: len(inputs) - 1], opset=18, **attributes), code=3)


@pytest.mark.parametrize("size", [2**62, 2**62 + 1, 2**63 - 1])
def test_neighbours_beyond_all_channels(run, size):
    x = f32(1, 3, 4, 4)
    y = run(*model_of("LRN", [x], size=size, opset=18))
    np.testing.assert_allclose(y, x, rtol=1e-6)  # the squares are divided by the number of neighbours


@pytest.mark.parametrize("constant", [False, True])
def test_axes_of_other_integers(run, constant):
    model, given = model_of(
        "Unsqueeze", [f32(2, 3), np.array([0, 1], np.int16)], weights=[1] if constant else []
    )
    assert run(model, given).shape == (1, 1, 2, 3)


def test_parts_that_are_not_used_cost_nothing(run):
    parts = [f"p{k}" for k in range(8192)]
    x = f32(len(parts), 2)
    nodes = [
        helper.make_node("Split", ["x"], parts, axis=0, num_outputs=len(parts)),
        helper.make_node("Add", [parts[0], parts[-1]], ["y"]),
    ]
    infos = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)]
    graph = helper.make_graph(nodes, "parts", infos, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    np.testing.assert_array_equal(run(model, {"x": x}), x[:1] + x[-1:])


@pytest.mark.parametrize("shape", [(2**62, 3), (2**62, 2**62)])
def test_tensors_beyond_all_memory(bevel, tmp_path, shape):
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [info], [onnx.ValueInfoProto(name="y")]
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10),
        tmp_path / "m.onnx",
    )
    assert "overflows" in bevel("run", tmp_path / "m.onnx", code=3, timeout=60).stderr


def test_zero_remainders_have_the_sign_of_the_divisor(run):
    x, y = np.array([0, -0.0, 0, -0.0, 4], np.float32), np.array([-2, 2, 2, -2, -2], np.float32)
    model, given = model_of("Mod", [x, y])
    np.testing.assert_array_equal(np.signbit(run(model, given)), [True, False, False, True, True])


def test_taps_that_do_not_exist(run):
    weight = np.ones((1, 1, 3, 3), np.float32)
    weight[0, 0, 1, 1] = np.inf
    agrees(run, "ConvTranspose", [np.ones((1, 1, 2, 2), np.float32), weight], strides=[2, 2])


def test_statistics_keep_their_type(run):
    x = f32(2, 2, 3).astype(np.float16)
    one, mean = np.ones(2, np.float32), np.array([100000, 1], np.float32)
    variance = np.array([9e8, 1e-9], np.float32)
    model, given = model_of("BatchNormalization", [x, one, one, mean, variance], opset=15)
    wide = (x.astype(np.float64) - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5) + 1
    np.testing.assert_allclose(run(model, given), wide.astype(np.float16), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_resized_extents_and_roundings(run, mode, symbolic):
    scales = np.array([1, 1, 0.7, 0.7], np.float32)
    agrees(
        run, "Resize", [f32(1, 2, 10, 20), None, scales], weights=[2], symbolic=symbolic, opset=18, mode=mode
    )
    pixels = np.random.default_rng(2).integers(0, 255, (1, 1, 3, 4)).astype(np.uint8)
    twice = np.array([1, 1, 2, 2], np.float32)
    agrees(run, "Resize", [pixels, None, twice], weights=[2], symbolic=symbolic, opset=18, mode=mode)


@pytest.mark.parametrize("padding", ["border", "reflection", "zeros"])
def test_cubic_samples_at_the_border(run, padding):
    points = np.random.default_rng(4).uniform(-1.3, 1.3, (1, 3, 3, 2)).astype(np.float32)
    agrees(run, "GridSample", [f32(1, 1, 4, 5), points], opset=20, mode="cubic", padding_mode=padding)


@pytest.mark.parametrize("op", ["Sigmoid", "Tanh", "Softplus", "Elu", "HardSigmoid"])
def test_fast_math_of_large_values(run, op):
    x = np.array([-500, -100, -89, -88, 0, 88, 89, 500], np.float32)
    agrees(run, op, [np.tile(x, 4)], opset=17, options=["--fast-math"])

"""Operators under the spellings of other tools (src/ir/spellings.def), compiled, run and compared with numpy."""

import numpy as np
import pytest

PARAMS = {
    "x": (1, 4, 8, 8),
    "w": (8, 4, 3, 3),
    "wt": (4, 2, 3, 3),
    "a": (2, 6),
    "b": (6, 3),
    "bias": (3,),
    "g": (6,),
    "c": (4,),
    "p": (4,),
    "q": (1, 5, 2, 4),
    "k": (1, 7, 2, 4),
    "wl": (3, 6),
    "line": (1, 4, 9),
    "cube": (1, 2, 4, 4, 4),
}


def inputs():
    rng = np.random.default_rng(3)
    values = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in PARAMS.items()}
    values["p"] = np.abs(values["p"]) + 0.5
    return values


def windows(x, kernel, strides, padding, fill):
    """Windows of each position behind the other axes: x is [N, C, spatial…]."""
    n = len(kernel)
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=tuple(range(2, 2 + n)))
    return view[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]


def max_pool(x, kernel, strides, padding):
    axes = tuple(range(-len(kernel), 0))
    return windows(x, kernel, strides, padding, -np.inf).max(axis=axes)


def avg_pool(x, kernel, strides, padding, count_all):
    axes = tuple(range(-len(kernel), 0))
    total = windows(x, kernel, strides, padding, 0).sum(axis=axes)
    ones = windows(np.ones_like(x), kernel, strides, padding, float(count_all)).sum(axis=axes)
    return total / ones


def conv(x, w, padding):
    return np.einsum("nchwij,ocij->nohw", windows(x, w.shape[2:], (1, 1), (padding, padding), 0), w)


def conv_transpose(x, w, stride):
    n, _, h, wide = x.shape
    out = np.zeros((n, w.shape[1], (h - 1) * stride + 3, (wide - 1) * stride + 3), np.float32)
    for i in range(h):
        for j in range(wide):
            part = np.einsum("nc,cokl->nokl", x[:, :, i, j], w)
            out[:, :, i * stride : i * stride + 3, j * stride : j * stride + 3] += part
    return out


def layer_norm(x, gamma, beta, count):
    axes = tuple(range(-count, 0))
    d = x - x.mean(axis=axes, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=axes, keepdims=True) + 1e-5) * gamma + beta


def batch_norm(v):
    column = (slice(None), None, None)
    return (v["x"] - v["c"][column]) / np.sqrt(v["p"][column] + 1e-5) * v["c"][column] + v["c"][column]


def attention(q, k, v, scale=None, corner=None):
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * (q.shape[3] ** -0.5 if scale is None else scale)
    if corner is not None:
        s = np.where(np.tril(np.ones(s.shape[2:]), corner) > 0, s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.einsum("bhqk,bkhd->bqhd", e / e.sum(axis=-1, keepdims=True), v)


CASES = {
    "R.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))": lambda v: max_pool(
        v["x"], (2, 2), (2, 2), (0, 0)
    ),
    "R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], dilation=[1, "
    '1], ceil_mode=False, layout="NCHW", out_layout="NCHW")': lambda v: max_pool(
        v["x"], (3, 3), (2, 2), (1, 1)
    ),
    "R.nn.max_pool2d(x, (2, 3), (1, 1))": lambda v: max_pool(v["x"], (2, 3), (1, 1), (0, 0)),
    "R.nn.max_pool2d(x, 2, 2)": lambda v: max_pool(v["x"], (2, 2), (2, 2), (0, 0)),
    "R.nn.max_pool2d(x)": lambda v: v["x"],
    "R.nn.avg_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1], count_include_pad=True)": lambda v: (
        avg_pool(v["x"], (3, 3), (2, 2), (1, 1), True)
    ),
    "R.nn.avg_pool2d(x, pool_size=[3, 3], padding=1)": lambda v: avg_pool(
        v["x"], (3, 3), (1, 1), (1, 1), False
    ),
    "R.nn.max_pool1d(line, pool_size=[2], strides=2)": lambda v: max_pool(v["line"], (2,), (2,), (0,)),
    "R.nn.avg_pool1d(line, 3)": lambda v: avg_pool(v["line"], (3,), (1,), (0,), False),
    "R.nn.max_pool3d(cube, 2, 2)": lambda v: max_pool(v["cube"], (2, 2, 2), (2, 2, 2), (0, 0, 0)),
    "R.nn.avg_pool3d(cube, [1, 2, 2])": lambda v: avg_pool(v["cube"], (1, 2, 2), (1, 1, 1), (0, 0, 0), False),
    "R.nn.adaptive_avg_pool2d(x, output_size=[1, 1])": lambda v: v["x"].mean(axis=(2, 3), keepdims=True),
    "R.nn.linear(a, wl)": lambda v: v["a"] @ v["wl"].T,
    "R.nn.linear(a, wl, bias)": lambda v: v["a"] @ v["wl"].T + v["bias"],
    "R.linear(a, wl, bias, out_dtype=None)": lambda v: v["a"] @ v["wl"].T + v["bias"],
    "R.flatten(x)": lambda v: v["x"].reshape(-1),
    "R.reshape(a, (-1, 4))": lambda v: v["a"].reshape(-1, 4),
    "R.split(a, 2, axis=1)": lambda v: np.split(v["a"], 2, axis=1),
    "R.split(a, indices_or_sections=3, axis=-1)": lambda v: np.split(v["a"], 3, axis=1),
    "R.split(a, [2, 4], axis=1)": lambda v: np.split(v["a"], [2, 4], axis=1),
    "R.split(a, 4, 1)": lambda v: np.split(v["a"], [2, 4, 6], axis=1),
    "R.concat((a, a), axis=1)": lambda v: np.concatenate([v["a"], v["a"]], axis=1),
    "R.concat([a, a, a])": lambda v: np.concatenate([v["a"]] * 3),
    "R.concat((a, R.exp(a)), 1)": lambda v: np.concatenate([v["a"], np.exp(v["a"])], axis=1),
    "R.strided_slice(a, axes=[1], begin=[0], end=[5], strides=[2])": lambda v: v["a"][:, 0:5:2],
    "R.strided_slice(a, axes=[0, 1], begin=[1, 1], end=[2, -1])": lambda v: v["a"][1:2, 1:-1],
    "R.strided_slice(a, (R.prim_value(1),), (R.prim_value(1),), (R.prim_value(4),), assume_inbound=False)": lambda v: (
        v["a"][:, 1:4]
    ),
    'R.zeros((2, 3), "float32")': lambda v: np.zeros((2, 3), np.float32),
    'R.zeros(R.shape([2, 3]), dtype="int32")': lambda v: np.zeros((2, 3), np.int32),
    'R.ones((2, 3), dtype="float16")': lambda v: np.ones((2, 3), np.float16),
    'R.full((2, 3), R.const(1.5, "float32"), dtype="float64")': lambda v: np.full((2, 3), 1.5, np.float64),
    'R.full(R.shape([2, 3]), R.const(1.5, "float32"))': lambda v: np.full((2, 3), 1.5, np.float32),
    "R.zeros_like(a)": lambda v: np.zeros_like(v["a"]),
    'R.ones_like(R.astype(a, "int32"))': lambda v: np.ones_like(v["a"], dtype=np.int32),
    "R.tril(a)": lambda v: np.tril(v["a"]),
    "R.tril(a, k=-1)": lambda v: np.tril(v["a"], -1),
    "R.triu(a, 1)": lambda v: np.triu(v["a"], 1),
    "R.nn.layer_norm(a, g, g, axes=[-1])": lambda v: layer_norm(v["a"], v["g"], v["g"], 1),
    'R.nn.layer_norm(cube, R.const(2.0, "float32"), R.const(1.0, "float32"), axes=[-2, -1], '
    "epsilon=1e-5, center=True, scale=True)": lambda v: layer_norm(v["cube"], 2, 1, 2),
    "R.nn.rms_norm(a, g, axes=-1)": lambda v: (
        v["a"] / np.sqrt((v["a"] ** 2).mean(axis=1, keepdims=True) + 1e-5) * v["g"]
    ),
    "R.nn.batch_norm(x, c, c, c, p, axis=1)[0]": batch_norm,
    "R.nn.batch_norm(x, c, c, c, p, axis=1, epsilon=1e-5, center=True, scale=True, "
    "momentum=0.1, training=False)": lambda v: ([batch_norm(v), v["c"], v["p"]]),
    "R.nn.attention(q, k, k)": lambda v: attention(v["q"], v["k"], v["k"]),
    'R.nn.attention(q, k, k, scale=0.5, causal_mask="TopLeft")': lambda v: attention(
        v["q"], v["k"], v["k"], 0.5, 0
    ),
    'R.nn.attention(q, k, k, None, causal_mask="BottomRight")': lambda v: attention(
        v["q"], v["k"], v["k"], None, 2
    ),
    "R.clip(a, 0, 6)": lambda v: np.clip(v["a"], 0, 6),
    "R.clip(a, min=-0.5, max=0.5)": lambda v: np.clip(v["a"], -0.5, 0.5),
    "R.clip(a, R.prim_value(0), R.prim_value(6))": lambda v: np.clip(v["a"], 0, 6),
    "R.add(a, 1.5)": lambda v: v["a"] + np.float32(1.5),
    "R.sum(a, axis=1)": lambda v: v["a"].sum(axis=1),
    "R.mean(a, 1, True)": lambda v: v["a"].mean(axis=1, keepdims=True),
    "R.max(a, axis=None)": lambda v: v["a"].max(),
    "R.variance(a, axis=1)": lambda v: v["a"].var(axis=1),
    "R.std(a, axis=[0], keepdims=True)": lambda v: v["a"].std(axis=0, keepdims=True),
    "R.nn.conv2d(x, w, strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1], groups=1, "
    'data_layout="NCHW", kernel_layout="OIHW", out_layout="NCHW", out_dtype="float32")': lambda v: conv(
        v["x"], v["w"], 1
    ),
    "R.nn.conv2d(x, w, padding=1)": lambda v: conv(v["x"], v["w"], 1),
    "R.nn.conv2d(x, w, 1, 1)": lambda v: conv(v["x"], v["w"], 1),
    "R.nn.conv2d_transpose(x, wt, strides=2)": lambda v: conv_transpose(v["x"], v["wt"], 2),
    "R.expand_dims(a, 0)": lambda v: v["a"][None],
    "R.nn.leakyrelu(a, 0.1)": lambda v: np.where(v["a"] < 0, np.float32(0.1) * v["a"], v["a"]),
    "R.nn.relu6(a)": lambda v: np.clip(v["a"], 0, 6),
    'R.arange(5, dtype="int64")': lambda v: np.arange(5),
    'R.arange(1, 10, 3, dtype="float32")': lambda v: np.arange(1, 10, 3, dtype=np.float32),
}


def module(expression):
    params = ", ".join(f'{name}: R.Tensor({shape}, "float32")' for name, shape in PARAMS.items())
    return f"""from tvm.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function
    def main({params}):
        with R.dataflow():
            y = {expression}
            R.output(y)
        return y
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spellings")
    arguments = []
    for name, value in inputs().items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    return arguments


@pytest.mark.parametrize("expression", CASES)
def test_spelling(bevel, files, tmp_path, expression):
    program = tmp_path / "program.py"
    program.write_text(module(expression))
    bevel("run", program, *files, "--output-dir", tmp_path, "--npy", "--no-cache")
    wanted = CASES[expression](inputs())
    wanted = wanted if isinstance(wanted, list) else [wanted]
    assert not (tmp_path / f"output_{len(wanted)}.npy").exists()
    for i, want in enumerate(wanted):
        got = np.load(tmp_path / f"output_{i}.npy")
        assert got.dtype == np.asarray(want).dtype and got.shape == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)

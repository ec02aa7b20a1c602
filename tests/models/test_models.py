"""Real models against onnxruntime without optimisations, on inputs to which the outputs are sensitive.

fp32 outputs: in every row the largest difference is at most 1e-4 of the row's largest value, and the cosine of all values
is 1 but for 1e-9; integers are equal.
"""

import numpy as np
import onnx
import pytest
from model_inputs import CASES
from onnx import numpy_helper
from oracle import session

LIMIT = 1e-4
SMALL_ROW = 0.05
ANGLE = 1e-9


def run_tool(bevel, model, feeds, folder):
    """Outputs of `bevel run`, in the order of the graph's outputs."""
    inputs, outputs = folder / "in", folder / "out"
    inputs.mkdir()
    outputs.mkdir()
    names = [entry.name for entry in onnx.load(model, load_external_data=False).graph.input]
    for name, value in feeds.items():
        proto = numpy_helper.from_array(np.asarray(value), name)
        (inputs / f"input_{names.index(name)}.pb").write_bytes(proto.SerializeToString())
    bevel("run", model, "--input-dir", inputs, "--output-dir", outputs, "--threads", 2)
    count = len(list(outputs.glob("output_*.pb")))
    files = [outputs / f"output_{index}.pb" for index in range(count)]
    return [numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())) for path in files]


def rows(value):
    """Along the last axis, as a matrix of doubles."""
    value = np.asarray(value, np.float64)
    return value.reshape(-1, value.shape[-1] if value.ndim and value.shape[-1] else 1)


def fault(got, want):
    """None when equal enough, else what differs."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind in "biu":
        return None if np.array_equal(got, want) else "integers differ"
    if not (np.isfinite(got).all() and np.isfinite(want).all()):
        return None if np.array_equal(got, want, equal_nan=True) else "not finite"
    got, want = rows(got), rows(want)
    scale = float(np.max(np.abs(want), initial=0.0))
    worst = np.max(np.abs(got - want), axis=1, initial=0.0)
    # A row of small values is held to its own size, down to where rounding of the large ones reaches.
    limits = LIMIT * np.maximum(np.max(np.abs(want), axis=1, initial=0.0), SMALL_ROW * scale)
    if not np.all(worst <= limits):
        row = int(np.argmax(worst / np.maximum(limits, 1e-300)))
        return f"row {row}: largest difference {worst[row]:.3g}, limit {limits[row]:.3g}"
    # All values together: many small differences add up here, and a part that is small everywhere shows.
    lengths = np.linalg.norm(got) * np.linalg.norm(want)
    apart = 1 - float(np.vdot(got, want)) / lengths if lengths else 0.0
    return None if apart <= ANGLE else f"the cosine of the outputs differs from 1 by {apart:.3g}"


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, cases in CASES.items() for case in cases])
def test_equals_onnxruntime(name, case, bevel, root, tmp_path):
    model = root / ".cache" / "models" / f"{name}.onnx"
    assert model.exists(), f"{model} is missing: run ./dev models"
    make = CASES[name][case]
    feeds, others = make(np.random.default_rng(1)), make(np.random.default_rng(2))
    oracle = session(model)
    want, different = oracle.run(None, feeds), oracle.run(None, others)
    got = run_tool(bevel, model, feeds, tmp_path)
    assert len(got) == len(want)
    faults = [
        f"output {index}: {text}" for index, pair in enumerate(zip(got, want)) if (text := fault(*pair))
    ]
    assert not faults
    # The comparison means something: an input of the same kind gives outputs that it tells apart.
    assert any(fault(first, second) for first, second in zip(want, different))


def test_fault_is_found():
    base = np.linspace(-1, 1, 11, dtype=np.float32)
    assert fault(base, base) is None
    assert fault(base + np.float32(2e-4), base)
    assert fault(base.astype(np.float64), base)
    assert fault(np.where(base > 0.9, np.nan, base).astype(np.float32), base)
    assert fault(np.full_like(base, np.nan), base)
    assert fault(np.arange(3), np.arange(3) + 1)


def test_fault_of_a_small_part_is_found():
    rng = np.random.default_rng(0)
    large, small = rng.standard_normal((1, 64)), rng.standard_normal((9, 64)) / 10
    base = np.concatenate([large, small]).astype(np.float32)
    wrong = base.copy()
    wrong[5] *= np.float32(1 + 3e-4)  # less than 1e-4 of the largest value
    assert np.abs(wrong - base).max() < LIMIT * np.abs(base).max()
    assert fault(wrong, base)
    everywhere = base + (5e-5 * np.abs(base).max(axis=1, keepdims=True) * rng.choice([-1, 1], base.shape))
    assert fault(everywhere.astype(np.float32), base)

"""Real models against onnxruntime without optimisations, on inputs to which the outputs are sensitive.

fp32 outputs: the largest difference is at most 1e-4 of the largest value of that output; integers are equal.
"""

import numpy as np
import onnx
import pytest
from model_inputs import CASES
from onnx import numpy_helper
from oracle import session

LIMIT = 1e-4


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


def fault(got, want):
    """None when equal enough, else what differs."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind in "biu":
        return None if np.array_equal(got, want) else "integers differ"
    if not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return "not finite in other places"
    scale = float(np.max(np.abs(want), initial=0.0))
    worst = float(np.max(np.abs(got.astype(np.float64) - want), initial=0.0))
    return None if worst <= LIMIT * scale else f"largest difference {worst:.3g}, largest value {scale:.3g}"


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
    assert fault(np.arange(3), np.arange(3) + 1)

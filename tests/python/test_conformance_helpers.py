"""The helpers of the conformance suite: what counts as equal, and when the committed minimum rises."""

import json

import numpy as np
import pytest


@pytest.fixture
def onnx_suite(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "tests" / "onnx"))
    import run_onnx

    return run_onnx


def results(suite, **counts):
    return [suite.Result("n", "node", status, "", []) for status, n in counts.items() for _ in range(n)]


def test_minimum_rises_only_in_a_whole_run_without_faults(onnx_suite, tmp_path):
    path = tmp_path / "minimum.json"

    def minimum_after(accept=True, whole=True, **counts):
        path.write_text(json.dumps({"pass": 3}))
        faults = onnx_suite.verdict(results(onnx_suite, **counts), accept, whole, path)
        return bool(faults), json.loads(path.read_text())["pass"]

    run = {"pass": 5}
    assert minimum_after(**run) == (False, 5)
    assert minimum_after(**run, refused=2) == (False, 5)
    assert minimum_after(**run, wrong=1) == (True, 3)
    assert minimum_after(**run, crash=1) == (True, 3)
    assert minimum_after(**run, accept=False) == (False, 3)
    assert minimum_after(**run, whole=False) == (False, 3)
    assert minimum_after(**{"pass": 2}) == (True, 3)


def test_difference_is_found(onnx_suite):
    def difference(got, want):
        return onnx_suite.compare.difference(got, want, 1e-3, 1e-7)

    base = np.linspace(1, 2, 5, dtype=np.float32)
    holes = np.where(base > 1.9, np.float32(np.nan), base)
    assert difference(base, base) is None
    assert difference(holes, holes) is None
    assert difference(np.full_like(base, np.nan), base)
    assert difference(holes, base)
    assert difference(base, holes)
    assert difference(base.astype(np.float64), base)
    assert difference(base.reshape(1, 5), base)
    assert difference(base * np.float32(1.01), base)

"""Compares outputs as onnx's own test runner does: type, shape, then values within the case's tolerances."""

import numpy as np


def difference(got, want, rtol, atol):
    """None when equal enough, else what differs; with no tolerance (None) only types and shapes count."""
    if want is None or got is None:
        return None if want is None and got is None else f"{describe(got)} instead of {describe(want)}"
    if isinstance(want, dict):
        if not isinstance(got, dict) or list(got) != list(want):
            return "another map"
        return difference(list(got.values()), list(want.values()), rtol, atol)
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return f"{describe(got)} instead of {describe(want)}"
        faults = [difference(mine, theirs, rtol, atol) for mine, theirs in zip(got, want)]
        return next((f"element {index}: {fault}" for index, fault in enumerate(faults) if fault), None)
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {list(got.shape)} instead of {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype} instead of {want.dtype}"
    return values_difference(got, want, rtol, atol) if rtol is not None else None


def values_difference(got, want, rtol, atol):
    if want.dtype.kind in "OUS":
        return None if got.tolist() == want.tolist() else f"{got.tolist()} instead of {want.tolist()}"
    if want.dtype.kind in "biu":
        same = got == want
    else:
        # bfloat16: two units in the last place, for the cases' values were rounded at other steps of a composition.
        if want.dtype.name == "bfloat16":
            rtol = max(rtol, 2**-6)
        if want.dtype.kind != "c":
            got, want = got.astype(np.float64), want.astype(np.float64)
        same = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if np.all(same):
        return None
    where = tuple(int(index) for index in np.argwhere(~same)[0]) if want.ndim else ()
    return f"{int(np.sum(~same))} of {want.size} values, first at {list(where)}: {got[where]} instead of {want[where]}"


def describe(value):
    if value is None:
        return "nothing"
    if isinstance(value, (list, tuple)):
        return f"{len(value)} elements"
    return type(value).__name__

"""Every ONNX operator with an input that it does not expect: each rank from 0 to 7, no elements, another element type.

The operators and their attributes come from onnx's own node tests. Each model holds many variants of one operator side by
side. The tool imports and runs them or refuses them with exit code 3: no signal, no internal error, no hang.
"""

import collections
import re
import subprocess
import warnings

import numpy as np
import onnx
import pytest
from conftest import tool_path
from onnx import helper, numpy_helper

CHUNK = 40  # variants in one model
TYPES = [np.float32, np.float16, np.int64, np.int32, np.uint8, np.bool_, np.object_]


def node_cases():
    """Operator: a few different node tests of one node, with inputs that are tensors."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    chosen = collections.defaultdict(dict)
    for case in cases:
        graph = case.model.graph
        if len(graph.node) != 1 or any(a.HasField("g") for a in graph.node[0].attribute):
            continue
        values = case.data_sets[0][0]
        if not all(isinstance(v, np.ndarray) for v in values) or sum(v.size for v in values) > 4096:
            continue
        node = graph.node[0]
        form = (tuple(bool(i) for i in node.input), tuple(a.name for a in node.attribute))
        chosen[(node.domain, node.op_type)].setdefault(form, case)
    return {key: list(forms.values())[:2] for key, forms in chosen.items() if key[0] in ("", "ai.onnx")}


CASES = node_cases()


def reshaped(value, shape):
    return np.resize(value, shape) if value.size else np.zeros(shape, value.dtype)


def converted(value, dtype):
    if dtype == np.object_:
        return np.array([str(v) for v in value.reshape(-1)], object).reshape(value.shape)
    if value.dtype == object:
        return np.zeros(value.shape, dtype)
    with np.errstate(all="ignore"):
        return value.astype(dtype)


def variants(value):
    for rank in range(8):
        for extent in (0, 2):
            if rank or extent:
                yield reshaped(value, (extent,) * rank)
    for axis in range(value.ndim):
        for extent in {0, 1, value.shape[axis] + 1} - {value.shape[axis]}:
            yield reshaped(value, (*value.shape[:axis], extent, *value.shape[axis + 1 :]))
    for dtype in TYPES:
        if value.dtype != dtype:
            yield converted(value, dtype)


def nodes_of(case):
    """(node, {input: value}, names that are weights) for every variant of every input."""
    node, values = (
        case.model.graph.node[0],
        dict(zip([i.name for i in case.model.graph.input], case.data_sets[0][0])),
    )
    for name, value in values.items():
        for changed in variants(value):
            for constant in (False, True):  # small integers are weights as a rule
                given = values | {name: changed}
                weights = {n for n, v in given.items() if v.dtype == object or (constant and v.size <= 16)}
                if not constant or weights:  # no text is made at random
                    yield node, given, weights


def model_of(case, chunk):
    nodes, inputs, weights, outputs = [], [], [], []
    for number, (node, values, constants) in chunk:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = f"v{number}"
        copy.input[:] = [i and f"{i}_{number}" for i in node.input]
        copy.output[:] = [o and f"{o}_{number}" for o in node.output]
        nodes.append(copy)
        outputs += [onnx.ValueInfoProto(name=o) for o in copy.output if o]
        for name, value in values.items():
            own = f"{name}_{number}"
            if name in constants:
                weights.append(numpy_helper.from_array(value, own))
            else:
                inputs.append(
                    helper.make_tensor_value_info(
                        own, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
                    )
                )
    graph = helper.make_graph(nodes, "sweep", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=case.model.opset_import, ir_version=10)


def call(*arguments):
    command = [str(tool_path()), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def described(number, variant):
    node, values, weights = variant
    shapes = {n: f"{v.dtype}{list(v.shape)}{' constant' if n in weights else ''}" for n, v in values.items()}
    return f"{node.op_type} {shapes}"


def fault_of(case, chunk, path):
    """ "" when every variant of the chunk runs or is refused; what goes wrong otherwise."""
    while chunk:
        onnx.save(model_of(case, chunk), path)
        run = call("run", path, "--random", 1, "--threads", 1, "--no-opt", "--no-cache")
        if run.returncode == 0:
            return ""
        refused = set(re.findall(r"node 'v(\d+)'", run.stderr)) if run.returncode == 3 else set()
        rest = [(number, variant) for number, variant in chunk if str(number) not in refused]
        if len(rest) < len(chunk):
            chunk = rest
        elif len(chunk) == 1:
            clean = run.returncode == 3 and "internal error" not in run.stderr
            return "" if clean else f"{described(*chunk[0])}: exit {run.returncode}\n{run.stderr[-600:]}"
        else:  # it fails for one that is not named
            half = len(chunk) // 2
            return fault_of(case, chunk[:half], path) or fault_of(case, chunk[half:], path)
    return ""


@pytest.mark.parametrize("key", sorted(CASES), ids=lambda key: key[1])
def test_unexpected_inputs(key, tmp_path):
    for case in CASES[key]:
        numbered = list(enumerate(nodes_of(case)))
        for first in range(0, len(numbered), CHUNK):
            fault = fault_of(case, numbered[first : first + CHUNK], tmp_path / "m.onnx")
            assert not fault, fault

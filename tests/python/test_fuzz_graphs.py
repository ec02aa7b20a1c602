"""Random graphs against onnxruntime. Values are small integers, so every order of additions gives the same bits.

`BEVEL_FUZZ=1000 .venv/bin/python -m pytest tests/python/test_fuzz_graphs.py` looks at more graphs; `BEVEL_FUZZ_FROM`
is the first seed. A model that fails stays in the folder that the message names.
"""

import os
import random

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

FIRST = int(os.environ.get("BEVEL_FUZZ_FROM", "0"))
COUNT = int(os.environ.get("BEVEL_FUZZ", "30"))
EXACT = 2**22  # beyond this float32 sums of integers would round


class RandomGraph:
    """Nodes over tensors whose shapes and largest magnitudes are known."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.values = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs = [], {}, {}
        self.tensors = []  # (name, shape, largest magnitude)
        rows, columns = self.random.choice([1, 2, 3, 5, 8, 17]), self.random.choice([1, 4, 8, 9, 16, 33])
        self.dims = {rows: "n", columns: "m"} if rows != columns and self.random.random() < 0.5 else {}
        for name, shape in [("x", (rows, columns)), ("y", (rows, columns)), ("v", (columns,))]:
            self.inputs[name] = self.integers(shape)
            self.tensors.append((name, shape, 3))

    def integers(self, shape):
        return self.values.integers(-3, 4, shape).astype(np.float32)

    def weight(self, value):
        name = f"w{len(self.weights)}"
        self.weights[name] = value
        return name

    def axis_list(self, *axes):
        return self.weight(np.array(axes, np.int64))

    def add(self, op, inputs, shape, bound, **attributes):
        if np.prod(shape) > 4096 or bound > EXACT:
            return
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"node_{name}", **attributes))
        self.tensors.append((name, tuple(int(d) for d in shape), bound))

    def pick(self, condition=lambda shape: True):
        found = [tensor for tensor in self.tensors[-8:] if condition(tensor[1])]
        return self.random.choice(found) if found else None

    def pick_two(self):
        """Two tensors that broadcast, as (first, second, shape of both); None where they do not."""
        first, second = self.pick(), self.random.choice(self.tensors)
        try:
            return first, second, np.broadcast_shapes(first[1], second[1])
        except ValueError:
            return None

    def step(self):
        self.random.choice(
            [self.unary, self.binary, self.binary, self.twice, self.reduce, self.matmul, self.move]
            + [self.shorten, self.join, self.choose, self.pool]
        )()

    def unary(self):
        a, shape, bound = self.pick()
        self.add(self.random.choice(["Relu", "Neg", "Abs", "Sign", "Identity", "Floor"]), [a], shape, bound)

    def binary(self):
        found = self.pick_two()
        if not found:
            return
        (a, _, x), (b, _, y), both = found
        op = self.random.choice(["Add", "Sub", "Mul", "Max", "Min"])
        self.add(op, [a, b], both, x * y if op == "Mul" else x + y)

    def twice(self):  # one tensor read several times by what is computed from it
        a, shape, x = self.pick()
        before = len(self.tensors)
        self.add(self.random.choice(["Relu", "Abs", "Neg"]), [a], shape, x)
        if len(self.tensors) > before:
            self.add("Add", [a, self.tensors[-1][0]], shape, 2 * x)

    def reduce(self):
        found = self.pick(lambda shape: len(shape) > 0)
        if not found:
            return
        a, shape, x = found
        axis, keep = self.random.randrange(len(shape)), self.random.random() < 0.5
        out = [d for i, d in enumerate(shape) if keep or i != axis]
        if keep:
            out[axis] = 1
        op = self.random.choice(["ReduceSum", "ReduceMax", "ReduceMin"])
        bound = x * shape[axis] if op == "ReduceSum" else x
        self.add(op, [a, self.axis_list(axis)], out, bound, keepdims=int(keep))

    def matmul(self):
        a, shape, x = self.pick(lambda shape: len(shape) >= 2) or (None, None, None)
        if a is None:
            return
        columns = self.random.choice([1, 5, 8, 16])
        weight = self.weight(self.integers((shape[-1], columns)))
        self.add("MatMul", [a, weight], (*shape[:-1], columns), 3 * x * shape[-1])

    def move(self):
        a, shape, x = self.pick(lambda shape: len(shape) >= 1) or (None, None, None)
        if a is None:
            return
        kind = self.random.randrange(4)
        if kind == 0:
            order = self.random.sample(range(len(shape)), len(shape))
            self.add("Transpose", [a], [shape[d] for d in order], x, perm=order)
        elif kind == 1:
            self.add("Reshape", [a, self.axis_list(-1)], [int(np.prod(shape))], x)
        elif kind == 2 and len(shape) < 4:
            at = self.random.randrange(len(shape) + 1)
            self.add("Unsqueeze", [a, self.axis_list(at)], [*shape[:at], 1, *shape[at:]], x)
        elif kind == 3 and len(shape) == 2 and 1 in shape:
            at = shape.index(1)
            self.add("Squeeze", [a, self.axis_list(at)], [d for i, d in enumerate(shape) if i != at], x)

    def shorten(self):
        a, shape, x = self.pick(lambda shape: any(d > 1 for d in shape)) or (None, None, None)
        if a is None:
            return
        axis = self.random.choice([i for i, d in enumerate(shape) if d > 1])
        begin, end, step = self.random.choice([(1, 2**31, 1), (0, -1, 1), (-1, -(2**40), -1), (0, 2**31, 2)])
        size = len(range(shape[axis])[begin:end:step])
        ends = [self.axis_list(begin), self.axis_list(end), self.axis_list(axis), self.axis_list(step)]
        self.add("Slice", [a, *ends], [size if i == axis else d for i, d in enumerate(shape)], x)

    def join(self):
        a, shape, x = self.pick(lambda shape: len(shape) > 0) or (None, None, None)
        if a is None:
            return
        axis = self.random.randrange(len(shape))
        same = [
            tensor
            for tensor in self.tensors
            if len(tensor[1]) == len(shape)
            and all(p == q for i, (p, q) in enumerate(zip(shape, tensor[1])) if i != axis)
        ]
        b, other, y = self.random.choice(same)
        joined = [d + other[i] if i == axis else d for i, d in enumerate(shape)]
        self.add("Concat", [a, b], joined, max(x, y), axis=axis)

    def choose(self):
        found = self.pick_two()
        if not found:
            return
        (a, _, x), (b, _, y), both = found
        condition = f"c{len(self.nodes)}"
        self.nodes.append(helper.make_node("Greater", [a, b], [condition], f"node_{condition}"))
        self.add("Where", [condition, b, a], both, max(x, y))

    def pool(self):
        a, shape, x = self.pick(lambda shape: len(shape) == 2) or (None, None, None)
        if a is None:
            return
        self.add("CumSum", [a, self.weight(np.array(0, np.int64))], shape, x * shape[0])

    def model(self):
        for _ in range(self.random.randrange(3, 16)):
            self.step()
        if not self.nodes:
            self.unary()
        made = [tensor for tensor in self.tensors if tensor[0] not in self.inputs]
        outputs = {made[-1][0], *(name for name, _, _ in self.random.sample(made, min(2, len(made))))}
        used = {name for node in self.nodes for name in node.input}
        graph = helper.make_graph(
            self.nodes,
            "random",
            [
                helper.make_tensor_value_info(
                    name, TensorProto.FLOAT, [self.dims.get(d, d) for d in value.shape]
                )
                for name, value in self.inputs.items()
            ],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in sorted(outputs)],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items() if name in used],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_graph_equals_onnxruntime(seed, bevel, tmp_path):
    graph = RandomGraph(seed)
    model = graph.model()
    path = tmp_path / f"random_{seed}.onnx"
    onnx.save(model, path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, graph.inputs)
    arguments = []
    for name, value in graph.inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        arguments += ["--input", f"{name}={tmp_path / name}.npy"]
    bevel("run", path, *arguments, "--output-dir", tmp_path, "--npy", "--threads", 2)
    for index, value in enumerate(expected):
        got = np.load(tmp_path / f"output_{index}.npy")
        np.testing.assert_array_equal(got, value, err_msg=f"output {index} of {path}", strict=True)

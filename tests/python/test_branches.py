"""If nodes and loops whose bodies compute the same expressions: what one branch binds is visible to no other.

Every branch draws its nodes from the same small set of expressions, constants and views, so that passes find equal calls
in several scopes; outputs are swapped, given through, and used again behind the If. Oracle: onnxruntime without its
rewrites.
"""

import os
import random

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

SEEDS = range(int(os.environ.get("BEVEL_FUZZ_BRANCHES", "16")))


class Bodies:
    """Graphs of float tensors of shape [2, 3] over what is visible around them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def common(self, nodes, visible):
        """One of few expressions, computed anew under a new name."""
        out, a = self.name(), self.random.choice(visible[:3])
        kind = self.random.randrange(5)
        if kind < 2:
            nodes.append(helper.make_node(["Exp", "Neg"][kind], ["x"], [out]))
        elif kind == 2:
            nodes.append(helper.make_node("Add", [a, "one"], [out]))
        elif kind == 3:  # constants alone
            nodes.append(helper.make_node("Mul", ["one", "one"], [out]))
        else:  # views
            flat = self.name()
            nodes.append(helper.make_node("Reshape", [a, "flat"], [flat]))
            nodes.append(helper.make_node("Reshape", [flat, "rows"], [out]))
        return out

    def body(self, visible, depth, outputs):
        nodes, seen = [], list(visible)
        for _ in range(self.random.randrange(1, 4)):
            if depth and self.random.random() < 0.5:
                seen += self.branch(nodes, seen, depth - 1)
            else:
                seen.append(self.common(nodes, seen))
        mixed = self.name()
        nodes.append(helper.make_node("Sum", self.random.choices(seen, k=2), [mixed]))
        chosen = self.random.choices([mixed, *seen], k=outputs)
        results = [self.name() for _ in chosen]
        nodes += [helper.make_node("Identity", [a], [b]) for a, b in zip(chosen, results)]
        return nodes, results

    def branch(self, nodes, visible, depth):
        graphs, outputs = [], self.random.randrange(1, 4)
        for side in ["then", "else"]:
            inner, results = self.body(visible, depth, outputs)
            infos = [helper.make_tensor_value_info(r, TensorProto.FLOAT, [2, 3]) for r in results]
            graphs.append(helper.make_graph(inner, side, [], infos))
        out = [self.name() for _ in range(outputs)]
        condition = self.random.choice(["c", "d"])
        nodes.append(helper.make_node("If", [condition], out, then_branch=graphs[0], else_branch=graphs[1]))
        return out

    def loop(self, nodes, visible):
        trip, going, carried, after = self.name(), self.name(), self.name(), self.name()
        inner, (result,) = self.body(["x", carried, *visible], 1, 1)
        inner.append(helper.make_node("Identity", [going], [after]))
        graph = helper.make_graph(
            inner,
            "loop",
            [
                helper.make_tensor_value_info(trip, TensorProto.INT64, []),
                helper.make_tensor_value_info(going, TensorProto.BOOL, []),
                helper.make_tensor_value_info(carried, TensorProto.FLOAT, [2, 3]),
            ],
            [
                helper.make_tensor_value_info(after, TensorProto.BOOL, []),
                helper.make_tensor_value_info(result, TensorProto.FLOAT, [2, 3]),
            ],
        )
        out = self.name()
        nodes.append(helper.make_node("Loop", ["trips", "", "x"], [out], body=graph))
        return [out]

    def model(self):
        nodes, seen = [], ["x", "y"]
        for _ in range(self.random.randrange(2, 5)):
            kind = self.random.randrange(4)
            if kind == 0:
                seen.append(self.common(nodes, seen))
            elif kind == 1:
                seen += self.loop(nodes, seen)
            else:
                seen += self.branch(nodes, seen, 2)
        seen += self.branch(nodes, seen, 1)
        outputs = seen[-3:]
        infos = [helper.make_tensor_value_info(o, TensorProto.FLOAT, [2, 3]) for o in dict.fromkeys(outputs)]
        weights = {
            "one": np.ones((2, 3), np.float32),
            "flat": np.array([6], np.int64),
            "rows": np.array([2, 3], np.int64),
        }
        inputs = [("x", TensorProto.FLOAT, [2, 3]), ("y", TensorProto.FLOAT, [2, 3])]
        inputs += [("c", TensorProto.BOOL, []), ("d", TensorProto.BOOL, []), ("trips", TensorProto.INT64, [])]
        graph = helper.make_graph(
            nodes,
            "branches",
            [helper.make_tensor_value_info(*i) for i in inputs],
            infos,
            [numpy_helper.from_array(w, name) for name, w in weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("seed", SEEDS)
def test_branches_that_share_expressions(seed, bevel, tmp_path):
    model = Bodies(seed).model()
    onnx.save(model, tmp_path / "m.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    values = np.random.default_rng(seed)
    for c, d in [(False, True), (True, False)]:
        inputs = {
            "x": values.standard_normal((2, 3), np.float32),
            "y": values.standard_normal((2, 3), np.float32),
            "c": np.array(c),
            "d": np.array(d),
            "trips": np.array(2, np.int64),
        }
        expected = session.run(None, inputs)
        arguments = []
        for name, value in inputs.items():
            np.save(tmp_path / f"{name}.npy", value)
            arguments += ["--input", f"{name}={tmp_path / name}.npy"]
        bevel("run", tmp_path / "m.onnx", *arguments, "--output-dir", tmp_path, "--npy", "--threads", 1)
        for index, value in enumerate(expected):
            got = np.load(tmp_path / f"output_{index}.npy")
            np.testing.assert_allclose(
                got, value, rtol=1e-5, atol=1e-5, err_msg=f"output {index}", strict=True
            )

"""One peer in a process of its own: `peers.py ENGINE MODEL INPUTS.npz THREADS`.

Prints a line of JSON when it is ready ({"check": mean absolute value of the first output} or {"error": …}), then, for every
number of seconds that it reads from standard input, runs for that long and prints {"median_ms": …, "min_ms": …, "runs": …}.
"""

import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np


def onnxruntime_engine(model, feeds, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)[0]


def openvino_engine(model, feeds, threads):
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    request = openvino.Core().compile_model(str(model), "CPU", settings).create_infer_request()
    return lambda: request.infer(feeds, share_inputs=True)[0]


def mnn_engine(model, feeds, threads):
    import _tools  # MNN's converter without its command line, which reports its use over the network
    import MNN.expr as expr
    import MNN.nn as nn
    import onnx

    converted = pathlib.Path(model).with_suffix(".mnn")
    if not converted.exists():
        _tools.mnnconvert(
            ["", "-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(converted), "--bizCode", "bench"]
        )
    outputs = [entry.name for entry in onnx.load(model, load_external_data=False).graph.output]
    manager = nn.create_runtime_manager(({"backend": "CPU", "precision": "high", "numThread": threads},))
    module = nn.load_module_from_file(str(converted), list(feeds), outputs, runtime_manager=manager)
    variables = []
    for value in feeds.values():
        integers = value.dtype.kind in "iu"
        variable = expr.placeholder(list(value.shape), expr.NCHW, expr.int if integers else expr.float)
        variable.write(value.astype(np.int32) if integers else value)
        variables.append(variable)

    def run():
        results = module.forward(variables)
        return np.array((results[0] if isinstance(results, (list, tuple)) else results).read())

    return run


def openblas_engine(model, feeds, threads):
    """A matmul by NumPy's OpenBLAS; the second operand is the model's constant."""
    import onnx

    graph = onnx.load(model).graph
    if [node.op_type for node in graph.node] != ["MatMul"]:
        raise ValueError("not a matmul")
    left, right = next(iter(feeds.values())), onnx.numpy_helper.to_array(graph.initializer[0])
    out = np.empty((left.shape[0], right.shape[1]), np.float32)
    return lambda: np.matmul(left, right, out=out)


ENGINES = {
    "onnxruntime": onnxruntime_engine,
    "openvino": openvino_engine,
    "MNN": mnn_engine,
    "OpenBLAS": openblas_engine,
}


def measure(run, seconds):
    times = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return {"median_ms": statistics.median(times), "min_ms": min(times), "runs": len(times)}


def main():
    engine, model, inputs, threads = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print is not an answer

    def answer(value):
        print(json.dumps(value), file=answers, flush=True)

    try:
        run = ENGINES[engine](model, dict(np.load(inputs)), int(threads))
        first = run()
        measure(run, 0.1)
        answer({"check": float(np.mean(np.abs(first)))})
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"})
        return
    for line in sys.stdin:
        answer(measure(run, float(line)))


if __name__ == "__main__":
    main()

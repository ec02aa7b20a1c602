"""The ONNX conformance cases as folders: node and model tests built in memory, the others copied from the onnx package.

    <folder>/<name>/model.onnx, case.json (kind, rtol, atol), data_0/input_0.pb …, data_0/output_0.pb …

The number in input_<i>.pb counts the graph's inputs, initialisers among them included.
"""

import json
import os
import pathlib
import shutil
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

FORMAT = 2


def to_proto(value, value_info):
    """A test value in the form of its file."""
    kind = value_info.type.WhichOneof("value")
    if kind == "map_type":
        return numpy_helper.from_dict(value, value_info.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, value_info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, value_info.name)
    return (
        value
        if isinstance(value, TensorProto)
        else numpy_helper.from_array(np.asarray(value), value_info.name)
    )


def from_file(path, value_info):
    """The value in a file: an array, a list, a dict or None."""
    kind = value_info.type.WhichOneof("value")
    data = pathlib.Path(path).read_bytes()
    if kind == "map_type":
        return numpy_helper.to_dict(onnx.MapProto.FromString(data))
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(TensorProto.FromString(data))


def write_head(folder, kind, rtol, atol):
    (folder / "case.json").write_text(json.dumps({"kind": kind, "rtol": rtol, "atol": atol}))


def write_built_case(folder, case):
    write_head(folder, case.kind, case.rtol, case.atol)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"data_{number}"
        data.mkdir()
        for prefix, values, infos in [
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ]:
            for index, (value, info) in enumerate(zip(values, infos)):
                (data / f"{prefix}_{index}.pb").write_bytes(to_proto(value, info).SerializeToString())


def write_file_case(folder, kind, source):
    limits = json.loads((source / "data.json").read_text()) if (source / "data.json").exists() else {}
    write_head(folder, kind, limits.get("rtol", 1e-3), limits.get("atol", 1e-7))
    shutil.copy(source / "model.onnx", folder / "model.onnx")
    for number, data in enumerate(sorted(source.glob("test_data_set_*"))):
        shutil.copytree(data, folder / f"data_{number}")


def write_light_case(folder, source, limits):
    """A light model: known architectures with constant weights; the input is a ramp from 0 to 1, as in onnx's own runner."""
    write_head(folder, "light", limits["rtol"], limits["atol"])
    shutil.copy(source, folder / "model.onnx")
    graph = onnx.load(source).graph
    data = folder / "data_0"
    data.mkdir()
    initializers = {entry.name for entry in graph.initializer}
    for index, info in enumerate(graph.input):
        if info.name not in initializers:
            shape = [max(dim.dim_value, 1) for dim in info.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            value = (np.arange(count).reshape(shape) / count).astype(np.float32)
            (data / f"input_{index}.pb").write_bytes(
                numpy_helper.from_array(value, info.name).SerializeToString()
            )
    for index in range(len(graph.output)):
        shutil.copy(f"{str(source)[:-5]}_output_{index}.pb", data / f"output_{index}.pb")


def write_all(folder):
    from onnx.backend.test.case import model, node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.random.seed(0)
        built = node.collect_testcases() + model.collect_testcases()

    def fresh(name):
        path = folder / name
        path.mkdir()
        return path

    for case in built:
        if case.model is not None:  # the others name the light models, which are written below
            write_built_case(fresh(case.name), case)
    data = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
    for kind in ["simple", "pytorch-operator", "pytorch-converted"]:
        for source in sorted(path for path in (data / kind).iterdir() if (path / "model.onnx").exists()):
            if not (folder / source.name).exists():  # most of the simple ones were built above
                write_file_case(fresh(source.name), kind, source)
    for source in sorted(path for path in (data / "real").iterdir() if (path / "data.json").exists()):
        limits = json.loads((source / "data.json").read_text())
        write_light_case(
            fresh(f"{source.name}_light"), data / "light" / pathlib.Path(limits["url"]).name, limits
        )


def prepare(cache):
    """The folder with all cases, made once for each version of onnx."""
    folder = pathlib.Path(cache) / f"onnx-cases-{onnx.__version__}-{FORMAT}"
    if not folder.exists():
        print("writing the conformance cases ...", flush=True)
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        partial.mkdir(parents=True)
        try:
            write_all(partial)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder

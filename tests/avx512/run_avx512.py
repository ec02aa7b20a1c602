"""Values of code with 512-bit vectors: `run_avx512.py [--filter REGEX] [--limit SECONDS] [--jobs N] [--out FOLDER]`.

Compiles real models, small kernels and the ONNX conformance cases for x86-64-v4, runs the libraries in an emulated computer
that has AVX-512 (machine.py), and compares on this side what comes out with onnxruntime, or with what the conformance suite
expects. Fails when a result is wrong or missing, a compile crashes, or the emulator does not come to its end.

Two cases with planted faults show that faults are found: an expectation that was changed, and a library that was cut short.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import machine
import numpy as np
import onnx
from kernels import kernels
from onnx import TensorProto, numpy_helper

ROOT = machine.ROOT
sys.path += [str(ROOT / "tests" / "onnx"), str(ROOT / "tests" / "models")]

import cases as conformance  # noqa: E402
import compare  # noqa: E402
import run_onnx  # noqa: E402
from model_inputs import CASES  # noqa: E402
from oracle import session  # noqa: E402

BUILD = ROOT / "build"
KERNEL = ROOT / ".cache" / "emulator" / "vmlinuz"
TARGET = "x86-64-v4"
MODEL_LIMIT = 1e-4
# model: its cases of tests/models that the emulator runs in seconds
MODELS = {
    "magika": ["one"],
    "silero_vad_16k_op15": ["later", "batch3"],
    "silero_vad": ["start", "later", "8k"],
    "ch_ppocr_mobile_v2.0_cls": ["75"],
    "bert_small": ["masked"],
    "mobilenet_v3_small": ["224"],
    "lstm_bidirectional": ["64"],
    "resnet18": ["224"],
}
GROUPS = ["models", "kernels", "onnx"]
DTYPES = {  # ONNX element type: code and bits of DLPack
    TensorProto.FLOAT: (2, 32), TensorProto.DOUBLE: (2, 64), TensorProto.FLOAT16: (2, 16), TensorProto.BFLOAT16: (4, 16),
    TensorProto.INT8: (0, 8), TensorProto.INT16: (0, 16), TensorProto.INT32: (0, 32), TensorProto.INT64: (0, 64),
    TensorProto.UINT8: (1, 8), TensorProto.UINT16: (1, 16), TensorProto.UINT32: (1, 32), TensorProto.UINT64: (1, 64),
    TensorProto.INT4: (0, 4), TensorProto.UINT4: (1, 4), TensorProto.INT2: (0, 2), TensorProto.UINT2: (1, 2),
    TensorProto.BOOL: (6, 8), TensorProto.COMPLEX64: (5, 64), TensorProto.COMPLEX128: (5, 128),
    TensorProto.FLOAT8E4M3FN: (10, 8), TensorProto.FLOAT8E4M3FNUZ: (11, 8), TensorProto.FLOAT8E5M2: (12, 8),
    TensorProto.FLOAT8E5M2FNUZ: (13, 8), TensorProto.FLOAT8E8M0: (14, 8), TensorProto.FLOAT4E2M1: (17, 4),
}  # fmt: skip
ELEMENT_TYPES = {pair: kind for kind, pair in DTYPES.items()}


@dataclasses.dataclass
class Case:
    """One run of one library. An expected output has an absolute tolerance; with rtol None only its form counts."""

    group: str
    name: str
    model: pathlib.Path
    feeds: dict
    expected: list
    rtol: float
    atols: list
    fault: str = ""  # why it is refused or failed; set as it becomes known
    refused: bool = False

    def library(self, folder):
        return folder / "libraries" / self.group / f"{self.name.split('/')[0]}.so"


def largest(value):
    return float(np.max(np.abs(value[np.isfinite(value)].astype(np.float64)), initial=0.0))


def oracle_case(group, name, model, feeds, rtol, part):
    """With onnxruntime's outputs; floating-point ones may differ by `part` of their largest value."""
    expected = session(model).run(None, feeds)
    atols = [part * largest(value) if value.dtype.kind in "fV" else 0 for value in expected]
    return Case(group, name, model, feeds, expected, rtol, atols)


def model_cases():
    found = []
    for name, chosen in MODELS.items():
        path = ROOT / ".cache" / "models" / f"{name}.onnx"
        for case in chosen:
            feeds = CASES[name][case](np.random.default_rng(1))
            found.append(oracle_case("models", f"{name}/{case}", path, feeds, 0, MODEL_LIMIT))
    return found


def kernel_cases(folder):
    found = []
    folder.mkdir(parents=True, exist_ok=True)
    for name, (model, feeds, rtol, part) in kernels().items():
        path, content = folder / f"{name}.onnx", model.SerializeToString()
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
        found.append(oracle_case("kernels", name, path, feeds, rtol, part))
    return found


def holds_tensors(infos):
    kinds = [(info.type.WhichOneof("value"), info.type.tensor_type.elem_type) for info in infos]
    return all(kind == "tensor_type" and element in DTYPES for kind, element in kinds)


def onnx_cases():
    """The conformance cases whose inputs and outputs are tensors of numbers."""
    found = []
    for folder in sorted(conformance.prepare(ROOT / ".cache").iterdir()):
        head = json.loads((folder / "case.json").read_text())
        graph = onnx.load(folder / "model.onnx").graph
        if head["kind"] == "light" or not holds_tensors([*graph.input, *graph.output]):
            continue
        rtol, atol = max(head["rtol"], run_onnx.ROUNDED_BETWEEN.get(folder.name, 0)), head["atol"]
        if run_onnx.RANDOM.match(folder.name):
            rtol = None
        for data in sorted(folder.glob("data_*")):
            values = {
                prefix: {
                    info.name: conformance.from_file(data / f"{prefix}_{index}.pb", info)
                    for index, info in enumerate(infos)
                    if (data / f"{prefix}_{index}.pb").exists()
                }
                for prefix, infos in (("input", graph.input), ("output", graph.output))
            }
            expected = list(values["output"].values())
            name = f"{folder.name}/{data.name[5:]}"
            model = folder / "model.onnx"
            found.append(Case("onnx", name, model, values["input"], expected, rtol, [atol] * len(expected)))
    return found


def compile_library(tool, case, folder):
    """Where a library is missing or older than the tool or the model."""
    library = case.library(folder)
    if library.exists() and library.stat().st_mtime > max(
        path.stat().st_mtime for path in (pathlib.Path(tool), case.model)
    ):
        return
    library.parent.mkdir(parents=True, exist_ok=True)
    partial = library.with_suffix(".part.so")
    command = [tool, "compile", case.model, "-o", partial, "--target", TARGET, "--no-debug", "--no-cache"]
    try:
        result = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, errors="replace", timeout=120
        )
    except subprocess.TimeoutExpired:
        case.fault = "compile: no end within 120 s"
        return
    if result.returncode == 0:
        partial.rename(library)
    else:
        case.refused = result.returncode == 3 and case.group == "onnx"
        case.fault = f"compile: exit code {result.returncode}: {run_onnx.last_line(result.stderr)}"


def compile_all(tool, cases, folder, jobs):
    by_library = {}
    for case in cases:
        by_library.setdefault(case.library(folder), []).append(case)
    with ThreadPoolExecutor(jobs) as pool:
        firsts = [group[0] for group in by_library.values()]
        for number, _ in enumerate(pool.map(lambda case: compile_library(tool, case, folder), firsts), 1):
            if number % 200 == 0:
                print(f"  {number} of {len(firsts)} compiled", flush=True)
    for first, *others in by_library.values():
        for case in others:
            case.fault, case.refused = first.fault, first.refused


def uses_512_bits(library):
    listed = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True)
    return "%zmm" in listed.stdout


def plant_faults(cases, folder):
    """Copies of the smallest case that must be found wrong."""
    floats = [
        case
        for case in cases
        if case.rtol is not None and case.expected[0].dtype == np.float32 and case.expected[0].size
    ]
    sound = min(floats, key=lambda case: case.library(folder).stat().st_size)
    changed = dataclasses.replace(sound, group="planted", name="changed_expectation")
    changed.expected = [value.copy() for value in sound.expected]
    changed.expected[0].flat[0] = 2 * largest(sound.expected[0]) + 1000
    cut = dataclasses.replace(sound, group="planted", name="cut_library")
    for case in (changed, cut):
        case.library(folder).parent.mkdir(parents=True, exist_ok=True)
    content = sound.library(folder).read_bytes()
    changed.library(folder).write_bytes(content)
    cut.library(folder).write_bytes(content[: len(content) // 2])
    return [changed, cut]


def place_cases(cases, folder, root):
    """The libraries, the inputs and the list of the cases in the guest's file system."""
    place, lines = root / "cases", []
    place.mkdir()
    for number, case in enumerate(cases):
        library = case.library(folder)
        inside = f"{case.group}-{library.stem}"
        if not (place / inside).exists():
            (place / inside).mkdir()
            shutil.copy(library, place / inside / "model.so")
        lines.append(f"case {case.group}:{case.name} /cases/{inside}/model.so")
        for index, (name, value) in enumerate(case.feeds.items()):
            proto = numpy_helper.from_array(np.asarray(value))
            file = f"{inside}/{number}_{index}"
            (place / file).write_bytes(proto.raw_data)
            words = [
                *DTYPES[proto.data_type],
                len(proto.dims),
                *proto.dims,
                len(proto.raw_data),
                f"/cases/{file}",
            ]
            lines.append(f"input {name} {' '.join(map(str, words))}")
        lines.append("run")
    (place / "list").write_text("".join(f"{line}\n" for line in lines))


def read_results(data):
    """({case: outputs, or a text that says what failed}, text before the first case, whether the end was reached)."""
    found, place, name, before = {}, 0, None, []
    while (line_end := data.find(b"\n", place)) >= 0:
        verb, *words = data[place:line_end].decode(errors="replace").split(" ") or [""]
        place = line_end + 1
        if verb == "done":
            return found, before, True
        if verb == "case":
            name = words[0]
            found[name], outputs = "it has not ended", []
        elif name is None:
            before.append(" ".join([verb, *words]))
        elif verb == "output":
            code, bits, rank, *dims, size = map(int, words)
            kind = ELEMENT_TYPES[code, bits]
            raw = data[place : place + size]
            outputs.append(TensorProto(data_type=kind, dims=dims, raw_data=raw))
            place += size
        elif verb == "end":
            found[name] = [numpy_helper.to_array(proto) for proto in outputs]
        else:
            found[name] = " ".join([verb, *words])
    return found, before, False


def judge(case, outcome):
    """Why the case failed, or nothing."""
    if isinstance(outcome, str):
        return outcome
    if len(outcome) != len(case.expected):
        return f"{len(outcome)} outputs instead of {len(case.expected)}"
    for index, (got, want, atol) in enumerate(zip(outcome, case.expected, case.atols)):
        if fault := compare.difference(got, want, case.rtol, atol):
            return f"output {index}: {fault}"
    return ""


def gather(pattern, folder):
    """All cases whose group:name matches."""
    cases = [*model_cases(), *kernel_cases(folder / "kernels"), *onnx_cases()]
    unspoken = [case for case in cases if any(re.search(r"\s", name) for name in case.feeds)]
    assert not unspoken, "names of inputs must be words"
    return [case for case in cases if re.search(pattern, f"{case.group}:{case.name}")]


def emulate(cases, args, folder):
    """Gives {case: outcome} of the emulated machine, and what is wrong with the machine."""
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    machine.build_guest(BUILD, root)
    place_cases(cases, folder, root)
    machine.build_disc(folder, KERNEL, root)
    print(f"  {len(cases)} runs on a disc of {(folder / 'boot.iso').stat().st_size >> 20} MB", flush=True)

    def progress(data):
        print(f"  {len(read_results(data)[0])} of {len(cases)} runs begun", flush=True)

    found, about, ended = read_results(machine.run(folder, args.limit, progress))
    faults = (
        []
        if ended
        else [f"the emulator did not come to its end within {args.limit:.0f} s (console.txt, bochs.log)"]
    )
    flags = next((line.split() for line in about if line.startswith("flags")), [])
    missing = [flag for flag in ("avx512f", "avx512bw", "avx512dq", "avx512vl") if flag not in flags]
    if missing:
        faults.append(f"the emulated processor lacks {', '.join(missing)}")
    return found, faults


def print_table(cases, wide):
    print(f"{'':10}{'pass':>8}{'wrong':>8}{'refused':>8}{'all':>8}{'libraries with zmm':>22}")
    for group in GROUPS:
        mine = [case for case in cases if case.group == group]
        refused = sum(case.refused for case in mine)
        wrong = sum(bool(case.fault) for case in mine) - refused
        counts = [len(mine) - wrong - refused, wrong, refused, len(mine)]
        libraries = f"{sum(wide[group].values())} of {len(wide[group])}"
        print(f"{group:10}" + "".join(f"{count:>8}" for count in counts) + f"{libraries:>22}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--filter", default="", help="only cases whose GROUP:NAME matches this regular expression"
    )
    parser.add_argument("--limit", type=float, default=1800, help="seconds for the emulator")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--out", type=pathlib.Path, default=BUILD / "avx512", help="folder for all that is made"
    )
    args = parser.parse_args()
    start, folder = time.monotonic(), args.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    cases = gather(args.filter, folder)
    print(f"  {len(cases)} cases", flush=True)
    compile_all(BUILD / "bevel", cases, folder, args.jobs)
    runnable = [case for case in cases if not case.fault]
    if not runnable:
        sys.exit("FAILED: no case was chosen that compiles")
    planted = plant_faults(runnable, folder)
    wide = collections.defaultdict(dict)
    libraries = sorted({(case.group, case.library(folder)) for case in runnable})
    with ThreadPoolExecutor(args.jobs) as pool:
        for (group, path), answer in zip(libraries, pool.map(uses_512_bits, [path for _, path in libraries])):
            wide[group][path] = answer
    outcomes, faults = emulate([*runnable, *planted], args, folder)
    for case in [*runnable, *planted]:
        case.fault = judge(case, outcomes.get(f"{case.group}:{case.name}", "it was not run"))
    faults += [f"the planted fault {case.name} was not found" for case in planted if not case.fault]
    faults += [f"{path.stem} has no 512-bit vectors" for path, answer in wide["models"].items() if not answer]
    for case in cases:
        if case.fault and not case.refused:
            print(f"wrong    {case.group}:{case.name}: {case.fault}")
    print_table(cases, wide)
    refused = sum(case.refused for case in cases)
    wrong = sum(bool(case.fault) for case in cases) - refused
    for fault in faults:
        print(f"FAILED: {fault}")
    print(
        f"{len(cases) - wrong - refused} passed, {wrong} failed, {refused} refused in {time.monotonic() - start:.0f} s"
    )
    sys.exit(1 if faults or wrong else 0)


if __name__ == "__main__":
    main()

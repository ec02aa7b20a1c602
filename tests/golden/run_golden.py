"""Golden text tests: every tests/golden/<area>/*.txt is one behaviour of the tool.

    What is shown, in a sentence (anything before the first section).
    # input [NAME]              a file to give to the tool; the first one is $INPUT (default name: input.py)
    ...
    # run                       a line a call of the tool; a line that ends in a backslash goes on in the next one
    opt $INPUT --passes simplify
    # output                    what the calls print to standard output
    ...
    # error                     instead of or after it, for each call that fails: "exit N", then its standard error
    exit 3
    ...

$INPUT is the path of the first input, $DIR the folder with all inputs (calls run there), $ROOT the repository. In
what is compared, the paths are written back as these names, and half of the machine's memory as $MEMORY. A printed
module must be read back as the same text.
`./dev golden --update [FILTER]` rewrites outputs and errors.

The same holds for the reference pages in docs/ that the tool makes from its tables: steps.md, ops.md, passes.md. Each
step of steps.md is followed by its example, tests/golden/steps/STEP.txt.
It also writes the table of line counts in docs/architecture.md.
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "structure"))
import line_counts  # noqa: E402

MODULE = "from tvm.script import ir as I"  # how a printed module begins
PAGES = ["ops", "passes", "steps"]  # `bevel docs PAGE` is docs/PAGE.md
SECTION = re.compile(r"^# (input|run|output|error)(?: (\S+))?$")


def files():
    return sorted(HERE.glob("*/**/*.txt"))


def split(text):
    """[(section, name, body)], the first one being ("", None, description)."""
    sections = [("", None, [])]
    for line in text.splitlines():
        match = SECTION.match(line)
        if match:
            sections.append((match.group(1), match.group(2), []))
        else:
            sections[-1][2].append(line)
    return [(kind, name, "\n".join(body).strip("\n")) for kind, name, body in sections]


def calls(body):
    return [line for line in body.replace("\\\n", " ").splitlines() if line.strip()]


def execute(sections, tool):
    """Runs the calls of a file; gives (output, error), error being None when every call ended with 0."""
    with tempfile.TemporaryDirectory(prefix="golden") as folder:
        inputs = [(name or "input.py", body) for kind, name, body in sections if kind == "input"]
        for name, body in inputs:
            (pathlib.Path(folder) / name).write_text(body + "\n")
        names = {"$DIR": folder, "$ROOT": str(ROOT)}
        if inputs:
            names["$INPUT"] = os.path.join(folder, inputs[0][0])

        def hide(text):
            for name, path in sorted(names.items(), key=lambda item: -len(item[1])):
                text = text.replace(path, name)
            text = re.sub(r"the most is [0-9.]+ MB", "the most is $MEMORY", text)
            return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")

        output, errors = [], []
        for call in [call for kind, _, body in sections if kind == "run" for call in calls(body)]:
            for name, path in names.items():
                call = call.replace(name, path)
            result = subprocess.run(
                [str(tool), *shlex.split(call)],
                capture_output=True,
                text=True,
                cwd=folder,
                timeout=120,
                errors="replace",
            )
            output.append(hide(result.stdout))
            if (
                result.stdout.startswith(MODULE) and "metadata[" not in result.stdout
            ):  # its constants lie elsewhere
                read_again(result.stdout, tool, folder)
            if result.returncode != 0:
                errors.append(f"exit {result.returncode}\n{hide(result.stderr)}".strip("\n"))
        return "\n".join(part for part in output if part), "\n".join(errors) or None


def read_again(text, tool, folder):
    """What the tool prints as a module it reads, verifies and prints again as the same text."""
    path = pathlib.Path(folder) / "printed.py"
    path.write_text(text)
    again = subprocess.run([str(tool), "opt", str(path)], capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    assert again.stdout == text


def expected(sections):
    output = [body for kind, _, body in sections if kind == "output"]
    error = [body for kind, _, body in sections if kind == "error"]
    return "\n".join(output), (error[0] if error else None)


def rewritten(sections, output, error):
    """The text of a golden file with new results."""
    parts = [body for kind, _, body in sections if kind == "" and body]
    for kind, name, body in sections:
        if kind in ("input", "run"):
            parts.append(f"# {kind}{' ' + name if name else ''}\n{body}")
    if output or error is None:
        parts.append(f"# output\n{output}")
    if error is not None:
        parts.append(f"# error\n{error}")
    return "\n".join(parts).rstrip("\n") + "\n"


def tool_path():
    return pathlib.Path(os.environ.get("BEVEL", ROOT / "build" / "bevel")).resolve()


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(HERE).with_suffix("")))
def test_golden(path):
    sections = split(path.read_text())
    kinds = [kind for kind, _, _ in sections]
    assert "run" in kinds and ("output" in kinds or "error" in kinds), (
        "a golden file has a run and an output or error"
    )
    assert tool_path().exists(), f"{tool_path()} is not built: run ./dev build"
    output, error = execute(sections, tool_path())
    wanted_output, wanted_error = expected(sections)
    assert error == wanted_error
    assert output == wanted_output


def page_text(page):
    text = subprocess.run([tool_path(), "docs", page], capture_output=True, text=True, check=True).stdout
    if page != "steps":
        return text
    head, *entries = text.split("\n## ")
    return "\n## ".join([head, *(entry + example(entry.split("\n")[0]) for entry in entries)])


def example(step):
    """The golden file of a step as the page shows it: program, script, and the program after it."""
    sections = split((HERE / "steps" / f"{step}.txt").read_text())
    program, script = [body for kind, _, body in sections if kind == "input"]
    after = expected(sections)[0].split("\n\n", 1)[1]  # without the imports
    shown = [("Before", program), ("Steps", script), ("After", after)]
    return "".join(f"{title}:\n\n```python\n{code}\n```\n\n" for title, code in shown)


@pytest.mark.parametrize("page", PAGES)
def test_generated_page(page):
    path = ROOT / "docs" / f"{page}.md"
    assert path.exists() and path.read_text() == page_text(page), (
        f"docs/{page}.md is not current: run ./dev golden --update"
    )


def update_page(page):
    path = ROOT / "docs" / f"{page}.md"
    text = page_text(page)
    if not path.exists() or text != path.read_text():
        path.write_text(text)
        print(f"updated {path.relative_to(ROOT)}", flush=True)


def update(path):
    sections = split(path.read_text())
    text = rewritten(sections, *execute(sections, tool_path()))
    if text != path.read_text():
        path.write_text(text)
        print(f"updated {path.relative_to(ROOT)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Golden text tests.")
    parser.add_argument("--update", action="store_true", help="rewrite the expected outputs")
    parser.add_argument("filter", nargs="?", default="", help="part of the path of the files meant")
    args = parser.parse_args()
    if not args.update:
        sys.exit(
            pytest.main([str(HERE / "run_golden.py"), "-q", *(["-k", args.filter] if args.filter else [])])
        )
    chosen = [path for path in files() if args.filter in str(path.relative_to(HERE))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(update, chosen))
    pages = [page for page in PAGES if args.filter in f"docs/{page}.md"]
    for page in pages:
        update_page(page)
    if args.filter in "docs/architecture.md":
        line_counts.update_page()
    print(f"{len(chosen)} golden files and {len(pages)} pages looked at")


if __name__ == "__main__":
    main()

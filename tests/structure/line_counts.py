"""Lines of the source by folder, and of the schedule steps: the table in docs/architecture.md.

`./dev golden --update` writes the table; the structure test checks its form, and the budget against the source.
"""

import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- line counts: begin -->", "<!-- line counts: end -->"
SUFFIXES = {".cc", ".h", ".c", ".def", ".inc"}
BUDGET = 64_000  # lines of src

# What the table compares with: (lines, lines of code) of each folder at commit cd8dfcc.
REFERENCE = {
    "arith": (5613, 4174),
    "autosched": (1298, 888),
    "base": (1126, 788),
    "codegen": (4613, 3493),
    "driver": (3747, 2831),
    "graph": (4197, 2907),
    "import": (6005, 4603),
    "ir": (11431, 8898),
    "loop": (8277, 5848),
    "ops": (5680, 4340),
    "runtime": (4780, 3372),
    "sched": (7390, 5476),
    "select": (2274, 1606),
    "target": (479, 362),
}


def is_code(line):
    """Neither blank, nor a comment of one line, nor braces and punctuation alone."""
    line = line.strip()
    return bool(re.search(r"\w", line)) and not line.startswith(("//", "/*", "* "))


def count(text):
    lines = text.splitlines()
    return len(lines), sum(map(is_code, lines))


def folders():
    """{folder of src: (lines, lines of code)}"""
    totals = {}
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in SUFFIXES:
            folder = path.relative_to(ROOT / "src").parts[0]
            lines, code = count(path.read_text())
            before = totals.get(folder, (0, 0))
            totals[folder] = (before[0] + lines, before[1] + code)
    return totals


def total(counts):
    return tuple(sum(column) for column in zip(*counts.values(), strict=True))


def without_documentation(text):
    """The text of a step's file less its documentation."""
    return re.sub(r"constexpr const char\* kDoc =\s*R\"\(.*?\)\";\n", "", text, flags=re.DOTALL)


def steps():
    """{step: lines of its struct and its file without documentation}"""
    folder = ROOT / "src" / "sched" / "steps"
    headers = "".join(p.read_text() for p in folder.glob("*.h"))
    counts = {}
    for path in sorted(folder.glob("*.cc")):
        name = path.stem.title().replace("_", "")
        struct = re.search(rf"^struct {name} \{{.*?^\}};$", headers, flags=re.DOTALL | re.MULTILINE)
        text = struct.group(0) + "\n" + without_documentation(path.read_text())
        counts[path.stem] = len(text.splitlines())
    return counts


def table():
    counts, by_step = folders(), steps()
    rows = ["| folder of src | lines | of code | lines before | of code before |", "|---|--:|--:|--:|--:|"]
    for name in sorted(counts.keys() | REFERENCE.keys()):
        numbers = (*counts.get(name, (0, 0)), *REFERENCE.get(name, (0, 0)))
        rows.append(f"| {name} | " + " | ".join(f"{n:,}" for n in numbers) + " |")
    rows.append("| all | " + " | ".join(f"{n:,}" for n in (*total(counts), *total(REFERENCE))) + " |")
    longest = max(by_step, key=by_step.get)
    rows += [
        "",
        f"A schedule step, struct and file, without its documentation: {statistics.median_low(by_step.values())} lines "
        f"at the median of {len(by_step)}, {by_step[longest]} at most (`{longest}`).",
    ]
    return "\n".join(rows)


def split_page(text):
    """What stands before, between and behind the markers."""
    before, rest = text.split(BEGIN + "\n")
    inside, after = rest.split(END + "\n")
    return before, inside, after


def update_page():
    text = PAGE.read_text()
    before, _, after = split_page(text)
    written = f"{before}{BEGIN}\n{table()}\n{END}\n{after}"
    if written != text:
        PAGE.write_text(written)
        print(f"updated {PAGE.relative_to(ROOT)}", flush=True)

"""The form of the source: layers include only downwards, files and functions stay small, no unfinished marks."""

import pathlib
import re
import subprocess

import cpp_text
import line_counts
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src"
FILE_LIMIT = 600
FUNCTION_LIMIT = 80
TABLES = {".def", ".inc"}


def tracked(*patterns):
    """Files that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file()]


def sources():
    return [path for path in tracked("src") if path.suffix in {".cc", ".h", ".c", *TABLES}]


def layer_table():
    """layer: set of everything it may include, from the table in docs/architecture.md."""
    direct = {}
    for line in (ROOT / "docs" / "architecture.md").read_text().splitlines():
        match = re.match(r"^\| `([\w/]+?)/?` \| ([^|]*) \|", line)
        if match:
            direct[match.group(1)] = match.group(2)
    names = list(direct)
    allowed = {}
    for index, name in enumerate(names):
        words = {word.strip() for word in direct[name].split(",")}
        reached = {name}
        for word in words:
            if word == "all above":
                reached |= set(names[:index])
            elif word in allowed:
                reached |= allowed[word]
            elif "/" in word:
                reached.add(word)
        allowed[name] = reached
    return allowed


def test_table_is_read():
    table = layer_table()
    assert table["base"] == {"base"}
    assert table["loop"] == {"loop", "arith", "ir", "base", "target"}
    assert "runtime" not in table["codegen"] and "runtime/abi" in table["codegen"]
    assert {"import", "tune", "runtime"} <= table["driver"]


def wrong_includes(path, text, table):
    layer = path.relative_to(SOURCE).parts[0]
    if layer not in table:
        return [f"{path.relative_to(ROOT)}: no layer is called {layer}"]
    wrong = []
    for line, quoted, included in cpp_text.includes(text):
        if not quoted:
            continue
        if included.startswith("bevel/"):  # the public C API in include/
            included = included.replace("bevel/abi/", "runtime/abi/").replace(
                "bevel/runtime.h", "runtime/runtime.h"
            )
        first, _, rest = included.partition("/")
        if first not in table and (path.parent / included).is_file():
            continue  # a header beside the file
        area = f"{first}/{rest.split('/', 1)[0]}"
        if first not in table[layer] and area not in table[layer]:
            wrong.append(f"{path.relative_to(ROOT)}:{line}: {layer} must not include {included}")
    return wrong


def test_layers_include_downwards():
    table = layer_table()
    wrong = [fault for path in sources() for fault in wrong_includes(path, path.read_text(), table)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_upward_include_is_found():
    wrong = wrong_includes(
        SOURCE / "ir" / "node.cc", '#include "ir/node.h"\n#include "sched/schedule.h"\n', layer_table()
    )
    assert wrong == ["src/ir/node.cc:2: ir must not include sched/schedule.h"]


# library: where its headers may be included
CONFINED = {
    r"^(llvm|lld)(-c)?/": lambda path: path.match("codegen/llvm*") or path.match("codegen/llvm*/*"),
    r"^nlohmann/": lambda path: path.suffix == ".cc",
    r"^protozero/": lambda path: path.suffix == ".cc" or path.match("import/*"),
    r"^(regex|iostream)$": lambda path: False,
    r"^fmt/": lambda path: "runtime" not in path.parts,
}


def test_heavy_headers_stay_where_they_belong():
    wrong = []
    for path in sources():
        for line, _, included in cpp_text.includes(path.read_text()):
            for pattern, fits in CONFINED.items():
                if re.search(pattern, included) and not fits(path.relative_to(SOURCE)):
                    wrong.append(f"{path.relative_to(ROOT)}:{line}: {included}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_llvm_is_seen_by_its_own_files_only():
    """A header of ours that includes LLVM's is included by codegen/llvm* alone."""
    heavy = {
        str(path.relative_to(SOURCE))
        for path in sources()
        if path.suffix == ".h"
        and any(name.startswith(("llvm/", "lld/")) for _, _, name in cpp_text.includes(path.read_text()))
    }
    wrong = []
    for path in sources():
        if not path.relative_to(SOURCE).match("codegen/llvm*"):
            wrong += [
                f"{path}:{line}: {name}"
                for line, _, name in cpp_text.includes(path.read_text())
                if name in heavy
            ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_file_size():
    counted = [
        path
        for path in [*sources(), *tracked("tests", "scripts", "bench")]
        if path.suffix in {".cc", ".h", ".c", ".py"}
    ]
    assert counted
    long = {
        str(path.relative_to(ROOT)): count
        for path in counted
        if (count := len(path.read_text().splitlines())) > FILE_LIMIT
    }
    assert not long, f"more than {FILE_LIMIT} lines: {long}"


def test_function_size():
    long = []
    for path in [*sources(), *tracked("tests/*.cc")]:
        if path.suffix in TABLES:
            continue
        for first, last, header in cpp_text.functions(path.read_text()):
            if last - first + 1 > FUNCTION_LIMIT:
                long.append(f"{path.relative_to(ROOT)}:{first}: {last - first + 1} lines: {header[:80]}")
    assert not long, "\n" + "\n".join(long)


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        ("namespace a {\nint f(int x) {\n  if (x) {\n  }\n  return 0;\n}\n}\n", [(2, 6)]),
        ("struct A {\n  A() : x{1}, y(2) {\n  }\n  int x, y;\n};\n", [(2, 2), (2, 3)]),
        ("const T t[] = {\n  {1},\n  {f(2)},\n};\n", []),
        ("auto s = \"{\";  // {\nint g() { return '{'; }\n", [(2, 2)]),
        ("template <class T>\nstruct B {\n T h() const {\n return 1'000;\n }\n};\n", [(3, 5)]),
        ("struct S* make(int) {\n}\n", [(1, 2)]),
    ],
)
def test_functions_are_found(text, extents):
    assert [(first, last) for first, last, _ in cpp_text.functions(text)] == extents


def test_no_unfinished_marks():
    mark = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b")
    wrong = []
    for path in tracked():
        if path.suffix in {".cc", ".h", ".c", ".py", ".md", ".txt", ".def", ".inc", ".cmake", ".sh", ""}:
            if "models" in path.relative_to(ROOT).parts[:1] or b"\0" in path.read_bytes()[:4096]:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if mark.search(line):
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not wrong, "\n" + "\n".join(wrong)


def installed_names():
    """Everything that ./dev installs: Debian packages and Python packages."""
    setup = (ROOT / "scripts" / "dev_setup.sh").read_text()
    packages = re.search(r"PACKAGES=\((.*?)\)", setup, re.DOTALL).group(1).split()
    names = [entry.split(":")[0] for entry in packages]
    for path in sorted((ROOT / "scripts").glob("requirements-*.txt")):
        names += [
            line.split("==")[0] for line in path.read_text().splitlines() if line and not line.startswith("#")
        ]
    return names


def test_dependencies_are_documented():
    words = set(re.findall(r"`([^`]+)`", (ROOT / "docs" / "dependencies.md").read_text()))
    missing = sorted(
        {name for name in installed_names() if name.lower() not in {word.lower() for word in words}}
    )
    assert not missing, f"not in docs/dependencies.md: {missing}"


def test_source_keeps_its_budget():
    lines, code = line_counts.total(line_counts.folders())
    assert 0 < code < lines <= line_counts.BUDGET


def test_line_counts_are_shown():
    """The form only: the exact figures change with every commit, and `./dev golden --update` writes them."""
    _, inside, _ = line_counts.split_page(line_counts.PAGE.read_text())

    def form(text):
        return re.sub(r"[\d,]*\d", "N", re.sub(r"\(`\w+`\)", "(`step`)", text))

    assert form(inside.strip()) == form(line_counts.table())


def test_lines_are_counted():
    text = "// a\n\nint f() { // b\n  return 0;\n}\n"
    assert line_counts.count(text) == (5, 2)
    step = 'int a;\nconstexpr const char* kDoc =\n    R"(what\n\nwhen)";\nint b;\n'
    assert line_counts.without_documentation(step) == "int a;\nint b;\n"

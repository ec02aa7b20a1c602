"""The run time as it is built: small, needing only system libraries, exporting only its C API."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIZE_LIMIT = 300_000
SYSTEM = {
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
}


@pytest.fixture(scope="module")
def library():
    path = ROOT / "build" / "libbevel_runtime.so"
    assert path.exists(), f"{path} is not built: run ./dev build"
    return path


def output(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def test_size(library, tmp_path):
    stripped = tmp_path / "stripped.so"
    output("strip", "-o", stripped, library)
    assert stripped.stat().st_size < SIZE_LIMIT


def test_needs_system_libraries_only(library):
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", library)))
    assert needed, "readelf shows no needed library"
    assert needed <= SYSTEM


def test_exports_the_c_api_and_nothing_else(library):
    """Weak symbols aside: templates of the C++ library are exported by every C++ library."""
    lines = output("nm", "-D", "--defined-only", library).splitlines()
    exported = {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] in "TDBR"}
    header = (ROOT / "include" / "bevel" / "runtime.h").read_text()
    declared = set(re.findall(r"BEVEL_API\s[^;(]*?\b(bevel_\w+)\(", header))
    assert exported == declared

"""What surrounds the tool may fail or be hostile: full disks, small limits, odd names, killed processes."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
SINE = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float64")):
        y = R.sin(x)
        return y
"""


@pytest.fixture
def tool():
    return BUILD / "bevel"


@pytest.fixture
def sine(bevel, tmp_path):
    (tmp_path / "sine.py").write_text(SINE)
    bevel("compile", "sine.py", "-o", "sine.so", cwd=tmp_path)
    return tmp_path


def test_library_names_libm(sine):
    needed = subprocess.run(
        ["readelf", "-d", "sine.so"], cwd=sine, capture_output=True, text=True, check=True
    ).stdout
    assert "libm.so.6" in needed
    assert sorted(p.name for p in sine.iterdir()) == ["sine.h", "sine.py", "sine.so"]


@pytest.mark.parametrize("mask,mode", [(0o077, 0o600), (0o022, 0o644)])
def test_files_have_the_permissions_of_umask(bevel, sine, mask, mode):
    os.remove(sine / "sine.so")
    before = os.umask(mask)
    try:
        bevel("compile", "sine.py", "-o", "sine.so", cwd=sine)
    finally:
        os.umask(before)
    assert (sine / "sine.h").stat().st_mode & 0o777 == mode
    assert (sine / "sine.so").stat().st_mode & 0o777 == mode | (mode >> 2 & 0o111)


@pytest.mark.parametrize("command", [["inspect"], ["opt"], ["run", "--random", "1"]])
def test_full_output(tool, sine, command):
    with open("/dev/full", "w") as full:
        call = [tool, command[0], "sine.py", *command[1:]]
        done = subprocess.run(call, cwd=sine, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and "cannot write to standard output" in done.stderr


@pytest.mark.parametrize("kilobytes", [0, 1, 2, 3, 4])
def test_output_that_has_no_room(tool, sine, kilobytes):
    """Whatever part of the work meets the limit: the library is named, and the one of before stays."""
    before = (sine / "sine.so").read_bytes()
    limited = f"ulimit -f {kilobytes}; exec {tool} compile sine.py -o sine.so --no-cache"
    done = subprocess.run(["bash", "-c", limited], cwd=sine, capture_output=True, text=True)
    assert done.returncode == 3 and "sine.so" in done.stderr and "File too large" in done.stderr, done.stderr
    assert (sine / "sine.so").read_bytes() == before
    assert sorted(p.name for p in sine.iterdir()) == ["sine.h", "sine.py", "sine.so"]


def test_seconds_must_be_a_number(bevel, sine):
    for seconds in ["nan", "-1", "inf", "x"]:
        assert "not a number" in bevel("bench", "sine.py", "--seconds", seconds, code=2, cwd=sine).stderr


def test_names_cannot_command_the_terminal(bevel, tmp_path):
    (tmp_path / "odd.py").write_text(
        SINE.replace('R.Tensor((4,), "float64")', 'R.Tensor((4,), "red\x1b[2J")')
    )
    message = bevel("run", "odd.py", code=3, cwd=tmp_path).stderr
    assert "\x1b" not in message and "\\x1b[2J" in message


def test_small_address_space(tool, sine):
    limit = "ulimit -v 1500000; exec "
    command = f"{limit} {tool} run sine.py --random 1 --no-cache"
    done = subprocess.run(["bash", "-c", command], cwd=sine, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""What every Python test shares: where the repository and the built tool are, and how the tool is run."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ["BEVEL_STRICT_SCHEDULE"] = (
    "1"  # a default schedule that cannot be lowered is a fault, not a fallback
)


def tool_path():
    """The bevel tool under test: $BEVEL, or build/bevel."""
    path = pathlib.Path(os.environ.get("BEVEL", ROOT / "build" / "bevel")).resolve()
    if not path.exists():
        pytest.fail(f"{path} is not built: run ./dev build", pytrace=False)
    return path


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def bevel():
    """Runs the tool: `bevel("run", model, ...)` gives the finished process, with text output. Every stage of a compile is
    verified, printed, parsed and compared on the way."""

    def run(*args, code=0, timeout=300, **options):
        command = [str(tool_path()), *map(str, args)]
        options.setdefault("env", os.environ | {"BEVEL_CHECK": "1"})
        result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)
        if code is not None:
            assert result.returncode == code, f"{' '.join(command)}\n{result.stdout}{result.stderr}"
        return result

    return run

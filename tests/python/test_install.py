"""What is installed suffices for programs in C and C++, by the command that docs/tool.md tells."""

import re
import subprocess

import numpy as np
import pytest

SINE = """
@R.function
def main(x: R.Tensor((4,), "float64")):
    y = R.sin(x)
    return y
"""
HOST = r"""
#include "sine.h"
#include <stdio.h>
int main(void) {
  bevel_model* model;
  bevel_instance* run;
  double x[4] = {0, 0.5, 1, 2};
  int64_t shape[1] = {4};
  DLTensor t = {x, {kDLCPU, 0}, 1, {BEVEL_FLOAT_CODE, 64, 1}, shape, 0, 0};
  if (sine_load(&model) || bevel_instance_create(model, NULL, &run) || bevel_set_input(run, 0, &t) || bevel_run(run)) {
    puts(bevel_last_error());
    return 1;
  }
  const double* y = (const double*)bevel_output(run, 0)->data;
  for (int i = 0; i < 4; ++i) printf("%.17g\n", y[i]);
  bevel_instance_release(run);
  bevel_model_release(model);
  return 0;
}
"""


def documented(root):
    """The commands of docs/tool.md, from installing to linking."""
    text = (root / "docs" / "tool.md").read_text()
    return re.search(r"## A library in a C program\n\n((?:    .*\n)+)", text).group(1).split("\n")[:-1]


@pytest.fixture(scope="module")
def prefix(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    build = root / "build"
    assert "cmake --install build --prefix PREFIX" in documented(root)[0]
    subprocess.run(["cmake", "--install", build, "--prefix", folder], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("language,compiler", [("c", "cc"), ("cc", "c++")])
def test_documented_commands(root, prefix, tmp_path, language, compiler):
    (tmp_path / "sine.py").write_text(SINE)
    (tmp_path / f"main.{language}").write_text(HOST)
    _, compiling, linking = [line.strip() for line in documented(root)]
    linking = linking.replace("cc main.c", f"{compiler} main.{language} -Wall -Wextra -Werror -MD")
    for command in [compiling, linking, "./main"]:
        for name, value in {"PREFIX": str(prefix), "model.onnx": "sine.py", "model.so": "sine.so"}.items():
            command = command.replace(name, value)
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    np.testing.assert_allclose([float(v) for v in done.stdout.split()], np.sin([0, 0.5, 1, 2]), rtol=1e-15)
    headers = next(tmp_path.glob("*.d")).read_text()
    for header in ["bevel/runtime.h", "bevel/abi/value.h", "dlpack/dlpack.h"]:
        assert set(re.findall(rf"\S*{header}", headers)) == {f"{prefix}/include/{header}"}

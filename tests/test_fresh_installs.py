"""A wheel, installed without extras in fresh environments of the Pythons on this machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
SMOKE = """
import os, sys, tempfile
import numpy as np
import letir as lt
from letir.cli import main

def loss(w, x):
    return (np.tanh(x @ w) ** 2).sum()

w, x = np.full(3, 0.5), np.ones((4, 3))
program = lt.trace(loss, w, x)
slope = lt.grad(program)(w, x)
assert np.allclose(slope, 8 * np.tanh(1.5) * (1 - np.tanh(1.5) ** 2))
assert np.array_equal(lt.jit(lt.grad(loss), exact=True)(w, x), slope)
assert lt.parse(lt.dumps(program)) == program
for name in ("llvmlite", "scipy", "onnx", "hypothesis", "cupy"):
    assert name not in sys.modules
os.chdir(tempfile.mkdtemp())
lt.save(program, "loss.letir")
assert main(["check", "loss.letir"]) == 0
assert main(["doctor"]) == 0
assert main(["view", "loss.letir"]) == 0
assert main(["demo", "--quick"]) == 0
print("smoke test passed in", lt.__file__)
"""


def interpreter(version: str) -> str | None:
    """The Python of this version: on the path, or one of pyenv's."""
    named = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    places = [shutil.which(f"python{version}"), *map(str, named)]
    for place in filter(None, places):
        # pyenv's stand-ins on the path fail unless their version is chosen
        if subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
            return place
    return None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this checkout."""
    pytest.importorskip("setuptools", "77", reason="pip installs it to build letir")
    folder = tmp_path_factory.mktemp("wheels")
    code = f"import build_backend; build_backend.build_wheel({str(folder)!r})"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "packaging")}
    command = [sys.executable, "-B", "-c", code]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_wheel_without_extras_works(version, wheel, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version}")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LETIR"))}
    environment["NO_COLOR"] = "1"
    subprocess.run([python, "-m", "venv", tmp_path / "env"], check=True, env=environment)
    (fresh,) = [*tmp_path.glob("env/bin/python"), *tmp_path.glob("env/Scripts/python.exe")]
    install = [fresh, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel]
    done = subprocess.run(install, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        pytest.skip(f"pip cannot install the requirements: {done.stderr[-300:]}")

    run = [fresh, "-W", "error", "-c", SMOKE]
    done = subprocess.run(
        run, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "smoke test passed in" in done.stdout
    assert str(tmp_path) in done.stdout.splitlines()[-1]

"""Modules that a recorded function is the first to import are loaded as without letir."""

import subprocess
import sys

import pytest

MODULE = """
import logging
import os
import sys
import threading
import time
import warnings

import numpy as np

started = time.time()
with threading.Lock():
    pass
logging.getLogger("late").info("loaded")
os.environ["LETIR_LATE"] = "1"
warnings.warn("loaded")
print("loaded", file=sys.stderr)
with open(os.path.join(os.path.dirname(__file__), "times.txt"), "a") as file:
    file.write("x")
from late_package import part

TABLE = np.arange(3.0)
TABLE[0] = 4
"""
PROGRAM = """
import sys
import warnings
import numpy as np
import letir as lt

sys.path.insert(0, {folder!r})

def f(x):
    from late_package import first
    return x * first.TABLE + first.part.two

x = np.ones(3)
fast = lt.{transform}
warnings.simplefilter("ignore")
results = [fast(x).tolist() for _ in range(3)]
import late_package.first
print(results, type(late_package.first.TABLE).__name__, late_package.part.two)
"""


@pytest.mark.parametrize("transform", ["jit(f)", "trace(f, x)"])
def test_the_effects_of_a_module_do_not_end_its_import(transform, tmp_path):
    package = tmp_path / "late_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("import math\ntwo = math.sqrt(4.0)\n")
    (package / "first.py").write_text(MODULE)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path), transform=transform)],
        capture_output=True,
        text=True,
        check=False,
    )

    rows = [[6.0, 3.0, 4.0]] * 3
    assert done.stdout.strip() == f"{rows} ndarray 2.0", done.stderr
    assert (package / "times.txt").read_text() == "x"

"""Source: places in files and in cells of notebooks."""

import os
import subprocess
import sys

import pytest

import letir as lt
from letir.ast.source import Source

SESSION = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for code in (
    "import numpy as np, letir as lt",
    "def f(x):\\n    y = np.sin(x)\\n    return y * 2.0",
    "program = lt.trace(f, 1.0)",
    "print(program)",
    "print(program.binds[0].source.file in lt.dumps(program))",
    "print(str(lt.viz.graph(program)).splitlines()[2])",
    "try:\\n    lt.trace(lambda x: np.ones(3) @ x, np.ones((2, 2)))\\n"
    "except Exception as error: print(str(error).partition('at ')[2].partition(chr(10))[0])",
):
    shell.run_cell(code, store_history=True)
"""


def test_a_cell_of_a_notebook_is_named_by_its_number(tmp_path):
    pytest.importorskip("IPython", reason="install the extra 'test'")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SESSION],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
    )
    found = done.stdout.splitlines()

    assert found[1].endswith("# In [2], line 2")
    assert found[2].endswith("# In [2], line 3")
    assert "True" in found  # a file has the name by which the code can be found
    assert "In [2], line 2  y = np.sin(x)" in found
    assert found[-1].startswith("In [7], line 2")


def test_other_files_have_their_names():
    source = Source("/a/model.py", 3)

    assert (source.short, source.short_file, str(source)) == (
        "model.py:3",
        "model.py",
        "/a/model.py:3",
    )
    assert "# /a/model.py:3" in lt.dumps(
        lt.parse("lambda %0 {\n%1 = sin(%0)  # /a/model.py:3\nreturn %1 }")
    )

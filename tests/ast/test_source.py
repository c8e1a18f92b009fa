"""Source: places in files, in cells of notebooks and in errors, of which the innermost wins."""

import os
import subprocess
import sys

import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ast.source import (
    Source,
    append_location,
    error_at,
    error_at_bind,
    error_in_let,
    source_line,
)
from letir.ast.terms import Bind
from letir.errors import GuardError, LetirError, ShapeError

HERE, THERE = Source("model.py", 3), Source("main.py", 9)

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


# ---- error messages ----


def test_the_users_line_stands_below_the_message():
    error = error_at(ShapeError("sizes differ\n  transpose one of them"), HERE)

    assert "sizes differ\n  at model.py:3\n  transpose one of them" == str(error)


def test_the_innermost_users_line_is_kept():
    error = error_at(error_at(LetirError("no"), HERE), THERE)

    assert "no\n  at model.py:3" == str(error)
    assert str(error) == str(append_location(error, source_line(THERE)))


def test_an_unknown_location_adds_nothing():
    assert "no" == str(error_at(LetirError("no"), None)) and "" == source_line(None)
    assert "no" == str(error_at_bind(LetirError("no"), Bind((), PRIMITIVES["exp"], ())))


def test_an_excerpt_follows_the_line():
    place = Source("model.py", 3, text="if x > 0")

    error = error_at(GuardError("the path does not hold"), place, with_excerpt=True)

    assert "the path does not hold\n  at model.py:3: if x > 0" == str(error)


def test_the_let_line_and_the_users_line_stand_last():
    error = error_in_let(ShapeError("sizes differ"), "%2 = add(%0, %1)", HERE)

    assert "sizes differ\n  in %2 = add(%0, %1)\n  at model.py:3" == str(error)
    assert str(error) == str(error_in_let(error, "%9 = neg(%8)", THERE))


def test_a_let_line_without_a_users_line_gets_the_one_of_the_enclosing_bind():
    error = error_in_let(ShapeError("sizes differ"), "%2 = add(%0, %1)", None)
    bind = Bind((), PRIMITIVES["exp"], (), source=THERE)

    expected = "sizes differ\n  in %2 = add(%0, %1)\n  in exp\n  at main.py:9"
    assert expected == str(error_at_bind(error, bind))

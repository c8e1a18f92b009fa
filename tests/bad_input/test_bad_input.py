"""Wrong programs as people write them: each ends in an error that says what is wrong, and where.

A line of the tables beside this file is a program, the class of its error, and words of the
message. The names that the programs use are those of ``fixed_names``.
"""

import functools
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import letir as lt
import letir.debug
import letir.eager
import letir.numpy as lnp
import letir.scipy.integrate
import letir.scipy.linalg
import letir.scipy.signal
import letir.scipy.special
import letir.scipy.stats
import letir.testing
from letir.extend import PRIMITIVES
from tests.each_sample import check_each

HERE = Path(__file__).parent
PACKAGE = str(Path(lt.__file__).parent)
MAX_FRAMES = 8
V = np.arange(3.0)
READ_ONLY = V.copy()
READ_ONLY.flags.writeable = False


def f(x):
    return (x * x).sum()


def writes(x):
    x[0] = 5.0
    return x.sum()


def gen_f(x):
    yield x


async def async_f(x):
    return x


class Klass:
    def __init__(self, x):
        self.x = x


def with_rule(forward, backward):
    function = lt.custom_vjp(f)
    function.defvjp(forward, backward)
    return function


def with_jvp(rule):
    function = lt.custom_jvp(f)
    function.defjvp(rule)
    return function


class Fn(lt.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g, g


class Fn2(Fn):
    @staticmethod
    def backward(ctx, g):
        return g[:2]


class Model:
    def __init__(self):
        self.w = lt.Variable(np.ones((3, 2)), requires_grad=True)

    def parameters(self):
        return [self.w]

    def forward(self, x):
        return x @ self.w


@functools.cache
def fixed_names() -> dict[str, Any]:
    """The names that all programs share."""
    return {
        **{"np": np, "lt": lt, "lnp": lnp, "nn": lt.nn, "rnd": lt.random, "V": lt.Variable},
        **{"v": V, "m": np.eye(3), "read_only": READ_ONLY, "f": f, "writes": writes},
        **{
            "gen_f": gen_f,
            "async_f": async_f,
            "Klass": Klass,
            "with_rule": with_rule,
            "with_jvp": with_jvp,
        },
        **{"Fn": Fn, "Fn2": Fn2, "Model": Model, "F": lt.trace(f, V)},
        "G2": lt.trace(lambda p: (p["w"] * p["b"]).sum(), {"w": V, "b": V}),
    }


def sections() -> dict[str, list[tuple[str, str, str]]]:
    """The (program, class, words) under each heading of the tables, by file and heading."""
    found = {}
    for path in sorted(HERE.glob("*.txt")):
        for line in path.read_text().splitlines():
            if line.startswith("# "):
                rows = found.setdefault(f"{path.stem}: {line.removeprefix('# ')}", [])
            else:
                program, _, expected = line.partition("  #> ")
                kind, _, words = expected.partition(": ")
                rows.append((program, kind, words))
    return found


SECTIONS = sections()


@contextmanager
def names_in(folder: Path) -> Iterator[dict[str, Any]]:
    """The names for a program; operations that it makes are dropped afterwards."""
    files = {"garbage": b"garbage", "empty": b"", "notzip": b"PK\x03\x04zzz"}
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        yield {**fixed_names(), "tmp": folder, **{name: folder / name for name in files}}
    finally:
        for name in [name for name in PRIMITIVES if name.startswith("bad.")]:
            del PRIMITIVES[name]


def frames_of_letir(error: BaseException) -> int:
    """The number of letir's frames in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    return sum(frame.filename.startswith(PACKAGE) for frame in frames)


def test_there_are_many_wrong_programs():
    assert sum(map(len, SECTIONS.values())) >= 1500


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", SECTIONS)
def test_the_error_for_a_wrong_program_says_what_is_wrong_and_where(section, tmp_path):
    check_each(
        section,
        (
            (partial(check_error, tmp_path / str(i), *row), partial(str, row[0]))
            for i, row in enumerate(SECTIONS[section])
        ),
    )


def check_error(folder: Path, program: str, kind: str, words: str) -> None:
    """Check the error that a program raises, and its message and traceback."""
    # letir's or NumPy's class, the one of the table
    with names_in(folder) as names, pytest.raises(Exception) as caught:
        eval(compile(program, "program.py", "eval"), names)

    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert type(caught.value).__name__ == kind
    assert words in told
    assert "program.py:1" in told or isinstance(caught.value, lt.ParseError)
    assert frames_of_letir(caught.value) <= MAX_FRAMES


@pytest.mark.parametrize("make", [lt.jit, lambda g: lt.trace(g, V.copy())], ids=["jit", "trace"])
def test_a_write_into_a_read_only_array_names_the_line_of_the_write(make):
    with pytest.raises(ValueError, match="assignment destination is read-only") as caught:
        make(writes)(READ_ONLY)

    assert f"test_bad_input.py:{writes.__code__.co_firstlineno + 1}" in str(caught.value)

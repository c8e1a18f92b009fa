"""Write ``docs/numpy.md``, the table of NumPy's public functions, from trying each of them.

python docs/make_numpy.py
"""

import operator
import re
from pathlib import Path

import numpy as np

from letir.testing.calls.listed import NO_ARRAYS
from letir.testing.calls.support import NONE, YES, Support, public_functions, support_of
from letir.tracing.checks.unsupported import refusal_reason

VERSION = ".".join(np.__version__.split(".")[:2])  # others have other functions
PAGE = Path(__file__).with_name("numpy.md")
HEAD = """\
# NumPy's functions

This table says which functions of NumPy {version} can be recorded. `python docs/make_numpy.py` generates it by calling each
function once, with the arguments in `letir/testing/calls/`; a test fails if the page is not up to date, or if a public function
of NumPy is missing.

- *numpy*: NumPy's own function is recorded on traced values, wherever it is called, libraries included. A function that makes
  arrays, such as `np.asarray`, has a "no" here, but is recorded when your own code calls it ([guards](guards.md#arrays-that-the-function-makes)).
- *letir.numpy*: the function of that name in `letir.numpy` is recorded. These functions also take lists of traced values,
  and make arrays into which traced values can be written.
- *vjp*, *jvp*: the derivative, in reverse and forward mode, agrees with finite differences. A dash: there is no derivative,
  because the result is not floating or is piecewise constant.
- *batch*: `vmap` gives the same results as a loop.
- *complex*: the function and its derivative work on complex numbers. A dash: NumPy's function does not take complex numbers.

The table tests single calls. `tests/programs` tests whole programs: 450 ordinary NumPy programs (layers and models, filters,
simulations, optimisers, codes, table algorithms) record, replay, compile and differentiate unchanged.

Recorded: {recorded} of {all} functions that take arrays of numbers, {percent:.1f} %.

"""
TABLE = """\
| function | numpy | letir.numpy | vjp | jvp | batch | complex |
|---|---|---|---|---|---|---|
"""
REFUSED = """
## Not recorded, and why

The error for such a call says the same.

| function | reason |
|---|---|
"""
REST = """
## What else is refused

| refused | why | write instead |
|---|---|---|
| `np.longdouble`, `np.clongdouble` | their precision depends on the machine, and programs are saved to files | `float64` |
| dates, strings, objects, structured and masked arrays, `np.matrix` | programs compute with numbers | encode them first: `x["field"]`, `x.filled(0)`, `np.asarray(x)` |
| `np.linalg.qr(mode="raw")` | only LAPACK can use its Householder vectors | `mode="reduced"` |
| `kind(x)`, where `kind = np.float32` is a local variable, an attribute or an item | the class is written in C and makes an ordinary number | `np.float32(x)`, or make `kind` a global, a captured variable or a default value |
| `np.frompyfunc` | it makes arrays of objects | `np.vectorize` |
| `x.view(dtype)`, `x.dumps()`, `x.data`, `x.ctypes`, `np.frombuffer(x.tobytes())` | the bits of one call would become constants of the program | `x.astype(dtype)`, or call them on the result |
| `x.shape = ...` of an argument, `x.resize(...)` to another number of elements unless `x` is a new array of one axis and `refcheck=False` | the caller's array, or a view, would change | `x = x.reshape(...)`, `x = np.resize(x, shape)` |
| `x.flags.writeable = ...` of a view | it would change this view only, not the array | copy the view first |
| `np.nditer` with buffers, casts, external loops, or not in C order | the iteration depends on the memory layout | `np.ndindex(x.shape)` |
| `np.load`, `np.save`, `open` on traced values | files would be read or written during recording only | read and write them outside of the function |

Where NumPy raises `UFuncTypeError`, a private class, `trace` and the transforms raise a `TypeError`, `lt.DTypeError`; a clause
`except UFuncTypeError` of the recorded function does not catch it. `jit` runs such a function as Python.

NumPy leaves some elements uninitialised (`np.empty`, `np.log(x, where=mask)` without `out`); in programs they are 0.
"""
OTHERS = """
## Functions that do not take arrays of numbers

While a function is recorded, these behave as in plain NumPy.

| | functions |
|---|---|
"""
NOTES = """
## Notes

"""


def page() -> str:
    """The text of the page."""
    found = {name: support_of(name) for name in public_functions()}
    recorded = {name: support for name, support in found.items() if support.is_recorded}
    notes: dict[str, int] = {}
    head = HEAD.format(
        version=VERSION,
        recorded=len(recorded),
        all=len(found),
        percent=100 * len(recorded) / len(found),
    )
    rows = "".join(row(name, support, notes) for name, support in recorded.items())
    refused = [f"| `np.{n}` | {reason(n)} |\n" for n in found if n not in recorded]
    others = "".join(
        f"| {why} | {listed(names)} |\n" for why, names in NO_ARRAYS.items()
    )
    noted = "".join(f"{i}. {text}\n" for text, i in notes.items())
    tail = NOTES + noted if notes else ""
    tail += REFUSED + "".join(refused) if refused else ""
    return f"{head}{TABLE}{rows}{tail}{REST}{OTHERS}{others}"


def reason(name: str) -> str | None:
    """Why the function of this name cannot be recorded."""
    return refusal_reason(operator.attrgetter(name)(np))


def row(name: str, support: Support, notes: dict[str, int]) -> str:
    """The line of one function; what does not work is a note."""
    cells = (support.plain, support.namespace, support.vjp, support.jvp, support.batch)
    shown = [cell(text, notes) for text in (*cells, support.complexes)]
    return f"| `np.{name}` | {' | '.join(shown)} |\n"


def cell(text: str, notes: dict[str, int]) -> str:
    """What stands in one cell."""
    if text in (YES, NONE):
        return text
    # the same for all types
    text = re.sub(r" of type \S*\[.*?\](?= |,)", "", text)
    return f"no ({notes.setdefault(text, len(notes) + 1)})"


def listed(names: str) -> str:
    """The names as code."""
    return ", ".join(f"`np.{name}`" for name in names.split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

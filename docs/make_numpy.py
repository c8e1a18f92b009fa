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

Which functions of NumPy {version} are recorded. For this page `python docs/make_numpy.py` calls each function once, with
the call in `letir/testing/calls/`; a test fails if the page is not up to date, or if a public function of NumPy is missing.

- *numpy*: NumPy's own function is recorded on traced values.
- *letir.numpy*: the function of that name in `letir.numpy` is recorded. These functions also take lists of traced values,
  and make arrays into which traced values can be written.
- *vjp*, *jvp*: the derivative, in reverse and forward mode, agrees with finite differences. A dash: there is no derivative,
  because the result is not floating or changes in steps only.
- *batch*: `vmap` gives the same results as a loop.
- *complex*: the call with complex numbers, and its derivative. A dash: NumPy's function does not take complex numbers.
- Whole programs: `tests/programs` holds 163 as people write NumPy (layers and models, filters, simulations, optimisers, table
  algorithms). 162 of them record, replay, compile and differentiate unchanged; one draws from NumPy's global generator, which
  `trace` refuses (`jit` and `grad` do not).

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

| | why, and what to write |
|---|---|
| `np.longdouble`, `np.clongdouble` | their bits differ from machine to machine, and programs are files: `float64` |
| dates, strings, objects, structured and masked arrays, `np.matrix` | programs compute with numbers: encode them before, pass `x["field"]`, `x.filled(0)`, `np.asarray(x)` |
| `np.linalg.qr(mode="raw")` | LAPACK's Householder vectors are of use to LAPACK only: `mode="reduced"` |
| `np.frompyfunc` | it makes arrays of objects: `np.vectorize` |
| `x.view(dtype)`, `x.tobytes()`, `x.data`, `x.ctypes` | the bits would be part of the program: `x.astype(dtype)`, or take them of the result |
| `x.shape = ...`, `x.resize(...)` of an argument | the caller would see it: `x = x.reshape(...)` |
| `x.flags.writeable = ...` of a view | it would concern that view alone: copy it |
| `np.nditer` with buffers, casts, external loops, or not in C order | it depends on memory: `np.ndindex(x.shape)` |
| `np.polynomial.Polynomial(c)` of traced `c` | its objects keep ordinary arrays: `np.polynomial.polynomial.polyval(x, c)` |
| `np.load`, `np.save`, `open` on traced values | files are read when the function is recorded, not when it runs: read before |

Elements that NumPy leaves without a value are 0 in programs: `np.empty`, `np.log(x, where=mask)` without `out`.
"""
OTHERS = """
## Functions that do not take arrays of numbers

In a trace they behave as elsewhere.

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

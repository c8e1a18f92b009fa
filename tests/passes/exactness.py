"""Helpers for tests of passes: small programs, numbers at which arithmetic goes wrong, and the
law that results stay the same: bits, kind, memory order and sharing of memory.
"""

import itertools
import warnings
from collections.abc import Callable

import numpy as np

import letir as lt
from letir import run_forward
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES as OPS
from letir.ast.types import ArrayType
from letir.errors import LetirError
from letir.passes import dead_code
from letir.testing import assert_same

DTYPES = [np.dtype(c) for c in "?bhiqBHIQefdFD"]
SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.3, np.inf, -np.inf, np.nan, 1e-40, 5e-324, 6e4, 2.0]


def special(dtype: np.dtype) -> np.ndarray:
    """Twelve numbers where arithmetic goes wrong."""
    if dtype.kind == "b":
        return np.arange(12) % 3 == 0
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 5, 7, ends.max, ends.min, ends.max - 1, 11, 12, 13], dtype)
    with np.errstate(all="ignore"):
        x = np.array(SPECIAL).astype(dtype)
    if dtype.kind == "c":
        x.imag = np.roll(x.real, 5)
    return x


def program(function, *types: ArrayType) -> lt.Lambda:
    """The program that a function of Values records."""
    builder = LetBuilder()
    results = function(*map(builder.param, types))
    return builder.build(results if isinstance(results, tuple) else (results,))


def new(x):
    """A new array equal to ``x``, of any dtype."""
    return OPS["bitwise_or"](x, x) if x.dtype.kind == "b" else OPS["positive"](x)


def ops(fn: lt.Lambda) -> list[str]:
    """The names of the live operations, in order."""
    return [bind.op.name for bind in dead_code(fn).binds]


def copies(args) -> list:
    """Copies of arrays, which a program may change."""
    return [np.copy(arg, order="K") if type(arg) is np.ndarray else arg for arg in args]


def assert_unchanged(change: Callable, fn: lt.Lambda, *args) -> None:
    """Raise AssertionError unless ``change(fn)`` is a program with the same results."""
    changed = lt.check(change(fn))
    assert [arg.type for arg in fn.ret.args] == [arg.type for arg in changed.ret.args]
    first, second = args, copies(args)
    if all(type(arg) is not np.ndarray or arg.flags.c_contiguous for arg in args):
        first = copies(args)
    else:  # a copy has another memory layout
        second = args
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = row_of(run_forward(fn, *first))
        except (ArithmeticError, ValueError, lt.LetirError):  # as -1 for an unsigned number
            return
        found = row_of(run_forward(changed, *second))
    assert_same(expected, found)
    assert_same(list(first), list(second))
    assert [layout(x) for x in expected] == [layout(x) for x in found]
    assert shared([*expected, *first]) == shared([*found, *second])


def row_of(results) -> tuple:
    """The results as a flat tuple."""
    return results if isinstance(results, tuple) else (results,)


def layout(x) -> tuple:
    """The strides of an array, and whether it is writeable."""
    if not isinstance(x, np.ndarray):
        return ()
    strides = tuple(s for s, n in zip(x.strides, x.shape, strict=True) if n > 1 and x.size)
    return strides, x.flags.writeable


def shared(arrays: list) -> list:
    """For each pair of arrays: whether they share memory, and whether they are one object."""
    pairs = itertools.combinations([a for a in arrays if isinstance(a, np.ndarray)], 2)
    return [(np.shares_memory(a, b), a is b) for a, b in pairs]


def gradient_of(fn: lt.Lambda, args: list) -> tuple[lt.Lambda, list]:
    """(gradient program of the floating results, its arguments with cotangents of ones)."""
    results = [r for r in fn.ret.args if getattr(r.type, "inexact", False)]
    fn = lt.Lambda(fn.params, fn.binds, type(fn.ret)(tuple(results)))
    out, pull = lt.vjp(fn, *args)
    ones = tuple([np.ones_like(x) for x in row_of(out)])
    cts = pull._flat((ones if isinstance(out, tuple) else ones[0],))
    return pull.program, [*cts, *pull.captured]


def assert_gradient_unchanged(change: Callable, f: Callable, args: list) -> None:
    """``assert_unchanged`` of the gradient program of a function, where it has one."""
    try:
        df, given = gradient_of(lt.trace(f, *copies(args)), args)
    except (LetirError, ValueError, ArithmeticError):
        return

    assert_unchanged(change, df, *given)

"""Lists of traced values: NumPy's functions refuse them or are right, and the functions of
``letir.numpy`` accept them. Tested for all functions.
"""

import contextlib
import inspect

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.errors import LetirError
from letir.testing import assert_same
from letir.testing.calls.support import public_functions
from tests.each_sample import each_of

PAIRS = {
    "numbers": [(np.float64(1.5), np.float64(2.5)), (np.float64(0.3), np.float64(-0.4))],
    "rows": [
        (np.array([1.5, 2.0]), np.array([0.5, 3.0])),
        (np.array([0.3, 0.7]), np.array([-1.0, 0.25])),
    ],
}
BY_CHANCE = {"empty_like"}  # its result is undefined
ONE_ARRAY = {"trim_zeros"}  # returns a list for a list, a slice for an array
TEXTS = {"array2string", "array_repr", "array_str"}  # the text of a traced value differs
NAMES = [name for name in public_functions() if "." not in name]


def called(namespace, name: str):
    """The function applied to the list of its two arguments."""
    return lambda x, y: getattr(namespace, name)([x, y])


def takes_a_list(name: str, pair: tuple) -> bool:
    """Whether NumPy's function accepts a list of this pair as its only argument."""
    function = getattr(np, name)
    if isinstance(function, np.ufunc):
        return function.nin == 1
    try:
        given = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        with np.errstate(all="ignore"):
            return len(given) < 2 and called(np, name)(*pair) is not None
    except (TypeError, ValueError, IndexError, AttributeError):
        return False


def check(f, name: str, first: tuple, second: tuple) -> None:
    """Raise AssertionError unless the program of ``f`` gives NumPy's results."""
    program = lt.trace(f, *first)
    expected = called(np, name)
    assert_same(expected(*first), program(*first))
    try:
        found = program(*second)
    except lt.GuardError:
        return
    assert_same(expected(*second), found)


@pytest.mark.filterwarnings("ignore")
@each_of(NAMES)
def test_a_list_is_refused_or_the_result_is_right(name):
    """[B2]"""
    for first, second in PAIRS.values():
        if name in BY_CHANCE | ONE_ARRAY | TEXTS or not takes_a_list(name, first):
            continue
        for namespace in (np, lnp):
            with contextlib.suppress(LetirError, TypeError, ValueError, IndexError):
                check(called(namespace, name), name, first, second)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy has no ndmax")
def test_ndmax_bounds_the_depth_of_lists():
    def f(x):
        rows = [list(x), list(2 * x)]
        return np.array(rows, ndmax=2), np.array(x, ndmax=1), np.array([1.0, 2.0], ndmax=1) * x[:2]

    x = np.arange(3.0)
    assert_same(f(x), lt.trace(f, x)(x))
    assert_same(f(x), lt.jit(f)(x))
    for deep in (lambda x: np.array([x, x], ndmax=1), lambda x: np.array([[[1.0]]], ndmax=2) * x):
        with pytest.raises(ValueError, match="maximum number of dimension"):
            lt.trace(deep, x)

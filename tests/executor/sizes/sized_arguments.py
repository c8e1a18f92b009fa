"""Arguments of any size, and a check that one plan of a function serves all sizes."""

import warnings

import numpy as np

import letir as lt
from letir.testing import assert_close


def vector(n):
    return np.linspace(0.3, 1.7, n) + 0.05 * np.sin(7 * np.arange(n))


def rows(n, k=3):
    return (np.sin(np.arange(n * k) * 1.7) + 1.5).reshape(n, k)


def square(n):
    return np.sin(np.arange(n * n) * 1.3).reshape(n, n) + (n + 1) * np.eye(n)


ARGUMENTS = {
    "vector": vector,
    "other": lambda n: np.cos(vector(n)),
    "even": lambda n: vector(2 * n),
    "rows": rows,
    "pairs": lambda n: rows(n, 2),
    "fours": lambda n: rows(n, 4),
    "columns": lambda n: rows(3, n) if n else np.zeros((3, 0)),
    "square": square,
    "batch": lambda n: np.sin(np.arange(n * 12) * 0.7).reshape(n, 3, 4),
    "batch2": lambda n: np.cos(np.arange(n * 8) * 0.7).reshape(n, 4, 2),
    "labels": lambda n: np.arange(n) % 3,
    "labels2": lambda n: np.arange(n) * 2 % 3,
    "bits": lambda n: np.arange(n) % 2,
    "targets": lambda n: (np.arange(n) % 2).astype(float),
}


def check_sizes(function, kinds: str, plans: int = 2) -> None:
    """Assert that the results of a jitted function are NumPy's at many sizes, from at most so many
    plans for sizes above 1.
    """
    fast = lt.jit(function)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for n in (3, 4, 5, 7, 6, 11):
            args = [ARGUMENTS[kind](n) for kind in kinds.split()]
            assert_close(function(*args), fast(*args))
        assert fast.counters["compiles"] <= plans, lt.explain(fast, *args).why_static_sizes
        for n in (2, 1, 0):
            _check_as_numpy(function, fast, [ARGUMENTS[kind](n) for kind in kinds.split()])


def _check_as_numpy(function, fast, args: list) -> None:
    """Assert that a call returns, or raises, what NumPy does."""
    try:
        expected = function(*args)
    except Exception as error:
        try:
            fast(*args)
        except type(error):
            return
        raise AssertionError(f"{type(error).__name__} is expected: {error}") from None
    assert_close(expected, fast(*args))

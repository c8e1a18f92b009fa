"""``NumpyCall``: one call of a public NumPy function, which measures how far it is supported.

``letir.testing.calls`` has one for each function; the page ``docs/numpy.md`` and its test make
each call with NumPy and in a trace.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import field, frozen

from letir.ast.attrs import as_tuple


@frozen(eq=False)
class NumpyCall:
    """``f(np, *args)`` calls a function of the namespace ``np``, NumPy or ``letir.numpy``.

    ``args``: the arrays and numbers that are traced. ``complexes``: the complex arguments;
    None: ``args`` plus an imaginary part, () if it takes none. ``jumps``: results
    change their length or order with the values, so that finite differences are meaningless.
    """

    f: Callable
    args: tuple = field(converter=as_tuple)
    complexes: tuple | None = None
    jumps: bool = False


X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
Y = np.array([[1.1, 0.43, -0.7], [-0.93, 1.3, 0.8]])
V = np.array([0.5, -1.25, 2.0])
W = np.array([1.1, 0.43, -0.7])
NAN = np.array([[0.5, np.nan, 2.0], [1.5, 0.75, -0.625]])
SQUARE = np.array([[2.0, -0.5, 0.25], [0.75, 3.0, -1.0], [0.5, 1.25, 4.0]])
COUNTS = np.array([3, 1, 2, 5])
BITS = np.array([12, 10, 7])
MASK = np.array([[True, False, True], [False, True, True]])
BLOCK = np.linspace(-1.0, 1.3, 12).reshape(2, 3, 2)


def call_of(f: Callable, *args: Any) -> NumpyCall:
    """A call of a function of real and complex numbers."""
    return NumpyCall(f, args)


def real_call(f: Callable, *args: Any) -> NumpyCall:
    """A call of a function that takes no complex numbers."""
    return NumpyCall(f, args, complexes=())


def jumping_call(f: Callable, *args: Any) -> NumpyCall:
    """A call whose results change their length or order with the values."""
    return NumpyCall(f, args, jumps=True)


def calls_of_names(names: str, make: Callable[[str], NumpyCall]) -> dict[str, NumpyCall]:
    """One call for each word in ``names``, made by ``make``."""
    return {name: make(name) for name in names.split()}

"""Functions of ``numpy.polynomial.polynomial`` for traced values: coefficients by rising powers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.tracing.operands import traced_or_array


def polyval(x: Any, c: Any, tensor: bool = True) -> Any:
    """The polynomials with the coefficients along the first axis of ``c``, at ``x``."""
    x, c = traced_or_array(x), traced_or_array(c)
    c = c * 1.0 if c.dtype.kind in "biu" else c
    c = c.reshape(1) if c.ndim == 0 else c
    if tensor and x.ndim:
        c = c.reshape(c.shape + (1,) * x.ndim)
    result = c[-1] + x * 0
    for i in range(2, c.shape[0] + 1):  # Horner's scheme, as NumPy computes it
        result = c[-i] + result * x
    return result


def polyvander(x: Any, deg: int) -> Any:
    """The powers of ``x`` from 0 to ``deg`` along a last axis."""
    x = traced_or_array(x) * 1.0
    x = x.reshape(1) if x.ndim == 0 else x
    powers = [x * 0 + 1]
    for _ in range(deg):
        powers.append(powers[-1] * x)
    return np.stack(powers, axis=-1)


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None
) -> Any:
    """The coefficients of the least squares fit of degree ``deg``, by rising powers."""
    if full or not isinstance(deg, int):
        raise TypeError("polyfit of traced values takes one degree, and gives no diagnostics")
    return np.polyfit(traced_or_array(x), traced_or_array(y), deg, rcond, w=w)[::-1]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "polyval": polyval,
    "polyvander": polyvander,
    "polyfit": polyfit,
}


def polynomial_function(name: str) -> Callable:
    """The function of this name."""
    return _FUNCTIONS[name]


LATE_BOUND["polynomial_function"] = polynomial_function

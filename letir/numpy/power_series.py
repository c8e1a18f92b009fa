"""Functions of ``numpy.polynomial.polynomial`` for traced values: coefficients by rising powers."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import polynomial as _polynomial

from letir.ast import LATE_BOUND
from letir.errors import MissingRule, mark_unrecorded_code
from letir.tracing.operands import traced_or_array
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user


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
    if type(deg) is not int or deg < 0:
        deg = _polynomial.polyvander(np.ones(1), deg).shape[1] - 1  # or NumPy's error
    x = traced_or_array(x) * 1.0
    x = x.reshape(1) if x.ndim == 0 else x
    powers = [x * 0 + 1]
    for _ in range(deg):
        powers.append(powers[-1] * x)
    return np.stack(powers, axis=-1)


def polyfit(
    x: Any, y: Any, deg: Any, rcond: float | None = None, full: bool = False, w: Any = None
) -> Any:
    """The coefficients of the least squares fit of degree ``deg``, by rising powers.

    ``deg``: the highest power, or a list of the powers that are fitted.
    """
    x, y, w = [v if v is None else traced_or_array(v) for v in (x, y, w)]
    if full:
        error = MissingRule(
            f"numpy.polynomial.polynomial.polyfit: full=True is not recorded{at_user()}\n"
            "  leave it out"
        )
        raise note_refusal(mark_unrecorded_code(error))
    powers = np.sort(np.asarray(deg)) if np.ndim(deg) else np.arange(operator.index(deg) + 1)
    if not powers.size or powers[0] < 0:
        raise ValueError("expected deg >= 0")
    if w is not None and w.shape != x.shape:
        raise TypeError("expected x and w to have same length")
    x, y = x + 0.0, y + 0.0
    sides = polyvander(x, powers[-1])[:, powers], y
    if w is not None:
        sides = sides[0] * w[:, None], (y.T * w).T
    scale = np.sqrt((np.abs(sides[0]) ** 2).sum(0))
    scale = np.where(scale == 0, 1, scale)
    least = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    fitted = (np.linalg.lstsq(sides[0] / scale, sides[1], least)[0].T / scale).T
    places = np.searchsorted(powers, range(powers[-1] + 1))
    rows = [fitted[i] if powers[i] == n else 0 * fitted[0] for n, i in enumerate(places)]
    return np.stack(rows)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "polyval": polyval,
    "polyvander": polyvander,
    "polyfit": polyfit,
}


def polynomial_function(name: str) -> Callable:
    """The function of this name."""
    return _FUNCTIONS[name]


LATE_BOUND["polynomial_function"] = polynomial_function

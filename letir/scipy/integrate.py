"""``scipy.integrate`` for traced values: quadrature of samples, ordinary differential equations."""

from typing import Any

import numpy as np

from letir.ops.shape.transpose import normalize_axes
from letir.scipy.namespace import drop_in, fallback_getattr
from letir.scipy.traced_odeint import odeint, solve_ivp
from letir.tracing.operands import traced_or_array

__all__ = ["cumulative_trapezoid", "odeint", "simpson", "solve_ivp", "trapezoid"]
__getattr__ = fallback_getattr("integrate")


@drop_in("integrate")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule."""
    y, x = traced_or_array(y), None if x is None else traced_or_array(x)
    if x is None or y.dtype.kind not in "fc" or np.result_type(y, x) == y.dtype:
        return np.trapezoid(y, x, dx, axis)
    pairs = _slice_axis(y, axis, 1) + _slice_axis(y, axis, 0, -1)
    return np.sum(_interval_widths(y, x, dx, axis) * pairs / 2.0, axis, dtype=y.dtype)


def _slice_axis(x, axis: int, start, stop=None, step=None):
    """A slice of ``x`` along one axis."""
    (place,) = normalize_axes(axis, x.ndim)
    return x[(slice(None),) * place + (slice(start, stop, step),)]


def _interval_widths(y, x, dx, axis: int):
    """The widths of the intervals, broadcastable against ``y``; the number ``dx`` without x."""
    if x is None:
        return dx
    x = traced_or_array(x)
    if x.ndim == 1:
        shape = [1] * y.ndim
        shape[axis] = -1
        x = x.reshape(tuple(shape))
    return _slice_axis(x, axis, 1) - _slice_axis(x, axis, 0, -1)


@drop_in("integrate")
def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """The integrals from the first sample to each of them."""
    y = traced_or_array(y)
    pairs = (_slice_axis(y, axis, 1) + _slice_axis(y, axis, 0, -1)) / 2.0
    result = np.cumsum(_interval_widths(y, x, dx, axis) * pairs, axis=axis)
    if initial is None:
        return result
    if initial != 0:
        raise ValueError("`initial` must be `None` or `0`.")
    return np.concatenate([_slice_axis(result, axis, 0, 1) * 0.0, result], axis=axis)


@drop_in("integrate")
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by Simpson's rule.

    For an even number of samples the last interval follows Cartwright, Simpson's rule cumulative
    integration with MS Excel and irregularly-spaced data, J. Math. Sci. Math. Educ., 2017.
    """
    y = traced_or_array(y)
    (axis,) = normalize_axes(axis, y.ndim)
    n = y.shape[axis]
    h = _interval_widths(y, x, dx, axis)
    if n % 2:
        return _simpson_pairs(y, h, axis)
    if n == 2:
        return (0.5 * h * (_slice_axis(y, axis, 0, 1) + _slice_axis(y, axis, 1, 2))).sum(axis)
    h0, h1 = (h, h) if x is None else (_slice_axis(h, axis, -2, -1), _slice_axis(h, axis, -1))
    a = (2 * h1**2 + 3 * h0 * h1) / (6 * (h1 + h0))
    b = (h1**2 + 3.0 * h0 * h1) / (6 * h0)
    c = h1**3 / (6 * h0 * (h0 + h1))
    wide = y.astype(np.result_type(y, np.float64))
    last = (
        a * _slice_axis(wide, axis, -1)
        + b * _slice_axis(wide, axis, -2, -1)
        - c * _slice_axis(wide, axis, -3, -2)
    )
    rest = _simpson_pairs(
        _slice_axis(y, axis, 0, -1), h if x is None else _slice_axis(h, axis, 0, -1), axis
    )
    total = rest + last.sum(axis)
    return total.astype(rest.dtype) if total.ndim and rest.dtype != total.dtype else total


def _simpson_pairs(y, h, axis: int):
    """Simpson's rule for pairs of intervals of widths ``h``."""
    left, middle, right = (
        _slice_axis(y, axis, 0, -2, 2),
        _slice_axis(y, axis, 1, -1, 2),
        _slice_axis(y, axis, 2, None, 2),
    )
    if np.ndim(h) == 0:
        return (left + 4.0 * middle + right).sum(axis) * (h / 3.0)
    h0, h1 = _slice_axis(h, axis, 0, None, 2), _slice_axis(h, axis, 1, None, 2)
    total, ratio = h0 + h1, h0 / h1
    first_part = left * (2.0 - 1.0 / ratio) + middle * (total * (total / (h0 * h1)))
    return (total / 6.0 * (first_part + right * (2.0 - ratio))).sum(axis)

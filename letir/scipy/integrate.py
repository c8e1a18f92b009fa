"""``scipy.integrate``: quadrature of samples, and ordinary differential equations, of traced
values.
"""

import numpy as np

from letir.scipy.namespace import array, drop_in, fallback
from letir.scipy.traced_odeint import odeint

__all__ = ["cumulative_trapezoid", "odeint", "simpson", "trapezoid"]
__getattr__ = fallback("integrate")


@drop_in("integrate")
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral of samples by the trapezoidal rule."""
    return np.trapezoid(array(y), None if x is None else array(x), dx, axis)


def part(x, axis: int, start, stop=None, step=None):
    """A slice along one axis."""
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, stop, step),)]


def widths(y, x, dx, axis: int):
    """The widths of the intervals, in a shape that broadcasts to ``y``; one number without x."""
    if x is None:
        return dx
    x = array(x)
    if x.ndim == 1:
        shape = [1] * y.ndim
        shape[axis] = -1
        x = x.reshape(tuple(shape))
    return part(x, axis, 1) - part(x, axis, 0, -1)


@drop_in("integrate")
def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    """The integral of samples up to each of them."""
    y = array(y)
    pairs = (part(y, axis, 1) + part(y, axis, 0, -1)) / 2.0
    found = np.cumsum(widths(y, x, dx, axis) * pairs, axis=axis)
    if initial is None:
        return found
    if initial != 0:
        raise ValueError("`initial` must be `None` or `0`.")
    return np.concatenate([part(found, axis, 0, 1) * 0.0, found], axis=axis)


@drop_in("integrate")
def simpson(y, x=None, *, dx=1.0, axis=-1):
    """The integral of samples by Simpson's rule; of an even number of them with the last interval
    of Cartwright, Simpson's rule cumulative integration with MS Excel and irregularly-spaced data,
    J. Math. Sci. Math. Educ., 2017.
    """
    y, axis = array(y), axis % np.ndim(y) if np.ndim(y) else axis
    n = y.shape[axis]
    h = widths(y, x, dx, axis)
    if n % 2:
        return odd_simpson(y, h, axis)
    if n == 2:
        return (0.5 * h * (part(y, axis, 0, 1) + part(y, axis, 1, 2))).sum(axis)
    h0, h1 = (h, h) if x is None else (part(h, axis, -2, -1), part(h, axis, -1))
    a = (2 * h1**2 + 3 * h0 * h1) / (6 * (h1 + h0))
    b = (h1**2 + 3.0 * h0 * h1) / (6 * h0)
    c = h1**3 / (6 * h0 * (h0 + h1))
    last = a * part(y, axis, -1) + b * part(y, axis, -2, -1) - c * part(y, axis, -3, -2)
    rest = odd_simpson(part(y, axis, 0, -1), h if x is None else part(h, axis, 0, -1), axis)
    return rest + last.sum(axis)


def odd_simpson(y, h, axis: int):
    """Simpson's rule for pairs of intervals of widths ``h``."""
    left, middle, right = (
        part(y, axis, 0, -2, 2),
        part(y, axis, 1, -1, 2),
        part(y, axis, 2, None, 2),
    )
    if np.ndim(h) == 0:
        return (left + 4.0 * middle + right).sum(axis) * (h / 3.0)
    h0, h1 = part(h, axis, 0, None, 2), part(h, axis, 1, None, 2)
    total, ratio = h0 + h1, h0 / h1
    found = left * (2.0 - 1.0 / ratio) + middle * (total * (total / (h0 * h1)))
    return (total / 6.0 * (found + right * (2.0 - ratio))).sum(axis)

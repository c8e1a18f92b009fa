"""SciPy's splines through traced data: their coefficients, computed as SciPy does."""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.scipy.linear_systems import finite_array
from letir.scipy.namespace import find_in_scipy, is_traced, refusal_error
from letir.tracing.operands import traced_or_array


def coefficient_place(self: Any) -> tuple[Any, str]:
    """(object, attribute) that hold the coefficients of a spline, in any version of SciPy."""
    holder = getattr(self, "_delegate_to", self)
    return holder, "_c" if hasattr(holder, "_c") else "c"


def _require_known(name: str, *items: Any) -> None:
    """Raise MissingRule if breakpoints or conditions at the ends are traced."""
    if is_traced(*items):
        raise refusal_error(name, "only the values may be traced")


def real_values(y: Any) -> Any:
    """Values in double precision. Raises MissingRule if they are complex."""
    y = traced_or_array(y)
    if y.dtype.kind == "c":
        raise refusal_error("interpolation", "the values are complex; interpolate both parts")
    return y.astype(float)


def _rows(y: Any, axis: int, check_finite: bool = True) -> Any:
    """Finite values in double precision, with the axis of interpolation first."""
    return np.moveaxis(finite_array(real_values(y), check_finite), axis, 0)


def _widths(x: Any, like: Any) -> Any:
    """The distances between breakpoints, with the axes of values."""
    return np.diff(np.asarray(x, float)).reshape(-1, *(1,) * (like.ndim - 1))


# ---- splines with known slopes at their breakpoints ----


def _hermite_coefficients(x: Any, y: Any, slopes: Any) -> Any:
    """The coefficients of the cubics with these values and slopes at the breakpoints."""
    widths = _widths(x, y)
    chords = np.diff(y, axis=0) / widths
    bend = (slopes[:-1] + slopes[1:] - 2 * chords) / widths
    return np.stack([bend / widths, (chords - slopes[:-1]) / widths - bend, slopes[:-1], y[:-1]])


def make_hermite_spline(
    plain: Callable, self: Any, x: Any, y: Any, dydx: Any, axis: Any = 0, extrapolate: Any = None
) -> Any:
    """A CubicHermiteSpline through traced values, with traced slopes."""
    _require_known("CubicHermiteSpline", x)
    y, slopes = traced_or_array(y), traced_or_array(dydx)
    plain(self, x, np.zeros(y.shape), np.zeros(slopes.shape), axis, extrapolate)
    table = _hermite_coefficients(x, _rows(y, axis), _rows(slopes, axis))
    setattr(*coefficient_place(self), table)


def make_pchip(
    plain: Callable, self: Any, x: Any, y: Any, axis: Any = 0, extrapolate: Any = None
) -> Any:
    """A PchipInterpolator through traced values."""
    _require_known("PchipInterpolator", x)
    plain(self, x, np.zeros(np.shape(y)), axis, extrapolate)
    rows = _rows(y, axis)
    table = _hermite_coefficients(x, rows, _pchip_slopes(_widths(x, rows), rows))
    setattr(*coefficient_place(self), table)


def _pchip_slopes(widths: Any, y: Any) -> Any:
    """The slopes that keep the shape: weighted harmonic means of the slopes of the chords."""
    chords = np.diff(y, axis=0) / widths
    if y.shape[0] == 2:
        return np.concatenate([chords, chords])
    signs = np.sign(chords)
    is_flat = (signs[1:] != signs[:-1]) | (chords[1:] == 0) | (chords[:-1] == 0)
    left, right = (np.where(is_flat, 1.0, part) for part in (chords[:-1], chords[1:]))
    w1, w2 = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
    inner = np.where(is_flat, 0.0, (w1 + w2) / (w1 / left + w2 / right))
    first = _end_slope(widths[:1], widths[1:2], chords[:1], chords[1:2])
    last = _end_slope(widths[-1:], widths[-2:-1], chords[-1:], chords[-2:-1])
    return np.concatenate([first, inner, last])


def _end_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The slope at an end, by three points; changed where it would not keep the shape."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    is_steep = (np.sign(m0) != np.sign(m1)) & (np.abs(slope) > 3.0 * np.abs(m0))
    return np.where(np.sign(slope) != np.sign(m0), 0.0, np.where(is_steep, 3.0 * m0, slope))


def make_akima(
    plain: Callable,
    self: Any,
    x: Any,
    y: Any,
    axis: Any = 0,
    *,
    method: Any = "akima",
    extrapolate: Any = None,
) -> Any:
    """An Akima1DInterpolator through traced values."""
    _require_known("Akima1DInterpolator", x)
    plain(self, x, np.zeros(np.shape(y)), axis, method=method, extrapolate=extrapolate)
    rows = _rows(y, axis)
    slopes = _akima_slopes(_widths(x, rows), rows, method)
    setattr(*coefficient_place(self), _hermite_coefficients(x, rows, slopes))


def _akima_slopes(widths: Any, y: Any, method: str) -> Any:
    """The slopes: means of the slopes of two chords, weighted by the changes beside them."""
    chords = np.diff(y, axis=0) / widths
    if y.shape[0] == 2:
        return np.concatenate([chords, chords])
    before = 2.0 * chords[:1] - chords[1:2]
    after = 2.0 * chords[-1:] - chords[-2:-1]
    m = np.concatenate(
        [2.0 * before - chords[:1], before, chords, after, 2.0 * after - chords[-1:]]
    )
    weights = np.abs(np.diff(m, axis=0))
    if method == "makima":
        weights = weights + 0.5 * np.abs(m[1:] + m[:-1])
    total = weights[2:] + weights[:-2]
    is_known = total > 1e-9 * np.max(total)
    part = weights[:-2] / np.where(is_known, total, 1.0)
    mean = m[1:-2] + part * (m[2:-1] - m[1:-2])
    return np.where(is_known, mean, 0.5 * (m[3:] + m[:-3]))


# ---- splines that are linear in the values, and coefficients themselves ----


def _without_values(bc_type: Any, shape: tuple) -> Any:
    """Conditions at the ends with zeros in place of the values of derivatives."""
    if bc_type is None or isinstance(bc_type, str):
        return bc_type

    def zero(part):
        if part is None or isinstance(part, str):
            return part
        orders = [part] if np.ndim(part[0]) == 0 else part  # make_interp_spline takes several
        zeros = [(order, np.zeros(shape)) for order, _ in orders]
        return zeros[0] if orders[0] is part else zeros

    return tuple([zero(part) for part in bc_type])


def make_cubic_spline(
    plain: Callable,
    self: Any,
    x: Any,
    y: Any,
    axis: Any = 0,
    bc_type: Any = "not-a-knot",
    extrapolate: Any = None,
) -> Any:
    """A CubicSpline through traced values, whose coefficients are linear in them."""
    _require_known("CubicSpline", x, bc_type)
    if isinstance(bc_type, str) and bc_type == "periodic":
        raise refusal_error("CubicSpline", "bc_type must not be 'periodic'")
    y = traced_or_array(y)
    n = y.shape[axis]
    plain(self, x, np.zeros(y.shape), axis, bc_type, extrapolate)
    of_units = type(self)(x, np.eye(n), 0, _without_values(bc_type, (n,)))
    place = coefficient_place(self)
    changes = np.tensordot(of_units.c, _rows(y, axis), axes=(2, 0))
    setattr(*place, getattr(*place) + changes)


def make_interp_spline(
    x: Any,
    y: Any,
    k: Any = 3,
    t: Any = None,
    bc_type: Any = None,
    axis: Any = 0,
    check_finite: Any = True,
) -> Any:
    """A BSpline through traced values, whose coefficients are linear in them."""
    _require_known("make_interp_spline", x, t, bc_type)
    if isinstance(bc_type, str) and bc_type == "periodic":
        raise refusal_error("make_interp_spline", "bc_type must not be 'periodic'")
    make = find_in_scipy("interpolate", "make_interp_spline")
    y = traced_or_array(y)
    n = y.shape[axis]
    result = make(x, np.zeros(y.shape), k, t, bc_type, axis)
    of_units = make(x, np.eye(n), k, t, _without_values(bc_type, (n,)))
    place = coefficient_place(result)
    changes = np.tensordot(of_units.c, _rows(y, axis, check_finite), axes=(1, 0))
    setattr(*place, getattr(*place) + changes)
    return result


def make_b_spline(
    plain: Callable, self: Any, t: Any, c: Any, k: Any, extrapolate: Any = True, axis: Any = 0
) -> Any:
    """A BSpline with traced coefficients."""
    _require_known("BSpline", t, k)
    c = traced_or_array(c)
    plain(self, t, np.zeros(c.shape), k, extrapolate, axis)
    setattr(*coefficient_place(self), _rows(c, axis, check_finite=False))


def make_pieces(
    plain: Callable, self: Any, c: Any, x: Any, extrapolate: Any = None, axis: Any = 0
) -> Any:
    """A PPoly with traced coefficients."""
    _require_known(type(self).__name__, x)
    if not isinstance(self, find_in_scipy("interpolate", "PPoly")):
        raise refusal_error(type(self).__name__, "convert it to a PPoly")
    c = traced_or_array(c)
    plain(self, np.zeros(c.shape), x, extrapolate, axis)
    moved = np.moveaxis(c, (axis, axis + 1), (0, 1)) if axis else c
    setattr(*coefficient_place(self), real_values(moved))

"""SciPy's splines and ``interp1d`` at traced points, and some of them through traced data."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.numpy.array_creation import as_traced_constant, asarray
from letir.scipy.interpolate.spline_data import (
    coefficient_place,
    make_akima,
    make_b_spline,
    make_cubic_spline,
    make_hermite_spline,
    make_pchip,
    make_pieces,
    real_values,
)
from letir.scipy.namespace import find_in_scipy, is_traced, refusal_error
from letir.tracing.operands import traced_or_array
from letir.tracing.source_locations import at_user
from letir.tracing.stand_ins import is_recording

_CLASSES = (
    *("Akima1DInterpolator", "BSpline", "CubicHermiteSpline", "CubicSpline", "PPoly"),
    *("PchipInterpolator", "UnivariateSpline", "interp1d"),
)


def interpolation_methods() -> list[tuple]:
    """(class, name, method, stand-in) of the methods of interpolating classes."""
    classes: dict[str, Any] = {name: find_in_scipy("interpolate", name) for name in _CLASSES}
    chosen: list[tuple[Any, str, Callable]] = [
        (classes["PPoly"], "__call__", _value_of_pieces),
        (classes["interp1d"], "__call__", _value_of_interpolator),
        (classes["BSpline"], "__call__", _value_of_spline),
        (classes["UnivariateSpline"], "__call__", _value_of_smooth_spline),
        (classes["interp1d"], "__init__", _make_interp1d),
        (classes["PPoly"], "__init__", make_pieces),
        (classes["BSpline"], "__init__", make_b_spline),
        (classes["CubicSpline"], "__init__", make_cubic_spline),
        (classes["CubicHermiteSpline"], "__init__", make_hermite_spline),
        (classes["PchipInterpolator"], "__init__", make_pchip),
        (classes["Akima1DInterpolator"], "__init__", make_akima),
    ]
    return [
        (owner, name, vars(owner)[name], _method_for_traced(vars(owner)[name], recorded))
        for kind, name, recorded in chosen
        for owner in [_defining_class(kind, name)]
    ]


def _defining_class(kind: type, name: str) -> type:
    """The class in which a method of ``kind`` is defined: it differs between versions of SciPy."""
    return next(owner for owner in kind.__mro__ if name in vars(owner))


def _method_for_traced(plain: Callable, recorded: Callable) -> Callable:
    """A method that calls ``recorded`` for traced values, and SciPy's ``plain`` for others."""

    def method(self, *positional, **options):
        args, kwargs = (
            [*map(_as_known_array, positional)],
            {k: _as_known_array(x) for k, x in options.items()},
        )
        own_values = getattr(*coefficient_place(self), None), getattr(self, "_y", None)
        if not is_recording() or not is_traced(*args, *own_values, **kwargs):
            return plain(self, *args, **kwargs)
        return recorded(plain, self, *args, **kwargs)

    return method


def _as_known_array(x: Any) -> Any:
    """An array that the recorded function has made, as an ordinary one; other values unchanged."""
    return x.concrete_value() if isinstance(x, Value) and x.as_constant() is not x else x


# ---- piecewise polynomials ----


def _value_of_pieces(plain: Callable, self, x, nu=0, extrapolate=None):
    """The value of a PPoly, or of its derivative ``nu``, by Horner's rule in each piece."""
    if not isinstance(self, find_in_scipy("interpolate", "PPoly")) or is_traced(nu):
        raise refusal_error(
            type(self).__name__, "convert it to a PPoly, and pass an order nu that is not traced"
        )
    coefficients, breaks = getattr(*coefficient_place(self)), self.x
    if nu > 0 and isinstance(coefficients, Value):
        for _ in range(nu):
            powers = np.arange(coefficients.shape[0] - 1, 0, -1.0)
            coefficients = coefficients[:-1] * powers.reshape(-1, *(1,) * (coefficients.ndim - 1))
    elif nu:
        other = self.derivative(nu)
        coefficients, breaks = other.c, other.x
    if breaks[-1] < breaks[0] or (nu < 0 and isinstance(coefficients, Value)):
        raise refusal_error(
            type(self).__name__, "the breakpoints must increase, and nu must not be negative"
        )
    wide = np.flatnonzero(breaks[1:] > breaks[:-1])
    starts, last = breaks[wide], breaks[wide[-1] + 1]
    x = traced_or_array(x).astype(float)
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    if isinstance(extrapolate, str):
        x = starts[0] + (x - starts[0]) % (last - starts[0])
    piece = np.clip(np.searchsorted(starts, x, side="right") - 1, 0, len(starts) - 1)
    extra = (1,) * (coefficients.ndim - 2)
    z = (x - _indexable_table(starts)[piece]).reshape((*x.shape, *extra))
    rows = _indexable_table(coefficients)[:, wide]
    result = 0 * z + rows[0][piece]
    for k in range(1, coefficients.shape[0]):
        result = result * z + rows[k][piece]
    if not extrapolate:
        outside = ((x < starts[0]) | (x > last)).reshape((*x.shape, *extra))
        result = np.where(outside, np.nan, result)
    if not result.shape:
        return asarray(result)  # SciPy returns an array, not a scalar
    axis, n = self.axis, x.ndim
    order = [*range(n, n + axis), *range(n), *range(n + axis, result.ndim)]
    return result.transpose(order) if axis else result


def _value_of_spline(plain: Callable, self, x, nu=0, extrapolate=None):
    """The value of a BSpline, computed as a piecewise polynomial."""
    if self.k == 0:
        raise refusal_error("a spline of degree 0", 'write interp1d(x, y, kind="previous")')
    make, c = find_in_scipy("interpolate", "PPoly"), getattr(*coefficient_place(self))
    is_known = not isinstance(c, Value)
    # coefficients that are traced: the pieces are linear in them
    columns = c.reshape(c.shape[0], -1) if is_known else np.eye(c.shape[0])
    each = [make.from_spline((self.t, column, self.k)) for column in columns.T]
    table = np.stack([pieces.c for pieces in each], axis=-1)
    if is_known:
        table = table.reshape(*table.shape[:2], *c.shape[1:])
    else:
        table = np.tensordot(table, c, axes=(2, 0))
    pieces = make.construct_fast(np.zeros(table.shape), each[0].x, self.extrapolate, self.axis)
    setattr(*coefficient_place(pieces), table)
    return _value_of_pieces(plain, pieces, x, nu, extrapolate)


def _value_of_smooth_spline(plain: Callable, self, x, nu=0, ext=None):
    """The value of a UnivariateSpline, extrapolated by its first and last pieces (``ext=0``)."""
    if (self.ext if ext is None else ext) not in (0, "extrapolate"):
        raise refusal_error(type(self).__name__, "pass ext=0, which extrapolates")
    knots, coefficients, degree = self._eval_args
    spline = find_in_scipy("interpolate", "BSpline")
    size = len(knots) - degree - 1
    return _value_of_spline(plain, spline(knots, coefficients[:size], degree), x, nu, True)


# ---- interp1d ----


def _value_of_interpolator(plain: Callable, self, x):
    """The value of an ``interp1d`` at traced points."""
    if not isinstance(self, find_in_scipy("interpolate", "interp1d")):
        raise refusal_error(type(self).__name__, "use a spline or interp1d")
    x = traced_or_array(x).astype(float)
    points, looked_up = x.reshape(-1), copy.copy(self)
    for name in ("x", "_y"):
        setattr(looked_up, name, _indexable_table(getattr(self, name)))
    result = _call_of(self)(looked_up, points).reshape(points.shape[0], -1)
    if not self._extrapolate:
        result = _filled_outside(self, points, result)
    return self._finish_y(result, x.shape)


def _indexable_table(table: Any) -> Any:
    """A known array converted so that traced values can index it; a traced array unchanged."""
    return table if isinstance(table, Value) else as_traced_constant(np.array(table))


def _call_of(self) -> Callable:
    """The method of an ``interp1d`` that computes the values at traced points."""
    name = self._call.__name__
    return getattr(type(self), "_call_linear" if name == "_call_linear_np" else name)


def _filled_outside(self, points, values):
    """The values, with ``fill_value`` outside of the data; ValueError with ``bounds_error``."""
    below, above = points < self.x[0], points > self.x[-1]
    for is_outside, side in ((below, "below"), (above, "above")):
        if self.bounds_error and bool(is_outside.any()):
            raise ValueError(
                f"A value in x_new is {side} the interpolation range of interp1d{at_user()}"
            )
    values = np.where(below[:, None], np.ravel(self._fill_value_below), values)
    return np.where(above[:, None], np.ravel(self._fill_value_above), values)


def _make_interp1d(plain: Callable, self, x, y, kind="linear", axis=-1, **options):
    """An ``interp1d`` of known x and traced y, for kinds that look up the neighbours."""
    y = traced_or_array(y)
    is_sorted = not is_traced(x) and bool(np.all(np.diff(x) > 0))
    if kind not in ("linear", "nearest") or not is_sorted:
        raise refusal_error(
            "interp1d", "pass an ordinary x that increases, and kind='linear' or kind='nearest'"
        )
    plain(self, x, np.zeros(y.shape), kind, axis, **options)
    self.y, self._y = y, np.moveaxis(real_values(y), axis, 0).reshape(y.shape[axis], -1)


LATE_BOUND["interpolation_methods"] = interpolation_methods

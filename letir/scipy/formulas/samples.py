"""Formulas of ``scipy.integrate``, ``scipy.interpolate`` and ``scipy.fft`` for samples on grids."""

import itertools
from typing import Any

import numpy as np

from letir.ops.shape.transpose import normalize_axes
from letir.scipy.fft import dct, dst, idct, idst
from letir.scipy.formulas.formula_table import MadeObject, formula, no_derivative
from letir.tracing.operands import traced_or_array

# ---- integrals of samples ----


@formula("integrate.romb")
def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    """Romberg's extrapolation of the trapezoidal rule for 2**k + 1 samples."""
    rows = np.moveaxis(traced_or_array(y), axis, -1)
    n = rows.shape[-1] - 1
    levels, step = [], n
    while step:
        some = rows[..., ::step]
        ends = (some[..., 0] + some[..., -1]) / 2
        levels.append((some[..., 1:-1].sum(-1) + ends) * (step * dx))
        step //= 2
    order = 1
    while len(levels) > 1:
        pairs = itertools.pairwise(levels)
        levels = [fine + (fine - coarse) / (4**order - 1) for coarse, fine in pairs]
        order += 1
    return levels[0]


@formula("integrate.cumulative_simpson")
def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """The integrals from the first sample to each of them, by parabolas through three samples."""
    rows = np.moveaxis(traced_or_array(y), axis, -1)
    if rows.shape[-1] < 3:
        no_derivative("there are fewer than three samples")
    if x is None:
        widths = np.ones(rows.shape[-1] - 1) * np.expand_dims(traced_or_array(dx), -1)
    else:
        places = traced_or_array(x)
        places = places if places.ndim == 1 else np.moveaxis(places, axis, -1)
        widths = places[..., 1:] - places[..., :-1]
    widths = np.broadcast_to(widths, (*rows.shape[:-1], rows.shape[-1] - 1))
    first = _parabola_parts(rows, widths)
    last = _parabola_parts(rows[..., ::-1], widths[..., ::-1])[..., ::-1]
    # the integral over an interval, by the parabola that starts in it, the next one by the same
    n = widths.shape[-1]
    is_first = np.arange(n) % 2 == 0
    padded = np.concatenate([first, last[..., -1:]], axis=-1)
    shifted = np.concatenate([first[..., :1], last], axis=-1)
    parts = np.where(is_first & (np.arange(n) < n - 1), padded, shifted)
    total = np.cumsum(parts, axis=-1)
    if initial is not None:
        start = np.broadcast_to(traced_or_array(initial), rows.shape[:-1])[..., None]
        total = np.concatenate([start + 0.0 * total[..., :1], total + start], axis=-1)
    return np.moveaxis(total, -1, axis)


def _parabola_parts(y: Any, h: Any) -> Any:
    """The integrals over the first of two intervals, by the parabola through their ends."""
    h1, h2 = h[..., :-1], h[..., 1:]
    total = h1 + h2
    return (h1 / 6) * (
        (3 - h1 / total) * y[..., :-2]
        + (3 + h1 / total * h1 / h2 + h1 / total) * y[..., 1:-1]
        - (h1 / total * h1 / h2) * y[..., 2:]
    )


# ---- values on a regular grid ----


def _interpolate_on_grid(points: Any, values: Any, xi: Any, method: str, fill_value: Any) -> Any:
    """Linear interpolation, or the nearest value, on a regular grid in any number of axes."""
    grids = [traced_or_array(p) for p in points]
    values, xi = traced_or_array(values), traced_or_array(xi)
    count = len(grids)
    xi = xi.reshape(-1, count) if xi.ndim == 1 else xi  # one point, or the points of one axis
    if xi.ndim and xi.shape[-1] != count:
        no_derivative("the coordinates are not along the last axis")
    corners, inside = [], True
    for grid, c in zip(grids, np.moveaxis(xi, -1, 0), strict=True):
        low = np.clip(np.searchsorted(grid, c, side="right") - 1, 0, grid.shape[0] - 2)
        part = (c - grid[low]) / (grid[low + 1] - grid[low])
        if method == "nearest":
            corners.append([(np.where(part <= 0.5, low, low + 1), 1.0)])
        else:
            corners.append([(low, 1.0 - part), (low + 1, part)])
        inside = inside & (c >= grid[0]) & (c <= grid[-1])
    extra = (1,) * (values.ndim - count)
    result: Any = 0.0
    for corner in itertools.product(*corners):
        weight: Any = 1.0
        for _, w in corner:
            weight = weight * w
        weight = weight if isinstance(weight, float) else weight.reshape((*weight.shape, *extra))
        result = result + weight * values[tuple([place for place, _ in corner])]
    if fill_value is None:
        return result
    mask: Any = inside
    return np.where(mask.reshape((*mask.shape, *extra)), result, fill_value)


def _is_supported(method: str) -> None:
    if method not in ("linear", "nearest", "slinear"):
        no_derivative(f"method={method!r} has none; pass method='linear'")


@formula("interpolate.interpn")
def interpn(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """Interpolation on a regular grid."""
    _is_supported(method)
    return _interpolate_on_grid(points, values, xi, method, fill_value)


@formula("interpolate.RegularGridInterpolator.__call__")
def _regular_grid_value(
    interpolator: MadeObject, xi: Any, method: Any = None, *, nu: Any = None
) -> Any:
    """The value of an interpolator at points."""
    names = ("points", "values", "method", "bounds_error", "fill_value")
    given = dict(zip(names, interpolator.args, strict=False)) | interpolator.kwargs
    chosen = method or given.get("method", "linear")
    _is_supported(chosen)
    if nu is not None or isinstance(xi, list | tuple):
        no_derivative("pass the points as one array, and no nu")
    return _interpolate_on_grid(
        given["points"], given["values"], xi, chosen, given.get("fill_value", np.nan)
    )


# ---- transforms along several axes ----


def _transform_along_axes(
    transform: Any, x: Any, type: int, s: Any, axes: Any, norm: Any, rest: dict
) -> Any:
    """A cosine or sine transform along some axes, one after the other."""
    x = traced_or_array(x)
    if s is not None or rest.pop("orthogonalize", None) is not None:
        no_derivative("leave out s and orthogonalize")
    numbers = range(x.ndim) if axes is None else np.atleast_1d(axes).tolist()
    for axis in normalize_axes(tuple(numbers), x.ndim):
        x = transform(x, type=type, axis=axis, norm=norm)
    return x


def _define_transforms() -> None:
    for name, transform in {"dctn": dct, "dstn": dst, "idctn": idct, "idstn": idst}.items():

        def along_axes(
            x: Any,
            type: int = 2,
            s: Any = None,
            axes: Any = None,
            norm: Any = None,
            overwrite_x: bool = False,
            workers: Any = None,
            *,
            orthogonalize: Any = None,
            transform=transform,
        ) -> Any:
            options = {"orthogonalize": orthogonalize}
            return _transform_along_axes(transform, x, type, s, axes, norm, options)

        formula(f"fft.{name}")(along_axes)


_define_transforms()

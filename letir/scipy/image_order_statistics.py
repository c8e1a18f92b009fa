"""Order filters of ``ndimage`` (maximum, minimum, median), ``shift`` and ``map_coordinates``."""

import operator
from typing import Any

import numpy as np

from letir.scipy.formulas.images import interpolated
from letir.scipy.image_windows import (
    cast_to_double,
    extend_borders,
    filtered_axes,
    one_per_axis,
    refuse_rounding,
    shape_along,
    store_result,
    windows_of,
)
from letir.scipy.namespace import drop_in, refusal_error
from letir.tracing.operands import traced_or_array

_NO_SPLINES = "splines of order 2 and more are not; pass order=1"


def _windows_in_rows(x, size, footprint, mode, cval, origin, axes) -> Any:
    """The elements of each window along one last axis."""
    chosen = filtered_axes(axes, x.ndim)
    if footprint is not None:
        footprint = np.asarray(footprint, dtype=bool)
        size = footprint.shape
    elif size is None:
        raise RuntimeError("no footprint provided")  # SciPy's words
    sizes = [operator.index(n) for n in one_per_axis(size, len(chosen))]
    origins = [operator.index(o) for o in one_per_axis(origin, len(chosen))]
    shape = shape_along(sizes, chosen, x.ndim, 1)
    windows = windows_of(x, shape, shape_along(origins, chosen, x.ndim, 0), mode, cval)
    rows = windows.reshape(*x.shape, -1)
    return rows if footprint is None else rows[..., np.flatnonzero(footprint)]


def _order_filter(name: str, choose: Any, text: str) -> Any:
    """The filter ``name``; ``choose`` selects one element of each window, ``text`` describes it."""

    def order_filter(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        x = traced_or_array(input)
        if not isinstance(mode, str):
            raise refusal_error(f"ndimage.{name}", "pass one mode for all axes")
        rows = _windows_in_rows(x, size, footprint, mode, cval, origin, axes)
        return store_result(choose(rows), x, output)

    order_filter.__name__ = order_filter.__qualname__ = name
    order_filter.__doc__ = text
    return drop_in("ndimage")(order_filter)


def _middle_of(rows: Any) -> Any:
    """The upper median of each row."""
    return np.sort(rows, axis=-1)[..., rows.shape[-1] // 2]


maximum_filter = _order_filter(
    "maximum_filter", lambda rows: rows.max(-1), "The maximum of each window."
)
minimum_filter = _order_filter(
    "minimum_filter", lambda rows: rows.min(-1), "The minimum of each window."
)
median_filter = _order_filter("median_filter", _middle_of, "The upper median of each window.")


@drop_in("ndimage")
def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The array moved along its axes, by whole numbers, or by fractions with ``order`` 1."""
    x = traced_or_array(input)
    steps = one_per_axis(shift, x.ndim)
    if all(float(s).is_integer() for s in map(_known_number, steps)) and mode != "wrap":
        whole = [int(s) for s in steps]
        before, after = tuple(whole), tuple([-s for s in whole])
        return store_result(extend_borders(x, before, after, mode, cval), x, output)
    grids = np.indices(x.shape, dtype=float)
    places = [grid - s for grid, s in zip(grids, steps, strict=True)]
    return map_coordinates(x, places, output, order, mode, cval, prefilter)


def _known_number(step: Any) -> float:
    """A number known while recording; 0.5 for a traced one that is not an integer."""
    kind = getattr(step, "dtype", None)
    is_known = issubclass(type(step), int | float | np.generic)
    return step if is_known else int(step) if kind is not None and kind.kind in "iu" else 0.5


@drop_in("ndimage")
def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The array at fractional coordinates: the nearest element, or linear interpolation."""
    if order not in (0, 1):
        raise refusal_error("ndimage.map_coordinates", _NO_SPLINES)
    if mode not in ("constant", "nearest", "grid-wrap"):
        raise refusal_error(
            "ndimage.map_coordinates", f"mode={mode!r} is not supported; pass mode='nearest'"
        )
    x = traced_or_array(input)
    refuse_rounding("interpolation", x, output)
    places = [cast_to_double(traced_or_array(c)) for c in coordinates]
    if len(places) != x.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    return store_result(interpolated(x, places, order, mode, cval), x, output)

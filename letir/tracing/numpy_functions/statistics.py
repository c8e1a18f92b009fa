"""np.average, the cumulative functions of the array API standard, np.ediff1d, np.gradient and
np.histogram2d in terms of other operations. Any of their operands may be the traced one.
"""

from typing import Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.errors import DTypeError, ShapeError
from letir.ops.shape.shape_and_creation import as_flag
from letir.ops.shape.transpose import array_as_tuple, normalize_axes
from letir.tracing.numpy_protocols.dispatch import write_into_out
from letir.tracing.operands import traced_or_array
from letir.tracing.source_locations import at_user

# ---- average ----


def average(
    a: Any,
    axis: int | tuple[int, ...] | None = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """np.average: the mean, or the weighted sum divided by the sum of weights."""
    a = traced_or_array(a)
    keeps = keepdims is not np._NoValue and as_flag(keepdims)
    options: dict[str, Any] = {"axis": axis, "keepdims": keeps}
    if weights is None:
        result = np.mean(a, **options)
        if result.size == 0:  # NumPy divides by it even then
            raise ZeroDivisionError("division by zero: an average of no slices")
    else:
        weights = traced_or_array(weights)
        result = PRIMITIVES["average"](a, weights, **options)
    if not returned:
        return result
    if weights is None:
        # like NumPy: the number of elements of each mean, in the dtype of the mean
        total = result.dtype.type(a.size / result.size)
    else:
        total = np.sum(_weights_beside(weights, a, axis), dtype=result.dtype, **options)
    same = total.shape == result.shape
    return result, total if same else np.broadcast_to(total, result.shape).copy()


def _weights_beside(weights, a, axis):
    """Weights over some axes of ``a``, reshaped to broadcast with ``a``."""
    if weights.shape == a.shape:
        return weights
    axes = [i % a.ndim for i in (axis if isinstance(axis, tuple) else (axis,))]
    shape = [n if i in axes else 1 for i, n in enumerate(a.shape)]
    return np.reshape(np.transpose(weights, np.argsort(axes).tolist()), shape)


# ---- cumulative functions ----


def _cumulative_record(name: str):
    """np.cumulative_sum or np.cumulative_prod, by the record ``name``."""
    first = {"cumsum": 0, "cumprod": 1}[name]

    def function(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        if axis is None:
            if x.ndim > 1:
                raise ShapeError(
                    f"{name}: give the axis of an array of {x.ndim} axes{at_user()}\n  write axis=0"
                )
            axis = 0
        if dtype is None and out is not None:  # its dtype takes part in promotion
            dtype = np.result_type(x.dtype, out.dtype)
        result = PRIMITIVES[name](x, axis=axis, dtype=dtype)
        if include_initial:
            shape = list(result.shape)
            shape[axis] = 1
            # prepended to the result, which has the dtype already
            result = np.concatenate([np.full(shape, first, result.dtype), result], axis)
        return result if out is None else write_into_out(np.cumsum, x, result, out)

    return function


# ---- differences ----


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """np.ediff1d: the differences of neighbours in the flat array, with optional ends."""
    ary = traced_or_array(ary)
    row = np.ravel(ary)
    before, after = (
        [] if more is None else [_end_of_ediff1d(more, ary)] for more in (to_begin, to_end)
    )
    parts = [*before, row[1:] - row[:-1], *after]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _end_of_ediff1d(more, ary):
    """``to_begin`` or ``to_end`` of np.ediff1d as a 1-d array with the dtype of the array."""
    more = traced_or_array(more)
    if not np.can_cast(more.dtype, ary.dtype, "same_kind"):
        raise DTypeError(
            f"ediff1d: a value added at an end must be castable to {ary.dtype}, found "
            f"{more.dtype}{at_user()}\n"
            "  convert it with .astype"
        )
    return np.ravel(more).astype(ary.dtype)


def gradient(
    f: Any,
    *varargs: Any,
    axis: int | tuple[int, ...] | None = None,
    edge_order: int = 1,
) -> Any:
    """np.gradient: an array, or a tuple with one for each axis."""
    f = traced_or_array(f)
    axes = tuple(range(f.ndim)) if axis is None else array_as_tuple(axis)
    axes = normalize_axes(tuple(axes) if isinstance(axes, list) else axes, f.ndim)
    spacings = [traced_or_array(v) if isinstance(v, list | tuple) else v for v in varargs]
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        spacings *= len(axes)
    if spacings and len(spacings) != len(axes):
        raise DTypeError(
            f"gradient: {len(varargs)} spacings for {len(axes)} axes{at_user()}\n"
            "  give none, one number for all axes, or one number or array for each axis"
        )
    pairs = zip(axes, spacings or [None] * len(axes), strict=True)
    result = tuple([_gradient_along(f, spacing, i, edge_order) for i, spacing in pairs])
    return result[0] if len(axes) == 1 else result


def _gradient_along(f, spacing, axis, edge_order):
    """The gradient along one axis."""
    operands = (f,) if spacing is None else (f, spacing)
    return PRIMITIVES["gradient"](*operands, axis=axis, edge_order=edge_order)


# ---- histograms ----


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any, Any]:
    """np.histogram2d: the histogram of points, and the edges along both axes."""
    x, y = traced_or_array(x), traced_or_array(y)
    if len(x) != len(y):
        raise ShapeError(
            f"histogram2d: x and y must have the same length{at_user()}\n  pass one y for each x"
        )
    # edges given once are used for both axes
    count = len(bins) if isinstance(bins, list | tuple) else np.size(bins)
    bins = [traced_or_array(bins)] * 2 if count not in (1, 2) else bins
    result, edges = np.histogramdd(np.stack([x, y], 1), bins, range, density, weights)
    return result, edges[0], edges[1]


FUNCTIONS = {
    np.histogram2d: histogram2d,
    np.average: average,
    np.cumulative_sum: _cumulative_record("cumsum"),
    np.cumulative_prod: _cumulative_record("cumprod"),
    np.ediff1d: ediff1d,
    np.gradient: gradient,
}

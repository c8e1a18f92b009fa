"""Piecewise linear interpolation: interp, differentiable in x and in the points.

Beyond the points the result is constant. The derivative at a point is the slope to its right, at
the last point the slope to its left.
"""

import numpy as np

from letir.ast.builder import Value
from letir.errors import ShapeError
from letir.ops.define.records import cast_cotangent, composite
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.clip import clip
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.indexing.searchsorted import searchsorted
from letir.ops.indexing.sorting import argsort
from letir.ops.reductions.variance_and_average import drop_trailing_nones
from letir.ops.shape.concatenate_stack_split import concatenate


def _interp_decompose(x, xp, fp, left=None, right=None, *, period=None) -> Value:
    """The line through the neighbouring points (xp, fp); ``left`` and ``right`` beyond them."""
    _check_points(xp, fp)
    x, xp = _as_real(x), _as_real(xp)
    fp = cast(fp, np.complex128 if fp.dtype.kind == "c" else np.float64)
    if period is not None:
        left = right = None
        x, xp, fp = _wrap_period(x, xp, fp, abs(period))
    first, last = xp[0], xp[-1]
    left, right = fp[0] if left is None else left, fp[-1] if right is None else right
    inside = fp[0] if xp.shape[0] == 1 else _interpolate_between(clip(x, first, last), xp, fp)
    values = where(x < first, left, where(x > last, right, inside))
    # nan is neither beyond nor between the points, and stays nan
    return cast(where(x == x, values, x), fp.dtype)


def _check_points(xp: Value, fp: Value) -> None:
    """Raise ShapeError unless ``xp`` and ``fp`` are 1-d, of the same length, and not empty."""
    if xp.ndim != 1 or fp.shape != xp.shape:
        raise ShapeError(
            f"interp: xp and fp must be 1-d and of one length, found {xp.shape} and {fp.shape}\n"
            "  pass one value for each point"
        )
    if xp.shape[0] == 0:
        raise ShapeError("interp: there are no points\n  pass at least one point")


def _as_real(x: Value) -> Value:
    """``x`` as float64; NumPy takes the real part of complex numbers, with a warning."""
    return cast_cotangent(x, np.dtype(np.float64))


def _wrap_period(x, xp, fp, period) -> tuple:
    """``x`` and the points within one period, sorted, with one more point at each end."""
    x, xp = x % period, xp % period
    order = argsort(xp)
    xp, fp = xp[order], fp[order]
    extended = [xp[-1:] - period, xp, xp[:1] + period]
    return x, concatenate(extended), concatenate([fp[-1:], fp, fp[:1]])


def _interpolate_between(x: Value, xp: Value, fp: Value) -> Value:
    """The value at each ``x`` of the line between the two points around it."""
    i = clip(searchsorted(xp, x, "right") - 1, 0, xp.shape[0] - 2)
    start, step = xp[i], xp[i + 1] - xp[i]
    # two points at one coordinate: the value of the first, with derivative 0
    share = where(step == 0, 0, x - start) / where(step == 0, 1, step)
    return fp[i] + share * (fp[i + 1] - fp[i])


def _interp_prepare(x, xp, fp, left=None, right=None, period=None):
    """np.interp's call: the operands are (x, xp, fp, left, right)."""
    if period is not None:
        period = float(period)
        if period == 0:
            raise ShapeError(
                "interp: period must be a non-zero value\n  pass the length of a period"
            )
    return drop_trailing_nones(x, xp, fp, left, right), {"period": period}


def _interp_impl(xp, x, places, values, left=None, right=None, *, period=None):
    """np.interp."""
    return xp.interp(x, places, values, left, right, period)


interp = composite(
    "interp",
    _interp_decompose,
    impl=_interp_impl,
    prepare=_interp_prepare,
    numpy=(np.interp,),
    no_float_errors=True,
)

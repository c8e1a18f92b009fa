"""sliding_window_view: overlapping windows as new axes; a view in NumPy."""

import itertools
import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from letir.ast.primitive import Primitive
from letir.errors import ShapeError
from letir.ops.define.batch_rules import batch_first, emit_op, rank_of, shift_axes
from letir.ops.define.records import define
from letir.ops.indexing.basic import assemble
from letir.ops.indexing.index_expressions import item_with_places
from letir.ops.shape.repeat_and_diagonal import one_or_more
from letir.ops.shape.transpose import normalize_axes

# up to this many elements of a window, one slice for each is faster than one index array
_MAX_SLICES = 64


def _window_axes(ndim: int, axis) -> list[int]:
    """The axes along which the windows slide, in which an axis may occur twice."""
    return [*range(ndim)] if axis is None else [normalize_axes(a, ndim)[0] for a in axis]


def _windows_aval(x, *, window, axis):
    """The number of windows that fit along each axis, then an axis for each window size."""
    axes, shape = _window_axes(x.ndim, axis), list(x.shape)
    if len(axes) != len(window):
        raise ShapeError(
            f"sliding_window_view: {len(window)} window sizes for {len(axes)} axes\n"
            "  pass one window size for each axis"
        )
    for a, width in zip(axes, window, strict=True):
        if width < 0 or shape[a] < width:
            raise ShapeError(
                f"sliding_window_view: a window of {width} along an axis of {shape[a]}\n"
                f"  pass a window size from 0 to {shape[a]}"
            )
        shape[a] = shape[a] - width + 1
    return x.with_shape((*shape, *window))


def _windows_vjp(ct, y, x, *, window, axis):
    """The cotangent of each window element added to the element that it views."""
    counts, axes = ct.shape[: x.ndim], _window_axes(x.ndim, axis)
    if math.prod(window) > _MAX_SLICES:
        arrays, item = item_with_places(_window_indices(counts, window, axes))
        return (assemble(x, ((item, ct, arrays),)),)
    if 0 in window:
        return (None,)
    parts = []
    for offsets in itertools.product(*map(range, window)):
        starts = [0] * x.ndim
        for a, offset in zip(axes, offsets, strict=True):
            starts[a] += offset
        item = tuple(
            [  # the sizes of other axes may be symbolic
                slice(starts[a], starts[a] + n) if a in axes else slice(None)
                for a, n in enumerate(counts)
            ]
        )
        parts.append((item, ct[(..., *offsets)], ()))
    return (assemble(x, parts),)


def _window_indices(counts: tuple, window: tuple, axes: list[int]) -> tuple:
    """The index arrays that read the windows: the start of each window plus the offsets in it."""
    ndim = len(counts) + len(window)

    def steps(n: int, at: int) -> np.ndarray:
        return np.arange(n).reshape(-1, *(1,) * (ndim - at - 1))

    result = [steps(n, a) for a, n in enumerate(counts)]
    for j, (a, width) in enumerate(zip(axes, window, strict=True)):
        result[a] = result[a] + steps(width, len(counts) + j)
    return tuple(result)


@batch_first
def _batched_windows(args, mapped, *, window, axis):
    """The batching rule: no window slides along the batch axis."""
    return emit_op(
        "sliding_window_view", args, window=window, axis=shift_axes(axis, rank_of(args[0], True))
    )


def _windows_prepare(x, window_shape, axis=None, *, subok=False, writeable=False):
    """sliding_window_view. Raises ShapeError for ``writeable=True``."""
    if writeable:
        raise ShapeError(
            "sliding_window_view: writing to a view of overlapping windows is not recorded\n"
            "  write into the array itself"
        )
    axis = None if axis is None else one_or_more(axis)
    return (x,), {"window": one_or_more(window_shape), "axis": axis}


windows: Primitive = define(
    "sliding_window_view",
    lambda xp, x, *, window, axis=None: xp.lib.stride_tricks.sliding_window_view(x, window, axis),
    _windows_aval,
    vjp=_windows_vjp,
    jvp=lambda t, y, x, *, window, axis: windows(t[0], window, axis),
    prepare=_windows_prepare,
    numpy=(sliding_window_view,),
    batch=_batched_windows,
    source="np.lib.stride_tricks.sliding_window_view({0}, {window}, {axis})",
    memory="may_alias",
    write_through="read_only",
)

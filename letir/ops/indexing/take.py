"""Elements at given indices: take, take_along_axis, choose.

Cotangents go back to the elements that were taken, and add up where an index repeats.
"""

import math
from typing import Any

import numpy as np

from letir.errors import ShapeError
from letir.ops.define.batch_rules import align_ranks, batch_first, emit_op
from letir.ops.define.records import array_dtype, composite
from letir.ops.elementwise.clip import clip
from letir.ops.elementwise.comparisons_and_where import equal, where
from letir.ops.indexing.index_expressions import array_of_indices, item_along
from letir.ops.reductions.reductions import reduced_axis
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_size
from letir.ops.shape.transpose import normalize_axes

_MODES = ("raise", "wrap", "clip")


def known_mode(mode: Any) -> str:
    """``mode``, which says what to do with an index out of bounds. Raises ShapeError if unknown."""
    if mode not in _MODES:
        raise ShapeError(
            f"mode={mode!r} is not one of {', '.join(_MODES)}\n"
            "  write mode='raise', 'wrap' or 'clip'"
        )
    return mode


def as_indices(indices: Any) -> Any:
    """``indices`` as an operand: a list becomes an integer array."""
    if not isinstance(indices, list | tuple | range):
        return indices
    return array_of_indices(tuple(indices) if type(indices) is range else indices)


def _apply_mode(indices, n: int, mode: str):
    """``indices`` wrapped or clipped to an axis of size ``n``, by ``mode``."""
    if mode == "raise":
        return indices
    if mode == "wrap":
        return indices % n
    return clip(indices, 0, n - 1)


# ---- take ----


def _take_decompose(x, indices, *, axis=None, mode="raise"):
    """``x[..., indices, ...]`` along the axis."""
    if indices.type.weak:
        indices = indices.astype(indices.dtype)  # a Python number becomes an array
    if axis is None:
        x, axis = reshape(x, -1), 0
    (axis,) = normalize_axes(axis, x.ndim)
    return x[(*(slice(None),) * axis, _apply_mode(indices, x.shape[axis], mode))]


def _take_impl(xp, x, indices, *, axis=None, mode="raise"):
    """np.take. The mode is applied first, since CuPy's take has none and wraps."""
    n = _size_along(x, axis)
    if mode == "clip":
        indices = xp.clip(indices, 0, n - 1)
    return xp.take(x, indices % n if mode == "wrap" else indices, axis)


def _size_along(x, axis) -> int:
    """The size of an array along ``axis``, or its number of elements if ``axis`` is None."""
    shape = getattr(x, "shape", ())
    return math.prod(shape) if axis is None else shape[axis]


def _take_prepare(a, indices, axis=None, out=None, mode="raise"):
    """np.take."""
    indices = as_indices(indices)
    if getattr(indices, "dtype", np.dtype(int)).kind == "b":  # they are numbers here, not a mask
        indices = indices.astype(np.intp)
    return (a, indices), {"axis": reduced_axis(a, axis), "mode": known_mode(mode)}


take = composite(
    "take",
    _take_decompose,
    impl=_take_impl,
    prepare=_take_prepare,
    numpy=(np.take,),
    raises=True,
    no_float_errors=True,
    role="read_only_copied",
)


def _take_along_axis_prepare(arr, indices, axis=-1):
    """np.take_along_axis."""
    return (arr, as_indices(indices)), {"axis": None if axis is None else as_size(axis)}


def _take_along_axis_decompose(x, indices, *, axis=-1):
    """``x`` at ``indices`` along the axis, and at every position of the other axes."""
    if axis is None:
        x, axis = reshape(x, -1), 0
    return x[item_along(x, indices, axis)]


take_along_axis = composite(
    "take_along_axis",
    _take_along_axis_decompose,
    impl=lambda xp, x, indices, *, axis=-1: xp.take_along_axis(x, indices, axis),
    prepare=_take_along_axis_prepare,
    numpy=(np.take_along_axis,),
    raises=True,
    no_float_errors=True,
)

# ---- choose ----


def _choose_decompose(a, *choices, mode="raise"):
    """A chain of ``where``, one for each choice."""
    chosen, out = _apply_mode(a, len(choices), mode), choices[-1]
    # a single choice too, so that it broadcasts with a
    for i, choice in reversed(list(enumerate(choices[:-1] or choices))):
        out = where(equal(chosen, i), choice, out)
    return out.astype(array_dtype(*[choice.type for choice in choices]))


def _choose_prepare(a, choices, out=None, mode="raise"):
    """np.choose, whose choices are a list or lie along the first axis of an array."""
    return (a, *choices), {"mode": known_mode(mode)}


def _choose_batch(args, mapped, *, transform=None, **attrs):
    """The batching rule of choose, whose operands all broadcast."""
    return emit_op("choose", align_ranks(args, mapped), **attrs)


choose = composite(
    "choose",
    _choose_decompose,
    impl=lambda xp, a, *choices, mode="raise": xp.choose(a, choices, mode=mode),
    prepare=_choose_prepare,
    numpy=(np.choose,),
    source=lambda write, a, *choices, **attrs: write.numpy_call(
        a, f"[{', '.join(choices)}]", **attrs
    ),
    batch=batch_first(_choose_batch),
    raises=True,
)

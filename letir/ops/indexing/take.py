"""Elements at given places: take, take_along_axis, choose.

Derivatives go back to the places, and add up where one is there twice.
"""

import math

import numpy as np

from letir.errors import ShapeError
from letir.ops.define.batch_rules import align_ranks, batch_first, emit_op
from letir.ops.define.records import array_dtype, composite
from letir.ops.elementwise.ufuncs import clip, equal, where
from letir.ops.indexing.index_expressions import item_along
from letir.ops.reductions.reductions import reduced_axis
from letir.ops.shape.shape_and_creation import as_size, reshape
from letir.ops.shape.transpose_join_split import normalize_axes

_MODES = ("raise", "wrap", "clip")


def known_mode(mode) -> str:
    """``mode`` of an index that is out of bounds."""
    if mode not in _MODES:
        raise ShapeError(f"mode={mode!r} is none of {', '.join(_MODES)}")
    return mode


def as_indices(indices):
    """Indices as an operand: a list as an integer array."""
    if not isinstance(indices, list | tuple | range):
        return indices
    return np.asarray(indices) if len(indices) else np.zeros(0, np.intp)


def _apply_mode(indices, n: int, mode: str):
    """The indices as they mean places below ``n``."""
    if mode == "raise":
        return indices
    if mode == "wrap":
        return indices % n
    return clip(indices, 0, n - 1)


# ---- take ----


def _take_decompose(x, indices, *, axis=None, mode="raise"):
    """An index along the axis."""
    if indices.type.weak:
        indices = indices.astype(indices.dtype)  # an index is an array
    if axis is None:
        x, axis = reshape(x, -1), 0
    (axis,) = normalize_axes(axis, x.ndim)
    return x[(*(slice(None),) * axis, _apply_mode(indices, x.shape[axis], mode))]


def _take_impl(xp, x, indices, *, axis=None, mode="raise"):
    """np.take, with the mode applied first: CuPy's has none, and wraps."""
    n = _size_along(x, axis)
    if mode == "clip":
        indices = xp.clip(indices, 0, n - 1)
    return xp.take(x, indices % n if mode == "wrap" else indices, axis)


def _size_along(x, axis) -> int:
    """How long an array is along ``axis``, or in all."""
    shape = getattr(x, "shape", ())
    return math.prod(shape) if axis is None else shape[axis]


def _take_prepare(a, indices, axis=None, out=None, mode="raise"):
    """np.take's call."""
    return (a, as_indices(indices)), {"axis": reduced_axis(a, axis), "mode": known_mode(mode)}


take = composite(
    "take",
    _take_decompose,
    impl=_take_impl,
    prepare=_take_prepare,
    numpy=(np.take,),
)


def _take_along_axis_prepare(arr, indices, axis=-1):
    """np.take_along_axis' call."""
    return (arr, as_indices(indices)), {"axis": None if axis is None else as_size(axis)}


def _take_along_axis_decompose(x, indices, *, axis=-1):
    """An index with steps along all other axes."""
    if axis is None:
        x, axis = reshape(x, -1), 0
    return x[item_along(x, indices, axis)]


take_along_axis = composite(
    "take_along_axis",
    _take_along_axis_decompose,
    impl=lambda xp, x, indices, *, axis=-1: xp.take_along_axis(x, indices, axis),
    prepare=_take_along_axis_prepare,
    numpy=(np.take_along_axis,),
)

# ---- choose ----


def _choose_decompose(a, *choices, mode="raise"):
    """Of each choice what is chosen, one after the other."""
    chosen, out = _apply_mode(a, len(choices), mode), choices[-1]
    # also of a single one, which is broadcast by it
    for i, choice in reversed(list(enumerate(choices[:-1] or choices))):
        out = where(equal(chosen, i), choice, out)
    return out.astype(array_dtype(*[choice.type for choice in choices]))


def _choose_prepare(a, choices, out=None, mode="raise"):
    """np.choose's call: the choices in a list, or along the first axis of an array."""
    return (a, *choices), {"mode": known_mode(mode)}


def _choose_batch(args, mapped, *, transform=None, **attrs):
    """All operands broadcast."""
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
)

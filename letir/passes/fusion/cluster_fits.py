"""Whether a bind fits into a cluster of binds on the rows of one shape, see ``row_clusters``.

Sets of splits, the numbers of leading axes that count rows, are numbers with a bit for each.
"""

import math

import numpy as np

from letir.ast.terms import Arg, Bind, Local
from letir.kernels.row_passes import reduced_axes

Shape = tuple[int, ...]
_NOWHERE = ("", 0)


def fitted(bind: Bind, shape: Shape, splits: int, inside: dict[Arg, str]) -> tuple[str, int]:
    """The kind of a bind's result in a cluster, and those of ``splits`` for which it fits.

    ``inside``: the kinds of operands that the cluster computes. No splits: the bind does not fit.
    """
    if bind.op.memory == "view":
        return _view(bind, shape, splits, inside)
    if not bind.op.elementwise:
        return _reduction(bind, shape, splits, inside)
    if bind.binders[0].type.shape == shape:
        for arg in bind.args:
            splits &= _full_use(arg, shape, inside)
        return "full", splits
    return _row_value(bind, shape, splits, inside)


def _full_use(arg: Arg, shape: Shape, inside: dict[Arg, str]) -> int:
    """The splits for which a full value may read this operand."""
    if type(arg) is not Local:
        return -1
    found, kind = arg.type.shape, inside.get(arg)
    if kind == "total":
        return 1
    if kind == "row":
        return _row_splits(found, shape)
    if kind == "column":
        return 0
    if kind == "spread" or found == shape or math.prod(found) == 1:
        return -1
    return _row_splits(found, shape) | _column_splits(found, shape)


def _padded(found: Shape, shape: Shape) -> Shape:
    return (1,) * (len(shape) - len(found)) + found


def _row_splits(found: Shape, shape: Shape) -> int:
    """The splits for which an operand of the shape ``found`` has one element a row."""
    full = _padded(found, shape)
    return sum([1 << k for k in range(len(shape)) if full == shape[:k] + (1,) * (len(shape) - k)])


def _column_splits(found: Shape, shape: Shape) -> int:
    """The splits for which an operand of the shape ``found`` has one element a column."""
    full = _padded(found, shape)
    return sum([1 << k for k in range(len(shape)) if full == (1,) * k + shape[k:]])


def _without_ones(shape: Shape) -> Shape:
    return tuple([n for n in shape if n != 1])


def _row_value(bind: Bind, shape: Shape, splits: int, inside: dict[Arg, str]) -> tuple[str, int]:
    """An elementwise bind with one element a row."""
    rows = _without_ones(bind.binders[0].type.shape)
    splits &= sum([1 << k for k in range(len(shape)) if _without_ones(shape[:k]) == rows])
    if not rows and getattr(bind.op.impl, "ufunc", None) is None:
        splits &= ~1  # a ufunc gives a scalar, other functions a 0-d array
    if not inside:
        return _NOWHERE
    for arg in bind.args:
        if type(arg) is not Local:
            continue
        kind, own = inside.get(arg), _without_ones(arg.type.shape)
        if kind == "total":
            splits &= 1
        elif kind in ("full", "column") or own not in (rows, ()):
            return _NOWHERE
    return "row", splits


def _reduction(bind: Bind, shape: Shape, splits: int, inside: dict[Arg, str]) -> tuple[str, int]:
    """A bind that reduces full values or those of rows."""
    operand = bind.args[0]
    found, kind, axes = operand.type.shape, inside.get(operand), set(reduced_axes(bind))
    wide = {n for n in range(len(found)) if found[n] != 1}
    if not axes:
        return _NOWHERE
    if found != shape:  # all rows
        is_all = kind == "row" and axes == wide
        return ("total", splits & ~1) if is_all else _NOWHERE
    if kind is not None:
        splits &= _full_use(operand, shape, inside)
    if axes == wide:
        return "total", splits
    trailing = [1 << k for k in range(len(shape)) if axes == {n for n in wide if n >= k}]
    if splits & sum(trailing):
        return "row", splits & sum(trailing)
    leading = [1 << k for k in range(len(shape)) if axes == {n for n in wide if n < k}]
    return "column", splits & sum(leading)


def _view(bind: Bind, shape: Shape, splits: int, inside: dict[Arg, str]) -> tuple[str, int]:
    """A view of rows' values in the same order or broadcast to full values, or one that changes
    nothing.
    """
    operand = bind.args[0]
    kind = inside.get(operand)
    if len(bind.args) != 1 or kind not in ("row", "total", "full"):
        return _NOWHERE
    # a view of memory that is never read tells how the view lies in memory
    memory = np.empty(operand.type.shape, "i1")
    view = bind.op.impl(np, memory, **bind.attrs)
    if view.__array_interface__["data"] != memory.__array_interface__["data"]:
        return _NOWHERE
    if kind == "full":
        return (kind, splits) if view.strides == memory.strides else _NOWHERE
    if view.size == memory.size:
        return (kind, splits) if view.flags.c_contiguous else _NOWHERE
    if view.shape != shape or view.strides != np.broadcast_to(memory, shape).strides:
        return _NOWHERE
    rows = 1 if kind == "total" else _row_splits(operand.type.shape, shape)
    return "spread", splits & rows

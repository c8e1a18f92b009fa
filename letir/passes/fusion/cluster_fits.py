"""Tests whether a bind fits into a cluster of ``row_clusters``.

A ``Split`` divides the axes of a shape: the axes up to ``rows`` are rows of the kernel's matrix,
the others columns. There is a matrix for each index of the first ``lead`` axes. NumPy's ufunc loops
over the matrices, or, if ``is_stacked``, the kernel itself, which may then reduce along these axes.
A set of splits is an integer with one bit for each split.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from letir.ast.terms import Arg, Bind, Local
from letir.kernels.row_passes import reduced_axes
from letir.kernels.row_products import is_product, multiplies_rows, operands_of_product

Shape = tuple[int, ...]
_NOWHERE = ("", 0)


class Split(NamedTuple):
    """A division of axes, see the module."""

    lead: int
    rows: int
    is_stacked: bool = False


def all_splits(shape: Shape) -> int:
    """The set of all splits of a shape."""
    return _splits_where(shape, lambda _: True)


def least_split(shape: Shape, splits: int) -> Split:
    """The best split in a set: not stacked, with few lead axes, and then with long rows."""
    number = (splits & -splits).bit_length() - 1
    lead, rows = divmod(number, len(shape))
    is_stacked, lead = divmod(lead, len(shape))
    return Split(lead, rows, bool(is_stacked))


def joins_group(bind: Bind, shape: Shape, split: Split, inside: set) -> bool:
    """Whether a group with this split may compute an elementwise bind at all places of the matrix,
    or for all its rows.

    ``inside``: values that the group computes, all of the same kind.
    """
    bits = sum([bit for bit, other in _splits_of(shape) if other == split])
    is_full = bind.binders[0].type.shape == shape
    kinds: dict[Arg, str] = {
        arg: "full" if is_full else "row" for arg in bind.args if arg in inside
    }
    if is_full:
        return bool(fit_into_cluster(bind, shape, bits, kinds)[1])
    # full values may read a vector with an element for each row of a square matrix as columns
    part = bind.binders[0].type.shape
    pairs = zip(_pad_shape(part, shape), shape, strict=False)
    if all(n in (1, end) for n, end in pairs) and not bits & _row_splits(part, shape):
        return False
    return bool(_row_value(bind, shape, bits, kinds)[1])


def _splits_of(shape: Shape) -> Iterator[tuple[int, Split]]:
    """(bit, split) for each split."""
    n = len(shape)
    for is_stacked in (False, True):
        for lead in range(is_stacked, n):
            for rows in range(lead, n):
                yield 1 << ((is_stacked * n + lead) * n + rows), Split(lead, rows, is_stacked)


def _splits_where(shape: Shape, holds: Callable[[Split], bool]) -> int:
    """The set, as bits, of the splits of ``shape`` for which ``holds`` is true."""
    return sum([bit for bit, split in _splits_of(shape) if holds(split)])


def fit_into_cluster(
    bind: Bind, shape: Shape, splits: int, inside: dict[Arg, str]
) -> tuple[str, int]:
    """The kind of a bind's result in a cluster, and the subset of ``splits`` that the bind allows.

    ``inside``: the kinds of operands that the cluster computes. If the subset is empty, the bind
    does not fit.
    """
    if bind.op.memory == "view":
        return _fit_view(bind, shape, splits, inside)
    if is_product(bind):
        return _fit_product(bind, shape, splits, inside)
    if not bind.op.elementwise:
        return _fit_reduction(bind, shape, splits, inside)
    if bind.binders[0].type.shape == shape:
        for arg in bind.args:
            splits &= _full_use(arg, shape, inside)
        return "full", splits
    return _row_value(bind, shape, splits, inside) if inside else _NOWHERE


def _full_use(arg: Arg, shape: Shape, inside: dict[Arg, str]) -> int:
    """The splits for which a full value may read this operand."""
    if type(arg) is not Local:
        return -1
    result, kind = arg.type.shape, inside.get(arg)
    if kind == "total":
        return 1
    if kind == "row":
        return _row_splits(result, shape)
    if kind == "column":
        return 0
    if kind == "spread" or result == shape or math.prod(result) == 1:
        return -1
    return _broadcast_splits(result, shape)


@lru_cache(1 << 10)
def _row_splits(part: Shape, shape: Shape) -> int:
    """The splits for which a value of the shape ``part`` has one element a row."""
    full = _pad_shape(part, shape)
    ones = (1,) * len(shape)
    return _splits_where(shape, lambda s: full == shape[: s.rows] + ones[s.rows :])


@lru_cache(1 << 10)
def _broadcast_splits(part: Shape, shape: Shape) -> int:
    """The splits for which an operand has all rows or one row, and all columns or one column."""
    full = _pad_shape(part, shape)
    ones = (1,) * len(shape)
    return _splits_where(
        shape,
        lambda s: (
            full[s.lead : s.rows] in (shape[s.lead : s.rows], ones[s.lead : s.rows])
            and full[s.rows :] in (shape[s.rows :], ones[s.rows :])
            and _fits_stack(full, shape, s)
        ),
    )


def _fits_stack(full: Shape, shape: Shape, split: Split) -> bool:
    """Whether an operand has all lead axes of a stacked split, or none."""
    lead = split.lead
    return not split.is_stacked or full[:lead] in (shape[:lead], (1,) * lead)


def _pad_shape(part: Shape, shape: Shape) -> Shape:
    """``part`` with leading axes of length 1, of the rank of ``shape``."""
    return (1,) * (len(shape) - len(part)) + part


def _without_ones(shape: Shape) -> Shape:
    return tuple([n for n in shape if n != 1])


def _row_value(bind: Bind, shape: Shape, splits: int, inside: dict[Arg, str]) -> tuple[str, int]:
    """``fit_into_cluster`` for an elementwise bind with one element a row."""
    result = bind.binders[0].type.shape
    own = _without_ones(result)
    splits &= _splits_where(shape, lambda s: _without_ones(shape[: s.rows]) == own)
    if not own and getattr(bind.op.impl, "ufunc", None) is None:
        splits &= ~1  # a ufunc gives a scalar, other functions a 0-d array
    for arg in bind.args:
        if type(arg) is not Local:
            continue
        kind, part = inside.get(arg), _without_ones(arg.type.shape)
        if kind == "total":
            splits &= 1
        elif kind in ("full", "column", "spread") or (kind == "row" and part != own):
            return _NOWHERE
        elif part not in (own, ()):
            splits &= _row_broadcast_splits(arg.type.shape, result, shape)
    return "row", splits


def _row_broadcast_splits(part: Shape, result: Shape, shape: Shape) -> int:
    """The splits for which an operand of a row value is broadcast along lead axes only."""
    full = _pad_shape(part, result)
    ones = (1,) * len(shape)
    return _splits_where(
        shape,
        lambda s: (
            result in (shape[: s.rows], shape[: s.rows] + ones[s.rows :])
            and full[s.lead : s.rows] in (shape[s.lead : s.rows], ones[s.lead : s.rows])
            and _fits_stack(full, shape, s)
        ),
    )


def _fit_reduction(
    bind: Bind, shape: Shape, splits: int, inside: dict[Arg, str]
) -> tuple[str, int]:
    """``fit_into_cluster`` for a reduction of full values or of row values."""
    operand = bind.args[0]
    part, kind, axes = operand.type.shape, inside.get(operand), set(reduced_axes(bind))
    long_axes = {n for n in range(len(part)) if part[n] != 1}
    if not axes:
        return _NOWHERE
    plain = _splits_where(shape, lambda s: s.lead == 0)
    if part != shape:  # all rows
        is_all = kind == "row" and axes == long_axes
        return ("total", splits & plain & ~1) if is_all else _NOWHERE
    if kind is not None:
        splits &= _full_use(operand, shape, inside)
    if axes == long_axes:
        return "total", splits & plain
    within = _splits_where(shape, lambda s: axes == {n for n in long_axes if n >= s.rows})
    if splits & within:
        return "row", splits & within
    return "column", splits & _splits_where(shape, lambda s: _reduces_rows(axes, long_axes, s))


def _reduces_rows(axes: set[int], long_axes: set[int], split: Split) -> bool:
    """Whether these are the axes of all rows, of all matrices, or both."""
    lead, rows = [{n for n in long_axes if n < end} for end in (split.lead, split.rows)]
    return axes == rows - lead or (split.is_stacked and axes in (lead, rows))


def _fit_product(bind: Bind, shape: Shape, splits: int, inside: dict[Arg, str]) -> tuple[str, int]:
    """``fit_into_cluster`` for a product of a full value and a vector."""
    matrix, vector = operands_of_product(bind)
    if matrix.type.shape != shape or inside.get(matrix, "full") != "full":
        return _NOWHERE
    splits &= _splits_where(shape, lambda s: (s.lead, s.rows) == (0, 1))
    if multiplies_rows(bind):
        return _NOWHERE if vector in inside else ("row", splits)
    return ("column", splits) if inside.get(vector) == "row" else _NOWHERE


def _fit_view(bind: Bind, shape: Shape, splits: int, inside: dict[Arg, str]) -> tuple[str, int]:
    """``fit_into_cluster`` for a view: a row value reshaped or broadcast, or an identity."""
    operand = bind.args[0]
    kind = inside.get(operand)
    if len(bind.args) != 1 or kind not in ("row", "total", "full"):
        return _NOWHERE
    # a view of an array that is never read shows the memory layout of the view
    memory = np.empty(operand.type.shape, "i1")
    view = bind.op.impl(np, memory, **bind.attrs)
    if view.__array_interface__["data"][0] != memory.__array_interface__["data"][0]:
        return _NOWHERE
    if kind == "full":
        return (kind, splits) if view.strides == memory.strides else _NOWHERE
    if view.size == memory.size:
        return (kind, splits) if view.flags.c_contiguous else _NOWHERE
    if view.shape != shape or view.strides != np.broadcast_to(memory, shape).strides:
        return _NOWHERE
    rows = 1 if kind == "total" else _row_splits(operand.type.shape, shape)
    return "spread", splits & rows

"""Rules of operations that read and write by indices, for ``row_rules``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.attrs import Here
from letir.ast.terms import Bind
from letir.ast.types import ArrayType
from letir.dask.row_rule import (
    SUM,
    Axes,
    RowRule,
    SplitOperands,
    broadcast_row_axes,
    with_row_count,
)
from letir.ops.indexing.index_expressions import group_parts, indexed_shape


def _entries_by_axis(item: Any, ndim: int) -> list | None:
    """The entries of an index, one for each axis; None for masks."""
    parts = list(item if type(item) is tuple else (item,))
    if any(type(part) is Here and part.count is not None for part in parts):
        return None
    used = sum(part is not None and part is not ... for part in parts)
    whole = [slice(None)] * (ndim - used)
    place = parts.index(...) if any(part is ... for part in parts) else len(parts)
    parts[place : place + 1] = whole
    return [part for part in parts if part is not None]


def _rows_of(aval: ArrayType, axis: int, item: Any, arrays: Sequence, split: SplitOperands) -> Any:
    """(the axes that index arrays need, which of them number the rows) if an index of an array
    of ``aval`` selects among the elements of each row; else None.
    """
    entries = _entries_by_axis(item, aval.ndim)
    if entries is None or axis >= len(entries):
        return None
    entry = entries[axis]
    if type(entry) is slice:
        if entry != slice(None):
            return None
        return (None,) * len(arrays), ()
    if type(entry) is not Here:
        return None
    which = sum(type(part) is Here for part in entries[:axis])
    value = split.values.get(arrays[which])
    places = () if value is None else [i for i, n in enumerate(value.shape) if n == split.count]
    if value is None or len(places) != 1 or value.size != split.count:
        return None
    if not np.array_equal(value.ravel(), np.arange(split.count)):
        return None
    avals = [arg.type for arg in arrays]
    own = [places[0] if i == which else None for i in range(len(arrays))]
    broadcast = broadcast_row_axes(avals, tuple(own), split.count)
    return broadcast and (broadcast[0], (which,))


def index_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """``x[item]``: elements of each row, or of a whole array for rows of indices."""
    x, *arrays = bind.args
    item, axis = bind.attrs["item"], split.axes[0]
    if axis is None:
        rows = broadcast_row_axes([arg.type for arg in arrays], split.axes[1:], split.count)
        return rows and RowRule((None, *rows[0])) if _entries_by_axis(item, x.type.ndim) else None
    rows = _rows_of(x.type, axis, item, arrays, split)
    if rows is None or _is_split_otherwise(split.axes[1:], rows[0]):
        return None
    return RowRule((axis, *rows[0]), numbers=tuple([1 + i for i in rows[1]]))


def _is_split_otherwise(axes: Axes, needed: Axes) -> bool:
    """Whether an operand is split along another axis than the needed one."""
    pairs = zip(axes, needed, strict=True)
    return any(axis is not None and axis != need for axis, need in pairs)


def _part_axis(aval: ArrayType, axes: Axes, item: Any, arrays: Sequence, count: int) -> int | None:
    """The axis of rows of ``x[item]``, for ``x`` and arrays with these axes of rows."""
    shapes = []
    for n in (count, count + 1):
        first, *others = [
            with_row_count(k, a, n)
            for k, a in zip([aval, *[x.type for x in arrays]], axes, strict=True)
        ]
        shapes.append(indexed_shape(first.shape, item, tuple(others)))
    places = [i for i, (n, m) in enumerate(zip(*shapes, strict=True)) if n != m]
    return places[0] if len(places) == 1 else None


def index_write_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """``x[item] = new`` and ``x[item] += new`` in each row."""
    x, new, *arrays = bind.args
    item, axis = bind.attrs["item"], split.axes[0]
    if axis is None:
        return None
    rows = _rows_of(x.type, axis, item, arrays, split)
    if rows is None:
        return None
    place = _part_axis(x.type, (axis, *rows[0]), item, arrays, split.count)
    if place is None:
        return None
    rank = len(indexed_shape(x.type.shape, item, tuple([arg.type for arg in arrays])))
    own = new.type.ndim - rank + place
    is_split = own >= 0 and new.type.shape[own] == split.count
    needed = (axis, own if is_split else None, *rows[0])
    if _is_split_otherwise(split.axes, needed):
        return None
    return RowRule(needed, numbers=tuple([2 + i for i in rows[1]]))


def assemble_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """The sum of parts in zeros: parts of rows, or rows of parts at places in a whole array."""
    shape, parts = bind.attrs["shape"], group_parts(bind.attrs["items"], bind.args)
    aval = bind.binders[0].type
    for axis in [i for i, n in enumerate(shape) if n == split.count]:
        needed: list = []
        numbers: list = []
        for item, _, arrays in parts:
            rows = _rows_of(aval, axis, item, arrays, split)
            place = rows and _part_axis(aval, (axis, *rows[0]), item, arrays, split.count)
            if rows is None or place is None:
                break
            numbers += [len(needed) + 1 + i for i in rows[1]]
            needed += [place, *rows[0]]
        else:
            if not _is_split_otherwise(split.axes, tuple(needed)):
                return RowRule(tuple(needed), shape_axis=axis, numbers=tuple(numbers))
    return _rule_of_added_rows(split, aval, parts)


def _rule_of_added_rows(split: SplitOperands, aval: ArrayType, parts: list) -> RowRule | None:
    """The rule for rows of parts that are added at places in a whole array."""
    needed: list = []
    for item, _, arrays in parts:
        axes = split.axes[len(needed) + 1 : len(needed) + 1 + len(arrays)]
        rows = broadcast_row_axes([arg.type for arg in arrays], axes, split.count)
        if rows is None or _entries_by_axis(item, aval.ndim) is None:
            return None
        place = _part_axis(aval, (None, *rows[0]), item, arrays, split.count)
        if place is None:
            return None
        needed += [place, *rows[0]]
    if _is_split_otherwise(split.axes, tuple(needed)) or aval.dtype.kind == "b":
        return None
    return RowRule(tuple(needed), (None,), SUM)

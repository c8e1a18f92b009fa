"""Composition of indices: ``x[first][second] == x[composed(x.shape, first, second)]``."""

from typing import Any

from letir.ast.attrs import Here
from letir.ops.indexing.index_expressions import expand_item


def compose_items(shape: tuple, first: Any, second: Any) -> tuple | None:
    """The item with ``x[first][second] == x[item]`` for basic indices; None if there is none."""
    items = [item if type(item) is tuple else (item,) for item in (first, second)]
    if any(type(e) is Here for item in items for e in item):
        return None  # a traced number
    inner = [e for e in expand_item(shape, first, ()) if e is not ...]
    try:
        axes = iter([_axis_entry(e, n) for e, n in _with_sizes(inner, shape)])
    except TypeError:  # a size with a name
        return None
    left = list(axes)
    sizes = tuple(1 if a is None else len(a) for a in left if type(a) is not int)
    outer = [e for e in expand_item(sizes, second, ()) if e is not ...]
    found: list = []
    for axis in left:
        if type(axis) is int:
            found.append(axis)
            continue
        while outer and outer[0] is None:
            found.append(outer.pop(0))
        entry = outer.pop(0)
        if axis is not None:
            found.append(axis[entry])
        elif type(entry) is slice:
            if len(range(1)[entry]) != 1:
                return None
            found.append(None)
    return tuple([_slice_of_range(e) if type(e) is range else e for e in [*found, *outer]])


def _with_sizes(entries: list, shape: tuple):
    """(entry, size of its axis) of an expanded index, None for a new axis."""
    sizes = iter(shape)
    return [(e, None if e is None else next(sizes)) for e in entries]


def _axis_entry(entry, n):
    """The selection of an index entry along an axis: an int, a range, or None for a new axis."""
    if entry is None:
        return None
    return range(n)[entry]


def _slice_of_range(found: range) -> slice:
    """The slice that selects a range of positions."""
    if not len(found):
        return slice(0, 0)
    step = None if found.step == 1 else found.step
    return slice(found.start, found.stop if found.stop >= 0 else None, step)

"""``x[i : i + 2]`` with traced integers: the start is an operand, the length is fixed.

One guard checks the length, because the types of a program are fixed. Another checks that the
slice lies inside of the array, where its length is the distance of its ends. Other slices, such
as ``x[:i]`` or ``x[-3:i]``, guard their ends.
"""

from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.primitive import PRIMITIVES
from letir.tracing.operands import is_traced_slice
from letir.tracing.trace_state import ABSENT


def take_traced_slices(x: Any, item: Any) -> tuple[Any, tuple | None] | None:
    """(the slices of ``x`` with traced ends, the rest of the index or None); None if there are no
    such slices.

    Records the guards of the slices.
    """
    entries = list(item) if type(item) is tuple else [item]
    axes = _axes_of(entries, x.ndim)
    for place, entry in enumerate(entries):
        if type(entry) is not slice or not is_traced_slice(entry) or axes is None:
            continue
        axis = axes[place]
        size = _guarded_size(entry, x.shape[axis] if axis < x.ndim else None)
        if size is not None:
            step = 1 if entry.step is None else entry.step
            x = PRIMITIVES["dynamic_slice"](x, entry.start, size=size, step=step, axis=axis)
            entries[place] = slice(None)
    if any(type(entry) is slice and is_traced_slice(entry) for entry in entries):
        return None
    is_done = all(type(entry) is slice and _takes_all(entry) for entry in entries)
    return x, None if is_done else tuple(entries)


def _takes_all(entry: slice) -> bool:
    """Whether a slice is ``:``; comparing slices would compare their traced ends."""
    return entry.start is None and entry.stop is None and entry.step is None


def _axes_of(entries: list, ndim: int) -> list[int] | None:
    """The axis to which each entry of an index belongs; None if that is not known."""
    widths = [_axes_taken(entry) for entry in entries]
    if None in widths:
        return None
    used = sum(width for width in widths if width)
    axes, axis = [], 0
    for entry, width in zip(entries, widths, strict=True):
        axes.append(axis)
        axis += ndim - used if entry is ... else width or 0
    return axes


def _axes_taken(entry: Any) -> int | None:
    """The number of axes that an entry of an index takes; None if it is not known."""
    if entry is None or entry is ...:
        return 0
    if type(entry) is bool:
        return None
    if isinstance(entry, slice | int):
        return 1
    dtype, ndim = getattr(entry, "dtype", None), getattr(entry, "ndim", None)
    if isinstance(entry, list):
        return None if any(isinstance(item, list | tuple) for item in entry) else 1
    if dtype is None or ndim is None:
        return None
    return ndim if dtype.kind == "b" else 1


def _guarded_size(entry: slice, n: Any) -> int | None:
    """The length of a slice inside of an axis of ``n`` elements, with its guards; else None."""
    start, stop, step = entry.start, entry.stop, 1 if entry.step is None else entry.step
    bounds = start.concrete_value(), stop.concrete_value()
    if type(n) is not int or type(step) is not int or not step or ABSENT in bounds:
        return None
    first, end = map(int, bounds)
    inside = 0 <= first < end <= n if step > 0 else 0 <= end < first < n
    if not inside:
        return None
    lower, upper, most = (start, stop, n) if step > 0 else (stop, start, n - 1)
    bool((lower >= 0) & (upper <= most))
    return len(range(0, int(stop - start), step))


LATE_BOUND["take_traced_slices"] = take_traced_slices

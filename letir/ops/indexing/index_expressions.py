"""Index expressions as attributes: the form of ``item``, and the shape of ``x[item]``.

index, index_set, index_add, assemble, their batching rules, and views of traced values share these
functions.
"""

import itertools
import operator
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Here
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import has_size, is_static_shape
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import AxisBoundsError, BoundsError, ShapeError
from letir.ops.shape.shape_and_creation import as_size, indices_below, ones_like


def item_with_places(item: Any) -> tuple[tuple, Any]:
    """(the arrays of an index, the index with ``Here`` in their places)."""
    arrays: list = []
    if isinstance(item, tuple):  # a named tuple too
        new_item = tuple([_entry_with_places(entry, arrays) for entry in item])
    else:
        new_item = _entry_with_places(item, arrays)
    return tuple(arrays), new_item


def _entry_with_places(entry, arrays: list) -> Any:
    """One entry of an index as an attribute; an array is appended to ``arrays``."""
    # type(), not isinstance: True is a mask, not the index 1
    if entry is None or entry is Ellipsis or type(entry) is int:
        return entry
    if isinstance(entry, slice):
        ends = entry.start, entry.stop, entry.step
        return slice(*[None if n is None else as_size(n) for n in ends])
    # type(), not isinstance: traced values claim to be instances of NumPy's classes
    if issubclass(type(entry), np.integer):
        return int(entry)
    if type(entry) is Size:
        entry = entry.number()
    if isinstance(entry, Value):
        entry = entry.as_constant()  # a buffer of known contents
    result = entry if isinstance(entry, np.ndarray | Value) else _index_array(entry)
    if type(result) is int:
        return result
    if result is None or result.dtype.kind not in "biu":
        error: Any = BoundsError(
            "an index is made of integers, slices, None, ... and integer or boolean arrays, "
            f"found {LATE_BOUND['describe_value'](entry)}\n"
            "  cast it with .astype(int) if its values are integers"
        )
        error.letir_numpys = IndexError(
            "arrays used as indices must be of integer (or boolean) type"
            if isinstance(entry, np.ndarray)  # also a traced array, but no traced number
            else "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and "
            "integer or boolean arrays are valid indices"
        )
        raise error
    arrays.append(result)
    # __index__ of a traced mask's count records a guard
    return Here(_count_true(result) if result.dtype.kind == "b" else None)


def _count_true(mask: Any) -> int:
    """The number of elements that a mask selects; of a traced mask a guard fixes it."""
    count = mask.sum()
    guarded = getattr(count, "guarded", None)
    if guarded is None:
        return count.__index__()
    return guarded(int, "the integer (the number of elements that a mask selects)")


def _index_array(entry: Any) -> Any:
    """The indices that NumPy reads from a list, a range, or any other object.

    An int for an object with ``__index__``; None if there are no indices in it.
    """
    if isinstance(entry, list | tuple):
        return array_of_indices(entry)
    if hasattr(type(entry), "__index__") and not isinstance(entry, bool | np.bool_):
        return operator.index(entry)
    try:
        result = np.asarray(entry)
    except (TypeError, ValueError):
        return None
    # the indices may be an empty sequence, of which NumPy would make a floating array
    return result if result.size or result.dtype.kind in "biu" else result.astype(np.intp)


def array_of_indices(entry: list | tuple) -> Any:
    """The array of a list of indices, among which may be traced integers.

    A nested tuple is a sequence of indices, as a list is.
    """
    if not entry:
        return np.zeros(0, np.intp)  # asarray([]) is floating
    if not _has_traced(entry):
        return np.asarray(entry)
    nested = [array_of_indices(e) if isinstance(e, list | tuple) else e for e in entry]
    strong = [e.astype(e.dtype) if isinstance(e, Value) else np.asarray(e) for e in nested]
    return PRIMITIVES["stack"](strong)


def _has_traced(entry: list | tuple) -> bool:
    """Whether there is a traced value in nested lists."""
    return any(
        isinstance(e, Value) or (isinstance(e, list | tuple) and _has_traced(e)) for e in entry
    )


def item_along(x: Any, indices: Any, axis: int) -> tuple:
    """The index that reads ``np.take_along_axis(x, indices, axis)``."""
    if indices.dtype is not None and indices.dtype.kind not in "iu":
        raise BoundsError(
            f"indices along an axis must be integers, found {indices.dtype}\n"
            "  convert them: indices.astype(int)"
        )
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"indices along an axis must have as many axes as the array: {indices.shape} for an "
            f"array of shape {x.shape}\n"
            "  expand them: np.expand_dims(indices, axis)"
        )
    if not -x.ndim <= axis < x.ndim:
        raise AxisBoundsError(
            f"axis {axis} is out of bounds for array of dimension {x.ndim}\n"
            "  count axes from 0, or from -1 for the last one"
        )
    axis %= x.ndim
    return tuple([indices if i == axis else _all_along(x, indices, i) for i in range(x.ndim)])


def _all_along(x, indices, axis: int):
    """All indices along an axis of ``x``, in a shape that broadcasts against ``indices``."""
    n = x.shape[axis]
    if type(n) is int:
        like = x if isinstance(x, Value) else indices
        return indices_below(n, like).reshape(-1, *(1,) * (x.ndim - axis - 1))
    # arange needs a number: for a symbolic size ones are summed up instead
    like = indices if isinstance(indices, Value) and indices.shape[axis] == n else x
    return PRIMITIVES["cumsum"](ones_like(like).astype(np.int64), axis) - 1


def fill_item(item: Any, arrays: Any) -> Any:
    """``item`` with the arrays in place of each ``Here``: the inverse of ``item_with_places``."""
    if not arrays:
        return item
    rest = iter(arrays)
    if type(item) is tuple:
        return tuple([next(rest) if type(entry) is Here else entry for entry in item])
    return next(rest) if type(item) is Here else item


def _check_mask(mask: ArrayType, shape: tuple, axis: int) -> None:
    """Raise BoundsError unless a mask has the sizes of the axes from ``axis`` on."""
    if not _is_mask_of(mask.shape, shape[axis : axis + mask.ndim]):
        raise BoundsError(
            f"a mask of shape {mask.shape} does not fit {shape} from axis {axis}\n"
            "  a mask has the sizes of the axes that it selects from"
        )


def indexed_shape(shape: tuple, item: Any, arrays: tuple[ArrayType, ...]) -> tuple:
    """The shape of ``x[item]`` by NumPy's rules for basic and advanced indices.

    https://numpy.org/doc/stable/user/basics.indexing.html#combining-advanced-and-basic-indexing
    """
    entries = expand_item(shape, item, arrays)
    kinds, axis = iter(arrays), 0
    sizes: list = []  # sizes of the axes from slices and None
    array_shapes: list[tuple] = []  # shapes of the advanced indices
    # (position of the entry, number of kept axes before it) for each advanced index
    places: list[tuple[int, int]] = []
    for position, entry in enumerate(entries):
        if entry is None or entry is ...:
            sizes += [1] * (entry is None)
            continue
        if type(entry) is slice:
            sizes.append(_slice_size(shape[axis], entry))
            axis += 1
            continue
        # an integer beside arrays counts as an array (see NumPy's page)
        places.append((position, len(sizes)))
        aval = next(kinds) if type(entry) is Here else None
        if aval is None:
            check_bounds(entry, shape[axis], axis)
            axis += 1
        elif aval.dtype.kind == "b":
            _check_mask(aval, shape, axis)
            array_shapes.append(
                (entry.count,)
            )  # a mask acts as mask.nonzero(): index arrays of 1 axis
            axis += aval.ndim
        else:
            array_shapes.append(aval.shape)
            axis += 1
    # arrays that are not adjacent: their broadcast axes come first (see NumPy's page)
    adjacent = all(b[0] - a[0] == 1 for a, b in itertools.pairwise(places))
    start = places[0][1] if places and adjacent else 0
    try:
        return (*sizes[:start], *broadcast_shapes(*array_shapes), *sizes[start:])
    except ShapeError as error:
        raise BoundsError(
            f"the arrays of an index do not broadcast: {error}\n"
            "  make them equally long, or combine them with np.ix_"
        ) from None


def _is_mask_of(mask: tuple, shape: tuple) -> bool:
    """Whether a mask of this shape selects from axes of this ``shape``."""
    if mask == shape:
        return True
    # NumPy does not compare axes of length 0
    return 0 in mask and all(n in (0, m) for n, m in zip(mask, shape, strict=True))


def expand_item(shape: tuple, item: Any, arrays: tuple[ArrayType, ...]) -> list:
    """The entries of an index with ``...`` and missing entries replaced by full slices.

    An ``...`` that stands for no axis stays, since arrays on both sides of it are not adjacent.
    """
    entries = list(item) if type(item) is tuple else [item]
    masks = iter(arrays)
    count = 0
    for entry in entries:
        aval = next(masks) if type(entry) is Here else None
        count += (
            aval.ndim
            if aval is not None and aval.dtype.kind == "b"
            else entry is not None and entry is not ...
        )
    missing = len(shape) - count
    if missing < 0:
        raise BoundsError(
            f"too many indices: {count} for an array of shape {shape}\n"
            "  leave indices out, or add axes with x[:, None]"
        )
    places = [i for i, entry in enumerate(entries) if entry is ...]
    if len(places) > 1:
        raise BoundsError("an index can only have one ellipsis\n  write : for each further axis")
    if missing:
        at = places[0] if places else len(entries)
        entries[at : at + 1] = [slice(None)] * missing
    return entries


def _slice_size(n, part: slice) -> Any:
    """The size of a slice of an axis of size ``n``."""
    if type(n) is int and not has_size(part):
        return len(range(*part.indices(n)))
    # n is symbolic, and at least the number of elements that the slice drops at its ends
    start = 0 if part.start is None else part.start
    stop, step = 0 if part.stop is None else part.stop, 1 if part.step is None else part.step
    is_plain = type(start) is type(stop) is int and start >= 0 and step == 1
    if is_plain and (part.stop is None or stop < 0):
        return n - start + stop
    if type(step) is not int or step == 0:
        raise ShapeError(
            f"the step of the slice {part} must be a number other than 0\n"
            "  write x[::-1] to reverse, x[::2] for every second element"
        )
    try:
        return _symbolic_size(n, part, step)
    except ShapeError as error:
        remedy = str(error).partition("\n")[2]
        raise ShapeError(
            f"the slice {part} of an axis of size {n} needs the size\n{remedy}"
        ) from None


def _symbolic_size(n: Size | int, part: slice, step: int) -> Any:
    """The size of a slice whose ends or axis are symbolic. Raises ShapeError if it is not the same
    expression for all values of the names.
    """
    low, high = (0, n) if step > 0 else (-1, n - 1)
    first, last = (low, high) if step > 0 else (high, low)
    start = first if part.start is None else _clip(part.start, n, low, high)
    stop = last if part.stop is None else _clip(part.stop, n, low, high)
    count = (stop - start if step > 0 else start - stop) + abs(step) - 1
    return 0 if count < 0 else count // abs(step)


def _clip(end: Any, n: Any, low: Any, high: Any) -> Any:
    """One end of a slice, counted from the front, within the axis."""
    end = end + n if end < 0 else end
    return low if end < low else high if end > high else end


def check_bounds(i: int, n: Any, axis: int) -> None:
    """Raise BoundsError if the index ``i`` is out of bounds for an axis of size ``n``."""
    if type(n) is int and not -n <= i < n:
        raise BoundsError(
            f"index {i} is out of bounds for axis {axis} with size {n}\n"
            "  valid indices are below the size; negative ones count from the end"
        )


# ---- the operands of assemble ----


def group_parts(items: tuple, operands: Any) -> list[tuple]:
    """(item, part, arrays of the item) for each item, from the flat ``operands`` of assemble."""
    rest = iter(operands)
    return [
        (item, next(rest), tuple([next(rest) for _ in range(arrays_in(item))])) for item in items
    ]


def arrays_in(item: Any) -> int:
    """The number of arrays in an index."""
    return sum(type(entry) is Here for entry in (item if type(item) is tuple else (item,)))


def split_sizes(operands: Any, shape: tuple | None) -> tuple[tuple, tuple]:
    """(the operand that gives the shape, if there is one; the parts and arrays)."""
    count = 0 if is_static_shape(shape) else 1
    return operands[:count], operands[count:]


# ---- indices of indices ----


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
    remaining = list(axes)
    sizes = tuple(1 if a is None else len(a) for a in remaining if type(a) is not int)
    outer = [e for e in expand_item(sizes, second, ()) if e is not ...]
    composed: list = []
    for axis in remaining:
        if type(axis) is int:
            composed.append(axis)
            continue
        while outer and outer[0] is None:
            composed.append(outer.pop(0))
        entry = outer.pop(0)
        if axis is not None:
            composed.append(axis[entry])
        elif type(entry) is slice:
            if len(range(1)[entry]) != 1:
                return None
            composed.append(None)
    return tuple([_slice_of_range(e) if type(e) is range else e for e in [*composed, *outer]])


def _with_sizes(entries: list, shape: tuple):
    """(entry, size of its axis) of an expanded index, None for a new axis."""
    sizes = iter(shape)
    return [(e, None if e is None else next(sizes)) for e in entries]


def _axis_entry(entry, n):
    """The selection of an index entry along an axis: an int, a range, or None for a new axis."""
    if entry is None:
        return None
    return range(n)[entry]


def _slice_of_range(places: range) -> slice:
    """The slice that selects a range of positions."""
    if not len(places):
        return slice(0, 0)
    step = None if places.step == 1 else places.step
    return slice(places.start, places.stop if places.stop >= 0 else None, step)

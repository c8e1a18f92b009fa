"""NumPy functions that join, split and rotate arrays, in terms of reshape, transpose, concatenate,
split and index. Any of their arrays may be the traced one.
"""

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.sizes.size import Size
from letir.ast.types import broadcast_shapes
from letir.errors import AxisBoundsError, ShapeError
from letir.tracing.mutation.memory_order import copy_in_order_of
from letir.tracing.operands import (
    Casting,
    array_in_dtype,
    stack_traced,
    strong_element,
    traced_or_array,
)
from letir.tracing.trace_state import ABSENT
from letir.tracing.tracer import Tracer

_MAX_SLICES = 8  # runs of indices that are read as slices

# ---- axes ----


def _atleast_function(places: tuple[tuple, ...]) -> Callable[..., Any]:
    """np.atleast_nd: ``places[ndim]`` is the index that adds the missing axes."""

    def raised(*arys):
        result = []
        for a in map(traced_or_array, arys):
            item = places[a.ndim] if a.ndim < len(places) else None
            # NumPy always returns an array: reshape turns a number into an array
            result.append(a if item is None else a.reshape(1)[item] if not a.ndim else a[item])
        return result[0] if len(result) == 1 else tuple(result)

    return raised


atleast_1d = _atleast_function(((...,),))
atleast_2d = _atleast_function(((None,), (None,)))
atleast_3d = _atleast_function(((None, ..., None), (None, ..., None), (..., None)))


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """np.rollaxis as a transpose."""
    n = a.ndim
    axis, start = axis_from_front(axis, n), start + n if start < 0 else start
    if not 0 <= start <= n:
        raise AxisBoundsError(
            f"rollaxis: start {start} is out of bounds for an array with {n} axes\n"
            "  use moveaxis(a, axis, destination)"
        )
    order = [i for i in range(n) if i != axis]
    order.insert(start - (axis < start), axis)
    return np.transpose(a, order)


def axis_from_front(axis: Any, ndim: int) -> int:
    """A non-negative axis. Raises AxisBoundsError if it does not exist."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise AxisBoundsError(
            f"axis {axis} is out of bounds for array of dimension {ndim}\n"
            "  count axes from 0, or from -1 for the last one"
        )
    return axis % ndim


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    """np.rot90 as a transpose and flips."""
    first, second = [axis_from_front(axis, m.ndim) for axis in axes]
    if first == second:
        raise ShapeError(f"rot90: two different axes are needed, found {axes}\n  write axes=(0, 1)")
    k %= 4
    if k in (0, 2):
        return m[...] if k == 0 else np.flip(m, (first, second))
    flipped = np.flip(m, second) if k == 1 else m
    turned = np.swapaxes(flipped, first, second)
    return turned if k == 1 else np.flip(turned, second)


def _flip_axis(axis: int) -> Callable[..., Any]:
    """np.flipud and np.fliplr, as views ``m[::-1]``."""

    def flip(m):
        if m.ndim <= axis:
            raise ShapeError(f"an array with at least {axis + 1} axes is needed, found {m.ndim}")
        return m[(*(slice(None),) * axis, slice(None, None, -1))]

    return flip


def matrix_transpose(x: Any, /) -> Any:
    """np.matrix_transpose."""
    if x.ndim < 2:
        raise ShapeError(
            f"matrix_transpose: at least 2 axes are needed, found {x.ndim}\n"
            "  pass a matrix or a stack of them"
        )
    return np.swapaxes(x, -1, -2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """np.unstack: the parts along an axis, as views."""
    axis = axis_from_front(axis, x.ndim)
    front: Any = (slice(None),) * axis
    return tuple([x[(*front, i)] for i in range(x.shape[axis])])


# ---- joining ----


def vstack(tup: Any, *, dtype: Any = None, casting: Casting = "same_kind") -> Any:
    """np.vstack."""
    return np.concatenate([atleast_2d(a) for a in tup], 0, dtype=dtype, casting=casting)


def hstack(tup: Any, *, dtype: Any = None, casting: Casting = "same_kind") -> Any:
    """np.hstack."""
    parts = [atleast_1d(a) for a in tup]
    axis = 0 if parts and parts[0].ndim == 1 else 1
    return np.concatenate(parts, axis, dtype=dtype, casting=casting)


def dstack(tup: Any) -> Any:
    """np.dstack."""
    return np.concatenate([atleast_3d(a) for a in tup], 2)


def column_stack(tup: Any) -> Any:
    """np.column_stack: rows become columns."""
    return np.concatenate(
        [a if a.ndim > 1 else a.reshape(-1, 1) for a in map(traced_or_array, tup)], 1
    )


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """np.append."""
    arr, values = traced_or_array(arr), traced_or_array(values)
    if axis is None:
        arr, values, axis = arr.reshape(-1), values.reshape(-1), 0
    return np.concatenate([arr, values], axis)


def block(arrays: Any) -> Any:
    """np.block: innermost lists are joined along the last axis."""
    depth = _depth_of(arrays)
    leaves = list(_nested_arrays(arrays))
    ndim = max(depth, *[a.ndim for a in leaves])
    rest = iter(leaves)

    def joined(part, level: int):
        if isinstance(part, list):
            return np.concatenate([joined(p, level + 1) for p in part], level - depth)
        a = next(rest)
        return a.reshape((1,) * (ndim - a.ndim) + a.shape)

    result = joined(arrays, 0)
    return np.copy(result) if depth == 0 else result


def _depth_of(arrays) -> int:
    """The depth of nested lists. Raises ShapeError if depths differ, or if a list is empty."""
    if isinstance(arrays, tuple):
        raise TypeError("block: only lists nest, not tuples")
    if not isinstance(arrays, list):
        return 0
    depths = {_depth_of(part) for part in arrays}
    if len(depths) != 1:
        raise ShapeError(
            "block: all lists must be nested to the same depth, and none may be empty\n"
            "  write rows of blocks: [[a, b], [c, d]]"
        )
    return depths.pop() + 1


def _nested_arrays(arrays):
    """The arrays in nested lists."""
    if isinstance(arrays, list):
        for part in arrays:
            yield from _nested_arrays(part)
    else:
        yield strong_element(arrays) if isinstance(arrays, Value) else traced_or_array(arrays)


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """np.broadcast_arrays."""
    arrays = [traced_or_array(a) for a in args]
    shape = broadcast_shapes(*[a.shape for a in arrays])
    # broadcast_to makes arrays of numbers
    return tuple([a if a.shape == shape != () else np.broadcast_to(a, shape) for a in arrays])


# ---- splitting ----


def _split_along(axis: int, least: int):
    """np.vsplit and np.dsplit."""

    def parts(ary, indices_or_sections):
        if ary.ndim < least:
            raise ShapeError(
                f"an array with at least {least} axes is needed, found {ary.ndim}\n"
                "  add axes with x[None]"
            )
        return np.split(ary, indices_or_sections, axis)

    return parts


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """np.hsplit."""
    if not ary.ndim:
        raise ShapeError(
            "hsplit: an array with at least 1 axis is needed, found a number\n"
            "  make it a vector: np.atleast_1d(x)"
        )
    return np.split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def _take_places(x, places: np.ndarray, axis: int):
    """``x`` at indices along an axis: as slices if there are few, whose derivatives are cheaper."""
    front: Any = (slice(None),) * axis
    runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
    if not places.size or len(runs) > _MAX_SLICES:
        return x[(*front, places)]
    parts = [x[(*front, slice(int(run[0]), int(run[-1]) + 1))] for run in runs]
    return np.concatenate(parts, axis) if len(parts) > 1 else parts[0].copy()


def resize(a: Any, new_shape: Any) -> Any:
    """np.resize: the elements repeated cyclically."""
    a = traced_or_array(a).reshape(-1)
    if not a.size:
        return np.zeros_like(a, shape=new_shape)
    return a[np.resize(np.arange(a.size), new_shape)]


def _known_places(obj):
    """Indices as an integer array; the values of traced ones are guarded."""
    obj = stack_traced(obj)
    if not isinstance(obj, Value):
        return obj
    if not obj.ndim:
        return operator.index(obj)
    if obj.dtype.kind == "b":
        return np.array([bool(o) for o in obj])
    return np.array([operator.index(o) for o in obj], int)


def _traced_place(obj: Any, n: Any, end: int = 0) -> Any:
    """A traced integer that is a place among ``n``, counted from the front; None for other objects.

    Records the guard that it is one. ``end``: 1 if the place after the last one counts, too.
    """
    is_traced = isinstance(obj, Tracer) and obj.dtype.kind == "i" and not obj.shape
    if not is_traced or type(n) is not int or not n or obj.concrete_value() is ABSENT:
        return None
    if not -n <= int(obj.concrete_value()) < n + end:
        return None
    bool((obj >= -n) & (obj < n + end))
    return np.where(obj < 0, obj + n, obj)


def _sized_place(obj: Any, n: Any, end: int = 0) -> Any:
    """A known place on an axis of symbolic size, counted from the front; None for other objects.

    Records the guard that it is one, if that depends on the size. ``end`` as in ``_traced_place``.
    """
    is_place = isinstance(obj, int | np.integer | Size) and not isinstance(obj, bool)
    if type(n) is not Size or not is_place:
        return None
    obj = obj if type(obj) is Size else int(obj)
    place = obj if obj >= 0 else n + obj
    return place if place >= 0 and place < n + end else None


def _sized_places(obj: Any, n: Any) -> list | None:
    """The places that ``obj`` names on an axis of symbolic size, in ascending order, each once;
    None unless ``_sized_place`` knows them.
    """
    is_list = isinstance(obj, list | tuple) or (type(obj) is np.ndarray and obj.ndim == 1)
    places = [_sized_place(o, n) for o in (obj if is_list else [obj])]
    if type(n) is not Size or any(place is None for place in places):
        return None
    places = sorted(places)
    return [b for a, b in itertools.pairwise([-1, *places]) if b > a]


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """np.delete: an index of the remaining elements."""
    arr = traced_or_array(arr)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    axis = axis_from_front(axis, arr.ndim)
    front: Any = (slice(None),) * axis
    places = _sized_places(obj, arr.shape[axis])
    if places is not None:
        edges = [0, *[edge for place in places for edge in (place, place + 1)], None]
        parts = zip(edges[::2], edges[1::2], strict=True)
        return np.concatenate([arr[(*front, slice(a, b))] for a, b in parts], axis)
    place = _traced_place(obj, arr.shape[axis])
    if place is not None:
        remaining = np.arange(arr.shape[axis] - 1)
        return arr[(*front, remaining + (remaining >= place))]
    obj = _known_places(obj)
    remaining = _take_places(arr, np.delete(np.arange(arr.shape[axis]), obj), axis)
    return _ordered_as_numpy(remaining, lambda x: np.delete(x, obj, axis), arr)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """np.insert: an index into the array followed by the new values."""
    arr = traced_or_array(arr)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    axis = axis_from_front(axis, arr.ndim)
    n, values = arr.shape[axis], array_in_dtype(values, arr.dtype)
    sized, place = _sized_place(obj, n, 1), _traced_place(obj, n, 1)
    obj = _known_places(obj) if sized is None and place is None else 0
    places = np.arange(n)[obj] if isinstance(obj, slice) else np.asarray(obj)
    places = np.flatnonzero(places) if places.dtype == bool else places
    if places.dtype.kind not in "iu":
        np.insert(np.arange(n), obj, 0)  # raises NumPy's error, except for an empty list
    if places.size == 1:  # all values are inserted at one place
        values = values.reshape((1,) * (arr.ndim - values.ndim) + values.shape)
        values = np.moveaxis(values, 0, axis) if not places.ndim else values
        count = values.shape[axis]
    else:
        count = places.size
    new = np.broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    front: Any = (slice(None),) * axis
    if sized is not None:
        before, after = arr[(*front, slice(sized))], arr[(*front, slice(sized, None))]
        return np.concatenate([before, new, after], axis)
    if place is not None:
        k = np.arange(n + count)
        order: Any = np.where(k < place, k, np.where(k < place + count, k + n - place, k - count))
        return np.concatenate([arr, new], axis)[(*front, order)]
    # as in NumPy, the positions of new values are inserted among the positions of old ones
    order = np.insert(np.arange(n), places.astype(int), n + np.arange(count))
    result = _take_places(np.concatenate([arr, new], axis), order, axis)
    return _ordered_as_numpy(result, lambda x: np.insert(x, obj, 0, axis), arr)


def _ordered_as_numpy(result: Any, function: Callable[[np.ndarray], np.ndarray], arr: Any) -> Any:
    """``result`` with the memory order of NumPy's result for ``arr``, which depends on the kind of
    the indices: it takes rows, or writes into an array in C or Fortran order.
    """
    value = arr.concrete_value() if arr.ndim > 1 else None
    return copy_in_order_of(result, function(value)) if isinstance(value, np.ndarray) else result


FUNCTIONS = {
    np.atleast_1d: atleast_1d,
    np.atleast_2d: atleast_2d,
    np.atleast_3d: atleast_3d,
    np.rollaxis: rollaxis,
    np.rot90: rot90,
    np.flipud: _flip_axis(0),
    np.fliplr: _flip_axis(1),
    np.matrix_transpose: matrix_transpose,
    np.linalg.matrix_transpose: matrix_transpose,
    np.unstack: unstack,
    np.vstack: vstack,
    np.hstack: hstack,
    np.dstack: dstack,
    np.column_stack: column_stack,
    np.append: append,
    np.block: block,
    np.broadcast_arrays: broadcast_arrays,
    np.vsplit: _split_along(0, 2),
    np.dsplit: _split_along(2, 3),
    np.hsplit: hsplit,
    np.resize: resize,
    np.delete: delete,
    np.insert: insert,
}

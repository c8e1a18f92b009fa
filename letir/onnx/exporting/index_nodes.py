"""Reading and writing parts of arrays: Slice, Gather and GatherND, ScatterND.

Writes scatter elements in the canonical order of axes: first the axes of index arrays, then the
sliced axes, then the axes that are taken whole.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.attrs import Here
from letir.ast.terms import Arg, Bind
from letir.ast.types import ArrayType, broadcast_shapes
from letir.onnx.exporting.elementwise_nodes import as_truth
from letir.onnx.exporting.node_graph import (
    Graph,
    Unexportable,
    exports_as,
    exports_op,
    result_types,
)
from letir.onnx.exporting.reduction_nodes import wide_dtype
from letir.onnx.exporting.shape_nodes import filled_array
from letir.ops.indexing.index_expressions import (
    arrays_in,
    expand_item,
    group_parts,
    indexed_shape,
    split_sizes,
)

_MAX_INDEX, _MIN_INDEX = np.iinfo(np.int64).max, np.iinfo(np.int64).min
_INT = np.dtype(np.int64)
_ELEMENTWISE = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}  # by ScatterND's reduction


@frozen(eq=False)
class IndexLayout:
    """An index of an array: what is read along each axis, and the axes of the result.

    ``axes``: for each axis of the array a slice, or the name of an integer array and its rank.
    ``labels``: for each axis of the result the sliced axis of the array, or None for a new axis;
    all axes of the index arrays together have one label, "block". ``block``: the shape of these.
    """

    axes: list[Any]
    labels: list[Any]
    block: tuple


def _layout_of_index(g: Graph, aval: ArrayType, item: Any, arrays: Sequence[Arg]) -> IndexLayout:
    """The index ``item`` of an array of this type, with index arrays in their order."""
    types = tuple([arg.type for arg in arrays])
    rest = iter(arrays)
    axes: list[Any] = []
    labels: list[Any] = []
    places, shapes = [], []
    for position, entry in enumerate(expand_item(aval.shape, item, types)):
        if entry is None:
            labels.append(None)
        elif type(entry) is slice:
            labels.append(len(axes))
            axes.append(entry)
        elif entry is not ...:
            places.append((position, len(labels)))
            names, shape = _index_arrays(g, entry, rest)
            axes += [(name, len(shape)) for name in names]
            shapes.append(shape)
    if not places:
        return IndexLayout(axes, labels, ())
    adjacent = all(b[0] - a[0] == 1 for a, b in itertools.pairwise(places))
    labels.insert(places[0][1] if adjacent else 0, "block")
    return IndexLayout(axes, labels, broadcast_shapes(*shapes))


def _index_arrays(g: Graph, entry: Any, rest) -> tuple[list[str], tuple]:
    """(names of integer arrays, their shape) of an integer, an integer array, or a mask."""
    if type(entry) is not Here:
        return [g.number(entry)], ()
    arg = next(rest)
    if arg.type.dtype.kind != "b":
        return [g.operand(arg, _INT)], arg.type.shape
    places, rank = g("NonZero", as_truth(g, arg)), arg.type.ndim
    rows = [g("Gather", places, g.array(i, np.int64), axis=0) for i in range(rank)]
    return rows, (entry.count,)


# ---- reading ----


@exports_op("index")
def _index(g: Graph, bind: Bind) -> str:
    x, *arrays = bind.args
    return _read_item(g, g.operand(x), x.type, bind.attrs["item"], arrays)


def _read_item(g: Graph, name: str, aval: ArrayType, item: Any, arrays: Sequence[Arg]) -> str:
    """``x[item]``."""
    if not arrays:
        return _read_basic(g, name, aval, item)
    place = _layout_of_index(g, aval, item, arrays)
    name = _slice_axes(g, name, {i: e for i, e in enumerate(place.axes) if type(e) is slice})
    axes = [i for i, entry in enumerate(place.axes) if type(entry) is not slice]
    whole = [i for i, entry in enumerate(place.axes) if type(entry) is slice]
    if len(axes) == 1:
        read = g("Gather", name, place.axes[axes[0]][0], axis=axes[0])
        order = [*whole[: axes[0]], "block", *whole[axes[0] :]]
        return _transpose_to_result_order(g, read, order, place)
    moved = g.transpose(name, [*axes, *whole])
    grid = _index_grid(g, place, axes, place.block)
    return _transpose_to_result_order(g, g("GatherND", moved, grid), ["block", *whole], place)


def _transpose_to_result_order(g: Graph, name: str, order: list, place: IndexLayout) -> str:
    """The elements read, with their axes in the order of the result, and new axes of length 1."""
    count = len(place.block)
    starts, start = {}, 0
    for label in order:
        starts[label] = start
        start += count if label == "block" else 1
    axes: list[int] = []
    for label in place.labels:
        if label is not None:
            axes += range(starts[label], starts[label] + (count if label == "block" else 1))
    return _with_new_axes(g, g.transpose(name, axes), place.labels, count)


def _with_new_axes(g: Graph, name: str, labels: list, count: int) -> str:
    at = 0
    axes: list[int] = []
    for label in labels:
        axes += [at] * (label is None)
        at += count if label == "block" else 1
    return g.unsqueeze(name, axes)


def _read_basic(g: Graph, name: str, aval: ArrayType, item: Any) -> str:
    """``x[item]`` of integers and slices: Slice, Squeeze and Unsqueeze."""
    slices, dropped, added, axis, at = {}, [], [], 0, 0
    entries = [e for e in expand_item(aval.shape, item, ()) if e is not ...]
    numbers = [e for e in entries if e is not None and type(e) is not slice]
    if len(numbers) == 1 and len(entries) == aval.ndim:  # one node, the most frequent index
        axis = entries.index(numbers[0])
        rest = {i: e for i, e in enumerate(entries) if i != axis}
        return g("Gather", _slice_axes(g, name, rest), g.number(numbers[0]), axis=axis)
    for entry in entries:
        if entry is None:
            added.append(at)
            at += 1
            continue
        if type(entry) is slice:
            slices[axis] = entry
            at += 1
        else:
            stop = None if type(entry) is int and entry == -1 else entry + 1
            slices[axis] = slice(entry, stop)
            dropped.append(axis)
        axis += 1
    name = g.squeeze(_slice_axes(g, name, slices), dropped)
    return g.unsqueeze(name, added)


def _slice_axes(g: Graph, name: str, slices: dict[int, slice]) -> str:
    """A value cut along several axes by one Slice node."""
    cut = {axis: part for axis, part in slices.items() if part != slice(None)}
    if not cut:
        return name
    ends: list = [[], [], []]
    for part in cut.values():
        step = 1 if part.step is None else part.step
        ends[0].append(part.start if part.start is not None else 0 if step > 0 else _MAX_INDEX)
        ends[1].append(
            part.stop if part.stop is not None else _MAX_INDEX if step > 0 else _MIN_INDEX
        )
        ends[2].append(step)
    starts, stops, steps = map(g.ints, ends)
    return g("Slice", name, starts, stops, g.array(list(cut), np.int64), steps)


def _index_grid(g: Graph, place: IndexLayout, axes: list[int], shape: tuple) -> str:
    """The indices along ``axes`` of all elements of a grid of this shape, along a last axis."""
    columns, at = [], len(place.block)
    for axis in axes:
        entry = place.axes[axis]
        if type(entry) is tuple:
            name, rank = entry
            after = len(shape) - len(place.block)
            name = g.unsqueeze(name, list(range(rank, rank + after)))
        else:
            name = g.unsqueeze(entry.start, list(range(1, len(shape) - at)))
            at += 1
        columns.append(g.unsqueeze(g("Expand", name, g.ints(shape)), [len(shape)]))
    return columns[0] if len(columns) == 1 else g("Concat", *columns, axis=len(shape))


# ---- writing ----


@exports_as(index_set="none", index_add="add")
def _index_write(g: Graph, bind: Bind, word: str) -> str:
    x, new, *arrays = bind.args
    target = g.operand(x), x.type
    value = g.operand(new, x.type.dtype), new.type
    return _write_item(g, target, value, bind.attrs["item"], arrays, word)


_REDUCTIONS = {"add": "add", "sub": "add", "mul": "mul", "div": "mul"}
_REDUCTIONS |= {"maximum": "max", "minimum": "min"}


@exports_op("ufunc_at")
def _ufunc_at(g: Graph, bind: Bind) -> str:
    x, *rest = bind.args
    dtype, reduction_name = x.type.dtype, _REDUCTIONS.get(bind.attrs["ufunc"])
    count = arrays_in(bind.attrs["item"])
    if reduction_name is None or dtype.kind != "f" or len(rest) != count + 1:
        raise Unexportable("ScatterND can only add, multiply, or take the larger or smaller")
    new, arrays = rest[0], rest[1:]
    name = g.operand(new, dtype)
    change = {"sub": "Neg", "div": "Reciprocal"}.get(bind.attrs["ufunc"])
    change_value = g(change, name) if change else name
    return _write_item(
        g,
        (g.operand(x), x.type),
        (change_value, new.type),
        bind.attrs["item"],
        arrays,
        reduction_name,
    )


@exports_op("assemble")
def _assemble(g: Graph, bind: Bind) -> str:
    aval = result_types(bind)[0]
    shape = bind.attrs["shape"]
    sizes, rest = split_sizes(bind.args, shape)
    name = filled_array(g, g.operand(sizes[0]) if sizes else g.ints(aval.shape), 0, aval.dtype)
    for item, part, arrays in group_parts(bind.attrs["items"], rest):
        part_value = g.operand(part, aval.dtype), part.type
        name = _write_item(g, (name, aval), part_value, item, arrays, "add")
    return name


def _write_item(
    g: Graph, target: tuple, value: tuple, item: Any, arrays: Sequence, reduction_name: str
) -> str:
    """``target`` with ``value`` written or added at ``item``; both are pairs (name, type).

    ``reduction_name``: ScatterND's reduction, "none" for a write or "add".
    """
    (name, aval), (new, new_type) = target, value
    place = _layout_of_index(g, aval, item, arrays)
    part = indexed_shape(aval.shape, item, tuple([arg.type for arg in arrays]))
    if new_type.ndim > len(part):
        new = g.squeeze(new, list(range(new_type.ndim - len(part))))
    new = g("Expand", new, g.ints(part))
    new = _transpose_to_canonical_order(g, new, place)
    axes = [i for i, entry in enumerate(place.axes) if entry != slice(None)]
    whole = [i for i, entry in enumerate(place.axes) if entry == slice(None)]
    if not axes:
        return new if reduction_name == "none" else g(_ELEMENTWISE[reduction_name], name, new)
    shape = place.block
    for axis in axes:
        if type(place.axes[axis]) is slice:
            shape = (*shape, part[_axis_in_part(place, axis)])
            place.axes[axis] = slice(_slice_indices(g, name, axis, place.axes[axis]), None)
    order = [*axes, *whole]
    grid = _index_grid(g, place, axes, shape)
    if reduction_name == "none" and any(
        arg.type.dtype.kind != "b" and arg.type.ndim for arg in arrays
    ):
        new = _last_writes(g, g.transpose(name, order), grid, new, (shape, len(axes)))
    result = _scatter_node(g, g.transpose(name, order), grid, new, reduction_name, aval.dtype)
    return g.transpose(result, np.argsort(order).tolist())


def _scatter_node(
    g: Graph, name: str, grid: str, new: str, reduction_name: str, dtype: np.dtype
) -> str:
    """A ScatterND node, in a dtype for which runtimes have the reduction ``reduction_name``."""
    if reduction_name == "none" or dtype in (np.float32, np.float64, np.int32, np.int64):
        return g("ScatterND", name, grid, new, reduction=reduction_name)
    wide = np.dtype(np.float32) if dtype.kind == "f" else _INT
    name, new = g.cast(name, dtype, wide), g.cast(new, dtype, wide)
    return g.cast(g("ScatterND", name, grid, new, reduction=reduction_name), wide, dtype)


def _last_writes(g: Graph, name: str, grid: str, new: str, extent: tuple[tuple, int]) -> str:
    """``new``, with each element replaced by the last one that is written to the same place.

    If an element is written several times, NumPy keeps the last write; ONNX does not specify which.
    """
    shape, depth = extent
    size = ArrayType(np.int64, shape).size
    zero, one = g.array(0, np.int64), g.array(1, np.int64)
    order = g("Reshape", g("Range", zero, g.number(size), one), g.ints(shape), allowzero=1)
    sizes = g("Shape", name, start=0, end=depth)
    none = g("Expand", g.array(-1, np.int64), sizes)
    last = g("ScatterND", none, grid, order, reduction="max")
    winner = g("GatherND", last, grid)
    rest = g("Shape", new, start=len(shape))
    rows = g("Reshape", new, g("Concat", g.array([-1], np.int64), rest, axis=0))
    return g("Gather", rows, winner, axis=0)


def _axis_in_part(place: IndexLayout, axis: int) -> int:
    """The position in ``x[item]`` of a sliced axis of x."""
    at = 0
    for label in place.labels:
        if label == axis and label != "block":
            return at
        at += len(place.block) if label == "block" else 1
    raise AssertionError("a slice has an axis in the part")


def _slice_indices(g: Graph, name: str, axis: int, part: slice) -> str:
    """The indices that a slice selects along an axis."""
    length = g.squeeze(g("Shape", name, start=axis, end=axis + 1), [0])
    every = g("Range", g.array(0, np.int64), length, g.array(1, np.int64))
    return _slice_axes(g, every, {0: part})


def _transpose_to_canonical_order(g: Graph, new: str, place: IndexLayout) -> str:
    """``new`` with its axes in canonical order, and without the new axes of the index."""
    count, starts, dropped, at = len(place.block), {}, [], 0
    for label in place.labels:
        if label is None:
            dropped.append(at)
        else:
            starts[label] = list(range(at, at + (count if label == "block" else 1)))
        at += count if label == "block" else 1
    cut = [i for i, e in enumerate(place.axes) if type(e) is slice and e != slice(None)]
    whole = [i for i, e in enumerate(place.axes) if e == slice(None)]
    order = [a for label in ("block", *cut, *whole) for a in starts.get(label, ())]
    moved = g.transpose(new, [*order, *dropped])
    return g.squeeze(moved, list(range(len(order), at)))


@exports_op("first_places")
def _first_places(g: Graph, bind: Bind) -> str:
    x, values = bind.args
    dtype = np.result_type(x.type.dtype, values.type.dtype)
    flat = g("Reshape", g.operand(x, dtype), g.array([1, -1], np.int64))
    column = g("Reshape", g.operand(values, dtype), g.array([-1, 1], np.int64))
    is_there = g.cast(g("Equal", flat, column), np.dtype(bool), np.float32)
    return g("ArgMax", is_there, axis=1, keepdims=0)


@exports_op("unique")
def _unique(g: Graph, bind: Bind) -> list[str]:
    """The results of the node Unique; a guard after it checks how many values there are."""
    (x,), attrs, types = bind.args, bind.attrs, result_types(bind)
    if type(attrs["count"]) is not int or (x.type.dtype.kind == "f" and not attrs["equal_nan"]):
        raise Unexportable("ONNX cannot express a length that no guard checks, or several nan")
    wide = wide_dtype(x.type.dtype)
    wide = wide if wide.kind == "f" else _INT
    name, axis = g.operand(x, wide), attrs["axis"]
    if wide.kind == "f":
        _require_numbers(g, bind, name)
    axis = axis if axis is None else axis % x.type.ndim
    values, *others = g("Unique", name, results=4, axis=axis, sorted=1)
    flags = [attrs["return_index"], attrs["return_inverse"], attrs["return_counts"]]
    results = [other for other, is_wanted in zip(others, flags, strict=True) if is_wanted]
    if attrs["return_inverse"]:
        place = 1 + attrs["return_index"]
        results[place - 1] = g.reshape(results[place - 1], types[place].shape)
    count = g("Size", others[2])
    return [g.cast(values, wide, x.type.dtype), *results, count]


def _require_numbers(g: Graph, bind: Bind, x: str) -> None:
    """Make the model fail if an element is nan, which runtimes do not sort."""
    if g.parent is not None:
        raise Unexportable("unique of floating-point numbers inside a loop or a branch")
    is_nan = g.cast(g("IsNaN", x), np.dtype(bool), np.int32)
    holds = g("Equal", g("ReduceSum", is_nan, keepdims=0), g.array(0, np.int32))
    g.checks.append((holds, bind, "without nan"))

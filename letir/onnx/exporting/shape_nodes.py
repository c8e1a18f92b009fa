"""Operations on shapes, joining and splitting, and operations that create arrays."""

from typing import Any

import numpy as np

from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import NO_TYPE, Bind
from letir.onnx.exporting.node_graph import (
    Graph,
    exports_as,
    exports_op,
    is_undefined,
    result_types,
)
from letir.onnx.package import onnx_package


def _shape_name(g: Graph, bind: Bind, first: int = 1) -> str:
    """The shape of the single result: the operand that holds it, else the attribute."""
    if len(bind.args) > first and bind.args[first].type is not NO_TYPE:
        return g.operand(bind.args[first], np.dtype(np.int64))
    return g.ints(result_types(bind)[0].shape)


@exports_op("size")
def _size(g: Graph, bind: Bind) -> str:
    return g("Shape", g.operand(bind.args[0]))


@exports_op("length")
def _length(g: Graph, bind: Bind) -> str:
    axis = bind.attrs["axis"]
    result = g("Shape", g.operand(bind.args[0]), start=axis, end=axis + 1)
    return g.squeeze(result, [0])


@exports_op("reshape")
def _reshape(g: Graph, bind: Bind) -> str:
    x, aval = bind.args[0], result_types(bind)[0]
    name = g.operand(x)
    if bind.attrs["order"] == "C":
        return g("Reshape", name, _shape_name(g, bind), allowzero=1)
    # Fortran order: the axes of both shapes are reversed
    name = g.transpose(name, range(x.type.ndim)[::-1])
    name = g.reshape(name, aval.shape[::-1])
    return g.transpose(name, range(aval.ndim)[::-1])


@exports_op("broadcast_to")
def _broadcast_to(g: Graph, bind: Bind) -> str:
    aval = result_types(bind)[0]
    if 0 in aval.shape and is_static_shape(aval.shape):  # onnxruntime drops such an Expand
        return g.array(np.zeros(aval.shape, aval.dtype))
    return g("Expand", g.operand(bind.args[0]), _shape_name(g, bind))


@exports_op("sum_to_size")
def _sum_to_size(g: Graph, bind: Bind) -> str:
    x, aval = bind.args[0], result_types(bind)[0]
    name, lead = g.operand(x), x.type.ndim - aval.ndim
    axes = [lead + i for i, n in enumerate(aval.shape) if n != x.type.shape[lead + i]]
    if lead or axes:
        summed = g.array([*range(lead), *axes], np.int64)
        name = g("ReduceSum", name, summed, keepdims=1)
        name = g.squeeze(name, range(lead))
    return name


@exports_as(zeros="0", ones="1")
def _zeros(g: Graph, bind: Bind, word: str) -> str:
    return filled_array(g, _shape_name(g, bind, 0), int(word), bind.attrs["dtype"])


def filled_array(g: Graph, shape: str, number: float, dtype: np.dtype) -> str:
    """An array that holds one number everywhere."""
    value = onnx_package().numpy_helper.from_array(np.array([number], dtype))
    return g("ConstantOfShape", shape, value=value)


@exports_op("full")
def _full(g: Graph, bind: Bind) -> str:
    return g("Expand", g.operand(bind.args[0], bind.attrs["dtype"]), _shape_name(g, bind))


@exports_op("instantiate")
def _instantiate(g: Graph, bind: Bind) -> str:
    x = bind.args[0]
    if is_undefined(x):
        return filled_array(g, _shape_name(g, bind), 0, bind.attrs["dtype"])
    return g.operand(x)


@exports_op("constant")
def _constant(g: Graph, bind: Bind) -> str:
    return g.array(bind.attrs["value"])


@exports_op("transpose")
def _transpose(g: Graph, bind: Bind) -> str:
    rank, axes = bind.args[0].type.ndim, bind.attrs["axes"]
    order = range(rank)[::-1] if axes is None else [axis % rank for axis in axes]
    return g.transpose(g.operand(bind.args[0]), order)


@exports_op("expand_dims", "squeeze")
def _unit_axes(g: Graph, bind: Bind) -> str:
    # a reshape would lose the names of sizes
    x, aval = bind.args[0].type, result_types(bind)[0]
    rank, axis = max(x.ndim, aval.ndim), bind.attrs["axis"]
    if axis is None:
        axes = [i for i, n in enumerate(x.shape) if type(n) is int and n == 1]
    else:
        axes = [i % rank for i in (axis if type(axis) is tuple else (axis,))]
    name = g.operand(bind.args[0])
    if not axes:
        return name
    return g.unsqueeze(name, axes) if aval.ndim > x.ndim else g.squeeze(name, axes)


@exports_op("flip")
def _flip(g: Graph, bind: Bind) -> str:
    rank, axis = bind.args[0].type.ndim, bind.attrs["axis"]
    axes = range(rank) if axis is None else axis if type(axis) is tuple else (axis,)
    return flip_axes(g, g.operand(bind.args[0]), [i % rank for i in axes])


def flip_axes(g: Graph, name: str, axes: list[int]) -> str:
    """A value in reverse order along these axes."""
    if not axes:
        return name
    most, least = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    ends = [g.array([n] * len(axes), np.int64) for n in (most, least)]
    steps = g.array([-1] * len(axes), np.int64)
    return g("Slice", name, *ends, g.array(axes, np.int64), steps)


# ---- joining and splitting ----


@exports_op("concatenate")
def _concatenate(g: Graph, bind: Bind) -> str:
    aval, axis = result_types(bind)[0], bind.attrs["axis"]
    names = g.operands(bind, aval.dtype)
    if axis is None:
        names = [g("Reshape", name, g.array([-1], np.int64)) for name in names]
    return g("Concat", *names, axis=0 if axis is None else axis % aval.ndim)


@exports_op("stack")
def _stack(g: Graph, bind: Bind) -> str:
    aval = result_types(bind)[0]
    axis = bind.attrs["axis"] % aval.ndim
    names = [g.unsqueeze(name, [axis]) for name in g.operands(bind, aval.dtype)]
    return g("Concat", *names, axis=axis)


@exports_op("split")
def _split(g: Graph, bind: Bind) -> tuple[str, ...]:
    axis = bind.attrs["axis"] % bind.args[0].type.ndim
    extents = [aval.shape[axis] for aval in result_types(bind)]
    name, sections = g.operand(bind.args[0]), bind.attrs["sections"]
    if type(sections) is tuple and not _parts_cover_axis(bind.args[0].type.shape[axis], sections):
        stops = [*sections, None]
        starts = [0, *sections]
        return tuple(
            _slice_axis(g, name, axis, low, high) for low, high in zip(starts, stops, strict=True)
        )
    if len(extents) == 1:
        return (name,)
    return g("Split", name, g.ints(extents), results=len(extents), axis=axis)


def _parts_cover_axis(size: Any, sections: tuple) -> bool:
    """Whether parts between these places neither overlap nor leave elements of the axis out."""
    places = (0, *sections, size)
    return all(type(n) is int for n in places) and list(places) == sorted(places)


def _slice_axis(g: Graph, name: str, axis: int, start: Any, stop: Any, step: int = 1) -> str:
    """``x[start:stop:step]`` along an axis; None as in Python, with a positive step."""
    stop = np.iinfo(np.int64).max if stop is None else stop
    ends = [g.ints([0 if start is None else start]), g.ints([stop])]
    return g("Slice", name, *ends, g.array([axis], np.int64), g.array([step], np.int64))


@exports_op("roll")
def _roll(g: Graph, bind: Bind) -> str:
    aval, axis, shift = result_types(bind)[0], bind.attrs["axis"], bind.attrs["shift"]
    name = g.operand(bind.args[0])
    if axis is None:
        flat = g("Reshape", name, g.array([-1], np.int64))
        rolled = _roll_axis(g, flat, 0, int(np.sum(shift)), aval.size)
        return g.reshape(rolled, aval.shape)
    axes, shifts = np.broadcast_arrays(np.atleast_1d(axis), np.atleast_1d(shift))
    for i, by in zip(axes.tolist(), shifts.tolist(), strict=True):
        name = _roll_axis(g, name, i % aval.ndim, by, aval.shape[i])
    return name


def _roll_axis(g: Graph, name: str, axis: int, shift: int, n) -> str:
    if type(n) is Size:  # the place of the cut, between 0 and n
        whole = g.number(n)
        cut = g("Mod", g.array(-shift, np.int64), g("Max", whole, g.array(1, np.int64)))
        at, end = g("Reshape", cut, g.array([1], np.int64)), g.array([2**62], np.int64)
        axes, zero = g.array([axis], np.int64), g.array([0], np.int64)
        parts = [g("Slice", name, at, end, axes), g("Slice", name, zero, at, axes)]
        return g("Concat", *parts, axis=axis)
    cut = -shift % n if n else 0
    if not cut:
        return name
    parts = [_slice_axis(g, name, axis, cut, None), _slice_axis(g, name, axis, 0, cut)]
    return g("Concat", *parts, axis=axis)


@exports_as(tril="lower", triu="upper")
def _triangle(g: Graph, bind: Bind, word: str) -> str:
    aval = result_types(bind)[0]
    name = g.operand(bind.args[0], aval.dtype)
    if bind.args[0].type.ndim < 2:
        name = g("Expand", name, g.ints(aval.shape))
    k = bind.attrs["k"]
    return g("Trilu", name, g.array(k, np.int64), upper=int(word == "upper"))


# ---- numbers in order ----


@exports_op("arange")
def _arange(g: Graph, bind: Bind) -> str:
    start, stop, step = (bind.attrs[name] for name in ("start", "stop", "step"))
    aval = result_types(bind)[0]
    numbers = [0 if start is None else start, stop, 1 if step is None else step]
    if not any(type(n) is Size for n in numbers):
        return g.array(np.arange(*numbers, dtype=aval.dtype))
    result = g("Range", *[g.number(n) for n in numbers])
    return g.cast(result, np.dtype(np.int64), aval.dtype)


@exports_op("eye")
def _eye(g: Graph, bind: Bind) -> str:
    n, m, k = (bind.attrs[name] for name in ("n", "m", "k"))
    aval = result_types(bind)[0]
    if type(n) is int and type(m) in (int, type(None)):
        return g.array(np.eye(n, m, k, aval.dtype))
    rows = g("Range", g.array(0, np.int64), g.number(aval.shape[0]), g.array(1, np.int64))
    columns = g("Range", g.array(0, np.int64), g.number(aval.shape[1]), g.array(1, np.int64))
    shifted = g("Add", g.unsqueeze(rows, [1]), g.array(k, np.int64))
    return g.cast(g("Equal", shifted, g.unsqueeze(columns, [0])), np.dtype(bool), aval.dtype)

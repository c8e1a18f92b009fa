"""Reductions, cumulative reductions, sorting and searching along axes."""

import numpy as np

from letir.ast.terms import NO_TYPE, Arg, Bind
from letir.ast.types import dtype_bounds
from letir.onnx.exporting.elementwise_nodes import as_truth, is_not
from letir.onnx.exporting.extremum_nodes import extremum_node
from letir.onnx.exporting.node_graph import Graph, exports_as, exports_op, result_types


def reduced_axes(bind: Bind) -> list[int]:
    """The axes that a reduction removes."""
    axis, rank = bind.attrs["axis"], bind.args[0].type.ndim
    axes = range(rank) if axis is None else axis if type(axis) is tuple else (axis,)
    return [i % rank for i in axes]


def _reduction_node(g: Graph, kind: str, name: str, axes: list[int], keeps: bool) -> str:
    """A reduction node over these axes; the value itself without axes."""
    if not axes:
        return name
    return g(kind, name, g.array(axes, np.int64), keepdims=int(keeps))


def _has_mask(bind: Bind) -> bool:
    return len(bind.args) > 1 and bind.args[1].type is not NO_TYPE


def _masked_operand(g: Graph, bind: Bind, name: str, number, dtype: np.dtype) -> str:
    """The operand with a number where the mask excludes it, broadcast with the mask."""
    if not _has_mask(bind):
        return name
    return g("Where", as_truth(g, bind.args[1]), name, g.array(number, dtype))


_WIDE: dict[str, type] = {"bool": np.int32, "int8": np.int32, "int16": np.int32, "uint8": np.int32}
_WIDE |= {"uint16": np.int32, "uint32": np.int64, "uint64": np.int64}


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """A dtype for which runtimes have reductions."""
    return np.dtype(_WIDE.get(dtype.name, dtype))


@exports_as(sum="ReduceSum", prod="ReduceProd")
def _sum(g: Graph, bind: Bind, word: str) -> str:
    dtype, is_sum = result_types(bind)[0].dtype, word == "ReduceSum"
    wide = wide_dtype(dtype)
    name = _masked_operand(g, bind, g.operand(bind.args[0], wide), 0 if is_sum else 1, wide)
    result = _reduction_node(g, word, name, reduced_axes(bind), bind.attrs["keepdims"])
    if bind.attrs["initial"] is not None:
        first = g.array(bind.attrs["initial"], wide)
        result = g("Add" if is_sum else "Mul", result, first)
    return g.cast(result, wide, dtype)


@exports_op("mean")
def _mean(g: Graph, bind: Bind) -> str:
    dtype, axes = result_types(bind)[0].dtype, reduced_axes(bind)
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    name, keeps = g.operand(bind.args[0], wide), bind.attrs["keepdims"]
    if not _has_mask(bind):
        result = _reduction_node(g, "ReduceMean", name, axes, keeps)
        return g.cast(result, wide, dtype)
    mask = g.cast(as_truth(g, bind.args[1]), np.dtype(bool), wide)
    total = _reduction_node(g, "ReduceSum", _masked_operand(g, bind, name, 0, wide), axes, keeps)
    shape = g("Shape", _masked_operand(g, bind, name, 0, wide))
    count = _reduction_node(g, "ReduceSum", g("Expand", mask, shape), axes, keeps)
    return g.cast(g("Div", total, count), wide, dtype)


@exports_as(max="Max", min="Min")
def _max(g: Graph, bind: Bind, word: str) -> str:
    dtype, is_max = result_types(bind)[0].dtype, word == "Max"
    wide, axes, keeps = wide_dtype(dtype), reduced_axes(bind), bind.attrs["keepdims"]
    name = g.operand(bind.args[0], wide)
    name = _masked_operand(g, bind, name, dtype_bounds(dtype)[0 if is_max else 1], wide)
    result = _extremum_along_axes(g, word, name, axes, keeps, wide)
    if bind.attrs["initial"] is not None:
        first = g.array(bind.attrs["initial"], wide)
        result = extremum_node(g, word, [result, first], wide)
    return g.cast(result, wide, dtype)


def _extremum_along_axes(
    g: Graph, kind: str, name: str, axes: list[int], keeps: bool, dtype: np.dtype
) -> str:
    """The largest or smallest along axes, nan if an element is nan."""
    result = _reduction_node(g, f"Reduce{kind}", name, axes, keeps)
    if dtype.kind != "f" or not axes:
        return result
    # ONNX leaves the result for nan undefined
    is_nan = g.cast(g("IsNaN", name), np.dtype(bool), np.float32)
    some = g(
        "Greater", _reduction_node(g, "ReduceMax", is_nan, axes, keeps), g.array(0, np.float32)
    )
    return g("Where", some, g.array(np.nan, dtype), result)


@exports_as(any="any", all="all")
def _any(g: Graph, bind: Bind, word: str) -> str:
    is_any = word == "any"
    truth = as_truth(g, bind.args[0])
    if not is_any:
        truth = g("Not", truth)
    if _has_mask(bind):
        truth = g("And", truth, as_truth(g, bind.args[1]))
    counted = g.cast(truth, np.dtype(bool), np.int64)
    count = _reduction_node(g, "ReduceSum", counted, reduced_axes(bind), bind.attrs["keepdims"])
    some = is_not(g, count, np.dtype(np.int64), 0)
    return some if is_any else g("Not", some)


@exports_op("count_nonzero")
def _count_nonzero(g: Graph, bind: Bind) -> str:
    counted = g.cast(as_truth(g, bind.args[0]), np.dtype(bool), np.int64)
    result = _reduction_node(g, "ReduceSum", counted, reduced_axes(bind), bind.attrs["keepdims"])
    return result


@exports_as(argmax="ArgMax", argmin="ArgMin")
def _argmax(g: Graph, bind: Bind, word: str) -> str:
    aval, axis = result_types(bind)[0], bind.attrs["axis"]
    x = bind.args[0].type
    name, dtype = g.operand(bind.args[0], wide_dtype(x.dtype)), wide_dtype(x.dtype)
    if axis is None:
        name, axis, keeps = g("Reshape", name, g.array([-1], np.int64)), 0, 0
    else:
        axis, keeps = axis % x.ndim if x.ndim else 0, int(bind.attrs["keepdims"])
        name = name if x.ndim else g.unsqueeze(name, [0])
    result = g(word, name, axis=axis, keepdims=keeps)
    if dtype.kind == "f":  # the first nan, where there is one
        is_nan = g.cast(g("IsNaN", name), np.dtype(bool), np.float32)
        some = _reduction_node(g, "ReduceMax", is_nan, [axis], bool(keeps))
        first = g("ArgMax", is_nan, axis=axis, keepdims=keeps)
        result = g("Where", g("Greater", some, g.array(0, np.float32)), first, result)
    return g.reshape(result, aval.shape) if bind.attrs["axis"] is None else result


@exports_op("cumsum")
def _cumsum(g: Graph, bind: Bind) -> str:
    aval, axis = result_types(bind)[0], bind.attrs["axis"]
    wide = wide_dtype(aval.dtype)
    name = g.operand(bind.args[0], wide)
    if axis is None or not bind.args[0].type.ndim:
        name, axis = g("Reshape", name, g.array([-1], np.int64)), 0
    result = g("CumSum", name, g.array(axis % max(aval.ndim, 1), np.int64))
    return g.cast(g.reshape(result, aval.shape), wide, aval.dtype)


# ---- sorting ----


@exports_op("sort", "partition")
def _sort(g: Graph, bind: Bind) -> str:
    return _sort_with_places(g, bind)[0]


@exports_op("argsort", "argpartition")
def _argsort(g: Graph, bind: Bind) -> str:
    return _sort_with_places(g, bind)[1]


def _sort_with_places(g: Graph, bind: Bind) -> tuple[str, str]:
    """(sorted elements, their places); nan comes last."""
    x, axis = bind.args[0].type, bind.attrs["axis"]
    dtype = wide_dtype(x.dtype)
    name, shape = g.operand(bind.args[0], dtype), x.shape
    if x.dtype == np.uint64:
        name, dtype = _with_other_sign(g, g.cast(name, dtype, np.int64)), np.dtype(np.int64)
    if axis is None or not shape:
        name, axis, shape = g("Reshape", name, g.array([-1], np.int64)), 0, (x.size,)
    axis %= len(shape)
    count = g.ints([shape[axis]])
    if dtype.kind != "f":
        values, places = g("TopK", name, count, results=2, axis=axis, largest=0, sorted=1)
        values = _with_other_sign(g, values) if x.dtype == np.uint64 else values
        return g.cast(values, dtype, x.dtype), places
    # two stable sorts: by the number first, then by whether it is nan
    keys = g("Where", g("IsNaN", name), g.array(np.inf, dtype), name)
    _, places = g("TopK", keys, count, results=2, axis=axis, largest=0, sorted=1)
    is_nan = g.cast(g("IsNaN", name), np.dtype(bool), np.int32)
    is_nan = g("GatherElements", is_nan, places, axis=axis)
    _, order = g("TopK", is_nan, count, results=2, axis=axis, largest=0, sorted=1)
    places = g("GatherElements", places, order, axis=axis)
    values = g("GatherElements", name, places, axis=axis)
    return g.cast(values, dtype, x.dtype), places


def _with_other_sign(g: Graph, x: str) -> str:
    """64-bit integers with the sign bit flipped, so that unsigned order becomes signed order."""
    return g("BitwiseXor", x, g.array(np.iinfo(np.int64).min, np.int64))


@exports_op("searchsorted")
def _searchsorted(g: Graph, bind: Bind) -> str:
    edges, x = bind.args[:2]
    order = bind.args[2] if len(bind.args) > 2 else None
    has_order = order is not None and order.type is not NO_TYPE
    return _edges_below(g, edges, x, bind.attrs["side"], g.operand(order) if has_order else None)


@exports_op("digitize")
def _digitize(g: Graph, bind: Bind) -> str:
    x, edges = bind.args
    below = _edges_below(g, edges, x, "left" if bind.attrs["right"] else "right", None)
    if not edges.type.size:
        return below
    name = g.operand(edges)
    first, last = (g("Gather", name, g.array(i, np.int64)) for i in (0, -1))
    above = g("Sub", g.number(edges.type.size), below)
    is_falling = g(
        "Less", *[g.cast(e, edges.type.dtype, wide_dtype(edges.type.dtype)) for e in (last, first)]
    )
    return g("Where", is_falling, above, below)


def _edges_below(g: Graph, edges: Arg, x: Arg, side: str, order: str | None) -> str:
    """The number of edges below each element; nan is above all numbers."""
    dtype = wide_dtype(np.result_type(edges.type.dtype, x.type.dtype))
    bounds, name = g.operand(edges, dtype), g.unsqueeze(g.operand(x, dtype), [x.type.ndim])
    if order is not None:
        bounds = g("Gather", bounds, order)
    below = g("LessOrEqual" if side == "right" else "Less", bounds, name)
    if dtype.kind == "f":
        is_nan = g("IsNaN", name)
        if side == "left":
            is_nan = g("And", is_nan, g("Not", g("IsNaN", bounds)))
        below = g("Or", below, is_nan)
    counted = g.cast(below, np.dtype(bool), np.int64)
    return g("ReduceSum", counted, g.array([-1], np.int64), keepdims=0)


@exports_op("nonzero")
def _nonzero(g: Graph, bind: Bind) -> tuple[str, ...]:
    places = g("NonZero", as_truth(g, bind.args[0]))
    rank = len(bind.binders) - 1  # the last result is their number
    rows = [g("Gather", places, g.array(i, np.int64), axis=0) for i in range(rank)]
    return *rows, g.squeeze(g("Shape", places, start=1), [0])

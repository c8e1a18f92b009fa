"""linspace and similar functions, sliding windows, convolutions, flat and multi-axis indices."""

from collections.abc import Sequence

import numpy as np

from letir.ast.sizes.size import Size
from letir.ast.terms import Bind
from letir.ast.types import ShapeDtype
from letir.onnx.exporting.node_graph import (
    Graph,
    computes_op,
    exports_op,
    refuses_operations,
    result_types,
)
from letir.ops.indexing.basic import index_add
from letir.tracing.entry import trace

refuses_operations(
    "the shape of the result depends on values, so that the rest of the program has no shapes",
    "bin_count",
)
refuses_operations("ONNX has no such operation on integers", "packbits", "unpackbits")


def _evenly_spaced(start, stop, num: int, endpoint: bool):
    """``num`` evenly spaced samples along a new first axis, rounded as by NumPy."""
    gaps = num - 1 if endpoint else num
    start, stop = start + 0 * stop, stop + 0 * start
    places = np.arange(num).reshape(-1, *(1,) * start.ndim)
    if not gaps:
        return start + 0.0 * places
    step = (stop - start) / gaps
    result = start + places * step
    if endpoint and num > 1:
        result = np.concatenate([result[:-1], stop[None] + 0 * result[-1:]])
    return result


def _with_axis_and_dtype(values, axis: int, dtype):
    values = np.moveaxis(values, 0, axis)
    if dtype is None:
        return values
    return (np.floor(values) if np.dtype(dtype).kind in "iu" else values).astype(dtype)


@computes_op("linspace")
def _linspace(start, stop, *, num, endpoint=True, dtype=None, axis=0):
    return _with_axis_and_dtype(_evenly_spaced(start, stop, num, endpoint), axis, dtype)


@exports_op("linspace")
def _linspace_nodes(g: Graph, bind: Bind) -> Sequence[str]:
    """The program above; with a symbolic number of samples it gets their positions, too."""
    num = bind.attrs["num"]
    if type(num) is not Size:
        return g.emitter.written(g, bind, _linspace)
    aval, rank = result_types(bind)[0], result_types(bind)[0].ndim - 1
    dtype = aval.dtype if aval.dtype.kind == "f" else np.dtype(float)
    places = g("Range", g.array(0, np.int64), g.number(num), g.array(1, np.int64))
    avals = [ShapeDtype(arg.type.shape, dtype) for arg in bind.args]
    count = ShapeDtype((num,), np.int64)

    def program(start, stop, places):
        gaps = np.maximum(places.shape[0] - bind.attrs["endpoint"], 1)
        start, stop = start + 0 * stop, stop + 0 * start
        places = places.reshape(-1, *(1,) * rank)
        values = start + places * ((stop - start) / gaps)
        is_last = (places == gaps) & bind.attrs["endpoint"]
        return _with_axis_and_dtype(np.where(is_last, stop, values), bind.attrs["axis"], aval.dtype)

    operands = [g.operand(arg, dtype) for arg in bind.args]
    return g.emitter.recorded(g, trace(program, *avals, count), [*operands, places])


@computes_op("logspace")
def _logspace(start, stop, base=10.0, *, num, endpoint=True, dtype=None, axis=0):
    result = np.power(base, _evenly_spaced(start, stop, num, endpoint))
    result = np.moveaxis(result, 0, axis)
    return result if dtype is None else result.astype(dtype)


@computes_op("geomspace")
def _geomspace(start, stop, *, num, endpoint=True, dtype=None, axis=0):
    common = np.result_type(start.dtype, stop.dtype, np.float64)
    start, stop = start.astype(common) + 0 * stop, stop.astype(common) + 0 * start
    logs = _evenly_spaced(np.log(np.abs(start)), np.log(np.abs(stop)), num, endpoint)
    result = np.sign(start) * np.exp(logs)
    if num > 0:
        last = [stop[None]] if endpoint and num > 1 else [result[num - 1 : num]]
        result = np.concatenate([start[None], result[1 : num - 1], *last])[:num]
    result = np.moveaxis(result, 0, axis)
    return result if dtype is None else result.astype(dtype)


# ---- windows ----


@computes_op("sliding_window_view")
def _sliding_window_view(x, *, window, axis=None):
    sizes = window if isinstance(window, tuple) else (window,)
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis).tolist()
    rank = x.ndim
    for size, place in zip(sizes, axes, strict=True):
        k = place % rank
        count = x.shape[k] - size + 1
        lead = (slice(None),) * k
        x = np.stack([x[(*lead, slice(i, i + count))] for i in range(size)], axis=-1)
    return x


def _full_convolution(a, b):
    """The sum of shifted copies of the longer array."""
    a, b = (a, b) if a.shape[0] >= b.shape[0] else (b, a)
    common = np.result_type(a.dtype, b.dtype)
    n, m = a.shape[0], b.shape[0]
    if common.kind == "f":
        padded = np.pad(a.astype(common), (m - 1, m - 1))
        rows = np.stack([padded[m - 1 - i : m - 1 - i + n + m - 1] for i in range(m)])
        return b.astype(common) @ rows
    out = np.zeros(n + m - 1, common)
    for i in range(m):
        out = index_add(out, slice(i, i + n), a * b[i])
    return out


def _cut_to_mode(full, longer: int, shorter: int, mode: str):
    """The part of a full convolution that is the result for ``mode``."""
    if mode == "full":
        return full
    if mode == "same":
        start = (shorter - 1) // 2
        return full[start : start + longer]
    return full[shorter - 1 : longer]


@computes_op("convolve")
def _convolve(a, v, *, mode="full"):
    a, v = np.atleast_1d(a), np.atleast_1d(v)
    longer, shorter = max(a.shape[0], v.shape[0]), min(a.shape[0], v.shape[0])
    return _cut_to_mode(_full_convolution(a, v), longer, shorter, mode)


# ---- indices ----


@computes_op("unravel_index")
def _unravel_index(indices, *, shape, order="C"):
    rest, result = indices.astype(np.int64), []
    for n in shape[::-1] if order == "C" else shape:
        result.append(rest % n)
        rest = rest // n
    return tuple(result[::-1] if order == "C" else result)


@computes_op("ravel_multi_index")
def _ravel_multi_index(*indices, dims, mode="raise", order="C"):
    modes = mode if isinstance(mode, tuple) else (mode,) * len(dims)
    rows = list(zip(indices, dims, modes, strict=True))
    total = 0
    for index, n, how in rows if order == "C" else rows[::-1]:
        place = index.astype(np.int64)
        place = np.clip(place, 0, n - 1) if how == "clip" else place % n if how == "wrap" else place
        total = total * n + place
    return total


@computes_op("lexsort")
def _lexsort(*keys, axis=-1):
    order = None
    for key in keys:  # the last key is the first criterion; the sorting is stable
        sorted_key = key if order is None else np.take_along_axis(key, order, axis=axis)
        places = np.argsort(sorted_key, axis=axis)
        order = places if order is None else np.take_along_axis(order, places, axis=axis)
    return order


@computes_op("nanargmax")
def _nanargmax(x, *, axis=None, keepdims=False):
    return np.argmax(np.where(np.isnan(x), -np.inf, x), axis=axis, keepdims=keepdims)


@computes_op("nanargmin")
def _nanargmin(x, *, axis=None, keepdims=False):
    return np.argmin(np.where(np.isnan(x), np.inf, x), axis=axis, keepdims=keepdims)

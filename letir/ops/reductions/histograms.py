"""Histograms: histogram_bin_edges, histogram, histogramdd, each traced as one operation.

Counts have no derivative. Sums of ``weights`` have one with respect to the weights, edges computed
from the data with respect to the least and the greatest element, and densities with respect to the
edges. The number of bins that a rule such as ``bins="auto"`` finds is an attribute, and a guard
checks it.
"""

import math
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.record_fields import SeveralBinds
from letir.ast.types import ArrayType
from letir.errors import ShapeError
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.records import DISCRETE, composite, define
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.clip import clip
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.indexing.searchsorted import searchsorted
from letir.ops.reductions.reductions import max_, min_, sum_
from letir.ops.reductions.variance_and_average import drop_trailing_nones
from letir.ops.shape.concatenate_stack_split import stack
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import arange_beside, as_size, broadcast_to, zeros_like
from letir.ops.shape.transpose import transpose

# ---- the number of bins ----


def _bin_count_batch(args, axes, /, **attrs):
    """The batching rule of bin_count: one number for each example, in a loop."""
    return LoopOverExamples(lambda: bin_count)(args, axes, **attrs)


bin_count = define(
    "bin_count",
    lambda xp, a, *, rule, range=None: xp.asarray(len(xp.histogram_bin_edges(a, rule, range)) - 1)[
        ()
    ],
    lambda a, *, rule, range: ArrayType(np.int64, ()),
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=_bin_count_batch,
    source="np.int64(len(np.histogram_bin_edges({0}, {rule}, {range})) - 1)",
    raises=True,
)


def _number_of_bins(a, bins, range) -> int:
    """``bins`` if it is a number; the number that a rule finds, for which a guard is recorded."""
    if not isinstance(bins, str):
        return as_size(bins)
    if not isinstance(a, Value):
        return len(np.histogram_bin_edges(a, bins, range)) - 1
    return bin_count(a, rule=bins, range=range).__index__()


def _range_attribute(range):
    """``range`` as an attribute: None, or a pair of Python numbers."""
    return None if range is None else tuple([getattr(n, "tolist", lambda n=n: n)() for n in range])


def _list_to_array(numbers):
    """``numbers`` as an array if it is a list or a tuple; traced if one of them is."""
    numbers = LATE_BOUND["stack_traced"](numbers)
    return np.asarray(numbers) if isinstance(numbers, list | tuple) else numbers


def _holds_edges(bins) -> bool:
    """Whether ``bins`` is a sequence: edges, or an entry for each axis."""
    return isinstance(bins, list | tuple) or (not isinstance(bins, str) and np.ndim(bins) > 0)


# ---- edges ----


def _edges_dtype(a: ArrayType, range) -> np.dtype:
    """The dtype of the edges, found by calling NumPy."""
    return np.histogram_bin_edges(np.zeros(1, a.dtype), 1, range).dtype


def _edges_decompose(a, *, bins, range=None) -> Value:
    """Evenly spaced edges from the least to the greatest element, or over ``range``."""
    if bins < 1:
        raise ShapeError(
            f"histogram: the number of bins must be positive, found {bins}\n"
            "  pass bins from 1, or their edges"
        )
    dtype = _edges_dtype(a.type, range)
    none = cast(sum_(a) * 0, dtype)  # a traced 0
    if range is not None:
        first, last = none + range[0], none + range[1]
    elif a.size == 0:
        first, last = none, none + 1
    else:
        first, last = cast(min_(a), dtype), cast(max_(a), dtype)
    same = first == last
    first, last = where(same, first - 0.5, first), where(same, last + 0.5, last)
    steps = arange_beside(a, bins + 1, dtype)
    # the last edge exactly: the greatest element lies on it
    return where(steps == bins, last, steps * ((last - first) / bins) + first)


def _edges_prepare(a, bins=10, range=None, weights=None):
    """np.histogram_bin_edges, for which weights do not matter."""
    range, a = _range_attribute(range), _list_to_array(a)
    if _holds_edges(bins):
        edges = _list_to_array(bins)
        if (edges[:-1] > edges[1:]).any():  # a guard
            raise ShapeError("histogram: the edges must increase\n  sort them")
        raise SeveralBinds(lambda: edges)
    return (a,), {"bins": _number_of_bins(a, bins, range), "range": range}


histogram_bin_edges = composite(
    "histogram_bin_edges",
    _edges_decompose,
    impl=lambda xp, a, *, bins, range=None: xp.histogram_bin_edges(a, bins, range),
    prepare=_edges_prepare,
    numpy=(np.histogram_bin_edges,),
    raises=True,
)


def _find_bins(a: Value, edges: Value) -> tuple[Value, Value]:
    """(the bin of each element, whether it is in any bin)."""
    last = edges[-1]
    bins = searchsorted(edges, a, "right") - 1
    count = edges.shape[0] - 1
    # the last bin includes its right edge
    inside = (a >= edges[0]) & (a <= last)
    return clip(where(a == last, count - 1, bins), 0, max(count - 1, 0)), inside


def _bin_contributions(inside: Value, weights, dtype) -> Value:
    """The contribution of each element to its bin: 1 or its weight, 0 if it is in no bin."""
    return cast(inside, dtype) if weights is None else where(inside, weights, 0)


# ---- along one axis ----


def _histogram_decompose(
    a, edges=None, weights=None, *, bins=None, range=None, density=False
) -> tuple[Value, Value]:
    """(the count or weight of each bin, the edges)."""
    if weights is not None and weights.shape != a.shape:
        raise ShapeError(
            f"histogram: weights of shape {weights.shape} for data of {a.shape}\n"
            "  pass one weight for each element"
        )
    row = reshape(a, -1)
    row = cast(row, np.uint8) if row.dtype.kind == "b" else row
    weights = None if weights is None else reshape(weights, -1)
    if edges is None:
        edges = _edges_decompose(row, bins=bins, range=range)
    place, inside = _find_bins(row, edges)
    dtype = np.dtype(np.intp) if weights is None else weights.dtype
    empty = cast(zeros_like(edges[1:]), dtype)
    result = empty.at[place].add(_bin_contributions(inside, weights, dtype))
    if density:
        result = result / cast(edges[1:] - edges[:-1], np.float64) / sum_(result)
    return result, edges


def _histogram_prepare(a, bins=10, range=None, density=None, weights=None):
    """np.histogram: the operands are (data, edges or None, weights), without trailing Nones."""
    weights, bins, range = _list_to_array(weights), _list_to_array(bins), _range_attribute(range)
    a = _list_to_array(a)
    attrs = {"bins": None, "range": range, "density": bool(density)}
    if _holds_edges(bins):
        return drop_trailing_nones(a, bins, weights), attrs
    return drop_trailing_nones(a, None, weights), {**attrs, "bins": _number_of_bins(a, bins, range)}


def _histogram_impl(xp, a, edges=None, weights=None, *, bins=None, range=None, density=False):
    """np.histogram."""
    return xp.histogram(a, bins if edges is None else edges, range, density, weights)


def _histogram_source(write, a, edges="None", weights="None", *, bins, range, density):
    """A call of np.histogram with its operands as keywords."""
    texts = {"bins": write.literal(bins) if edges == "None" else edges, "weights": weights}
    named = [f"{name}={text}" for name, text in texts.items() if text != "None"]
    return write.numpy_call(a, *named, range=range, density=density)


histogram = composite(
    "histogram",
    _histogram_decompose,
    impl=_histogram_impl,
    prepare=_histogram_prepare,
    numpy=(np.histogram,),
    results=lambda **_: 2,
    source=_histogram_source,
    memory="may_alias",
    raises=True,
)

# ---- along several axes ----


def _histogramdd_decompose(
    sample, weights=None, *edges, bins, ranges=None, density=False
) -> tuple[Value, ...]:
    """(the count or weight of each block, the edges along each axis)."""
    if sample.ndim != 2 or sample.shape[1] != len(bins):
        raise ShapeError(
            f"histogramdd: points of shape {sample.shape} do not fit {len(bins)} dimensions\n"
            "  pass points of shape (N, D), and bins for D dimensions"
        )
    remaining = iter(edges)
    columns = [sample[:, i] for i, _ in enumerate(bins)]
    edge_lines, place = [], 0
    inside: Any = True
    for i, column in enumerate(columns):
        limits = None if ranges is None else ranges[i]
        lines = (
            next(remaining)
            if bins[i] is None
            else _edges_decompose(column, bins=bins[i], range=limits)
        )
        at, is_in_range = _find_bins(column, lines)
        place, inside = place * (lines.shape[0] - 1) + at, inside & is_in_range
        edge_lines.append(lines)
    shape = tuple(lines.shape[0] - 1 for lines in edge_lines)
    kind = np.dtype(np.float64)
    flat = broadcast_to(cast(zeros_like(edge_lines[0][:1]), kind), (math.prod(shape),))
    weights = None if weights is None else cast(weights, kind)
    blocks = reshape(flat.at[place].add(_bin_contributions(inside, weights, kind)), shape)
    return (_densities(blocks, edge_lines) if density else blocks), *edge_lines


def _densities(blocks: Value, edges: list[Value]) -> Value:
    """The contents of each block divided by its volume and by the sum of all contents."""
    total = sum_(blocks)
    for i, lines in enumerate(edges):
        widths = lines[1:] - lines[:-1]
        shape = [1] * len(edges)
        shape[i] = widths.shape[0]
        blocks = blocks / reshape(widths, tuple(shape))
    return blocks / total


def _histogramdd_prepare(sample, bins=10, range=None, density=None, weights=None):
    """np.histogramdd: the operands are (points, weights or None, the edges that are given)."""
    if isinstance(sample, list | tuple):
        rows = stack([_list_to_array(row) for row in sample])
        sample = transpose(rows) if rows.ndim > 1 else rows
    if len(np.shape(sample)) == 1:  # points on a line
        sample = reshape(sample, (-1, 1))
    count = np.shape(sample)[1]
    bins = [_list_to_array(b) for b in (bins if _holds_edges(bins) else (bins,) * count)]
    ranges = None if range is None else tuple([_range_attribute(limits) for limits in range])
    if len(bins) != count or (ranges is not None and len(ranges) != count):
        raise ShapeError(
            f"histogramdd: bins and ranges must have an entry for each of {count} dimensions\n"
            "  pass one entry for each dimension"
        )
    edges = [b for b in bins if _holds_edges(b)]
    numbers = tuple([None if _holds_edges(b) else as_size(b) for b in bins])
    attrs = {"bins": numbers, "ranges": ranges, "density": bool(density)}
    operands = (sample, _list_to_array(weights), *edges)
    return (operands if edges else drop_trailing_nones(*operands)), attrs


def _chosen_bins(bins: tuple, edges: tuple) -> list:
    """The number of bins or the edges for each axis, as np.histogramdd takes them."""
    rest = iter(edges)
    return [next(rest) if n is None else n for n in bins]


def _histogramdd_impl(xp, sample, weights=None, *edges, bins, ranges=None, density=False):
    """np.histogramdd, with its results as one flat tuple."""
    result, lines = xp.histogramdd(sample, _chosen_bins(bins, edges), ranges, density, weights)
    return (result, *lines)


def _histogramdd_source(write, sample, weights="None", *edges, bins, ranges, density):
    """A call of np.histogramdd with its results as one flat tuple."""
    texts = ", ".join(str(b) for b in _chosen_bins(bins, edges))
    call = write.call(
        "np.histogramdd",
        sample,
        f"[{texts}]",
        write.literal(ranges),
        write.literal(density),
        weights,
    )
    return f"(lambda found, edges: (found, *edges))(*{call})"


histogramdd = composite(
    "histogramdd",
    _histogramdd_decompose,
    impl=_histogramdd_impl,
    prepare=_histogramdd_prepare,
    numpy=(np.histogramdd,),
    results=lambda *, bins, **_: 1 + len(bins),
    returned=lambda results, **_: (results[0], list(results[1:])),
    source=_histogramdd_source,
    memory="may_alias",
    raises=True,
)

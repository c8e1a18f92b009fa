"""Gathering and scattering by arrays of indices, and results whose size depends on values."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import letir.numpy as lnp
from letir.ast.symbolic_sizes import is_same_size
from letir.errors import MissingRule, ShapeError
from letir.onnx.importing.values import (
    axis_of,
    check_elements,
    known_array,
    known_int,
    take_elements,
    traced_with,
)
from letir.tracing.control_flow.scans import scan

_MAX_COLUMNS = 1 << 16  # in an array of counts
_SCATTER = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _axis_positions(shape: tuple, count: int, rank: int) -> list:
    """The positions along each of the first ``count`` axes, made to broadcast to ``rank`` axes."""
    return [
        lnp.arange(shape[i]).reshape(tuple([-1 if k == i else 1 for k in range(rank)]))
        for i in range(count)
    ]


def _gather(x: Any, indices: Any, axis: int = 0) -> Any:
    """Gather: the elements at ``indices`` along an axis."""
    return take_elements(x, indices, axis=axis_of(axis, x.ndim))


def _gather_elements(x: Any, indices: Any, axis: int = 0) -> Any:
    """GatherElements: the element at each index along an axis."""
    axis = axis_of(axis, x.ndim)
    region = tuple(
        slice(None) if i == axis or x.shape[i] == n else slice(0, n)
        for i, n in enumerate(indices.shape)
    )
    x = traced_with(x, indices)
    is_whole = all(part == slice(None) for part in region)
    return np.take_along_axis(x if is_whole else x[region], indices, axis)


def scatter_updates(x: Any, where: tuple, updates: Any, reduction: str) -> Any:
    """``x`` with ``updates`` written or reduced into the elements at ``where``."""
    result = traced_with(x, *where, updates).copy()
    if reduction in (None, "none"):
        result[where] = updates
    elif reduction not in _SCATTER:
        raise MissingRule(f"there is no reduction {reduction!r}\n  use add, mul, max or min")
    else:
        _SCATTER[reduction].at(result, where, updates)
    return result


def _scatter_elements(
    x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none"
) -> Any:
    """ScatterElements: each update at its index along an axis."""
    axis = axis_of(axis, x.ndim)
    where: list[Any] = _axis_positions(indices.shape, x.ndim, x.ndim)
    where[axis] = indices
    return scatter_updates(x, tuple(where), updates, reduction)


def _index_components(indices: Any, rank: int) -> list:
    """The components of index vectors, which are along the last axis, into ``rank`` axes."""
    if not 1 <= indices.shape[-1] <= rank:
        raise ShapeError(
            f"index vectors of length {indices.shape[-1]} do not fit an array with {rank} axes\n"
            "  the last axis of the indices has at most one number for each axis"
        )
    return [indices[..., i] for i in range(indices.shape[-1])]


def _gather_nd(x: Any, indices: Any, batch_dims: int = 0) -> Any:
    """GatherND: the elements or slices at index vectors."""
    columns = _index_components(indices, x.ndim - batch_dims)
    where = (*_axis_positions(indices.shape, batch_dims, indices.ndim - 1), *columns)
    return traced_with(x, indices)[where]


def _scatter_nd(x: Any, indices: Any, updates: Any, reduction: str = "none") -> Any:
    """ScatterND: updates at index vectors."""
    return scatter_updates(x, tuple(_index_components(indices, x.ndim)), updates, reduction)


def _tensor_scatter(
    cache: Any, update: Any, write_indices: Any = None, axis: int = -2, mode: str = "linear"
) -> Any:
    """TensorScatter: a row of updates for each example, from an index on."""
    axis, rank = axis_of(axis, cache.ndim), cache.ndim
    places = lnp.arange(update.shape[axis]).reshape(
        tuple([-1 if i == axis else 1 for i in range(rank)])
    )
    if write_indices is not None:
        places = write_indices.reshape((-1, *[1] * (rank - 1))) + places
    if mode == "circular":
        places = np.mod(places, cache.shape[axis])
    where = _axis_positions(update.shape, rank, rank)
    where[axis] = places
    return scatter_updates(cache, tuple(where), update, "none")


def _compress(x: Any, condition: Any, axis: int | None = None) -> Any:
    """Compress: the elements or slices where the condition is true."""
    mask = known_array(condition, "Compress: the condition").astype(bool)
    places = np.flatnonzero(mask)
    if axis is None:
        return x.reshape((-1,))[places]
    return take_elements(x, places, axis=axis_of(axis, x.ndim))


def _nonzero(x: Any) -> Any:
    """NonZero: the positions of the elements that are not 0, one column each."""
    return np.stack(np.nonzero(x)).astype(np.int64)


def _unique(x: Any, axis: int | None = None, sorted: int = 1) -> tuple:
    """Unique: (the values, their first positions, the number of each element's value, counts)."""
    results = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    values, first, inverse, counts = results
    inverse = inverse.reshape((-1,))
    if not sorted:
        order = np.argsort(first, kind="stable")
        values = take_elements(values, order, axis=0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return values, *[part.astype(np.int64) for part in (first, inverse, counts)]


def _reverse_sequence(x: Any, lengths: Any, batch_axis: int = 1, time_axis: int = 0) -> Any:
    """ReverseSequence: the first ``lengths`` elements of each example in reversed order."""
    n, shape = x.shape[time_axis], [1] * x.ndim
    shape[time_axis] = -1
    time = lnp.arange(n).reshape(tuple(shape))
    shape[time_axis], shape[batch_axis] = 1, -1
    ends = lengths.reshape(tuple(shape))
    order = np.where(time < ends, ends - 1 - time, time)
    return _gather_elements(x, np.broadcast_to(order, x.shape), time_axis)


def _array_feature_extractor(x: Any, indices: Any) -> Any:
    """ArrayFeatureExtractor: columns of the last axis."""
    result = take_elements(x, indices.reshape((-1,)), axis=-1)
    return result.reshape((1, -1)) if x.ndim == 1 else result


# ---- n-grams ----


def _ngram_counts(
    x: Any,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: list,
    ngram_indexes: list,
    pool_int64s: Any = None,
    pool_strings: Any = None,
    weights: Any = None,
) -> Any:
    """TfIdfVectorizer: how often the n-grams of a pool of integers occur."""
    if pool_int64s is None:
        raise MissingRule("TfIdfVectorizer: strings are not supported\n  encode them as integers")
    rows = x.reshape((1, -1)) if x.ndim < 2 else x
    known_size = [rows.shape[1]] if type(rows.shape[1]) is int else []
    in_pool = all(0 <= start <= len(pool_int64s) for start in ngram_counts)
    if not in_pool or not all(0 <= i < _MAX_COLUMNS for i in ngram_indexes) or not known_size:
        raise ShapeError(
            "TfIdfVectorizer: ngram_counts and ngram_indexes do not fit the pool or the input\n"
            "  correct the attributes of the node"
        )
    most_skips = min([max_skip_count, *known_size])
    check_elements([len(pool_int64s), most_skips + 1, _MAX_COLUMNS // 8], "TfIdfVectorizer")
    columns: list[Any] = [np.zeros(rows.shape[:1])] * (max(ngram_indexes) + 1)
    for place, (length, words) in enumerate(_ngrams_in(pool_int64s, ngram_counts)):
        if min_gram_length <= length <= max_gram_length:
            most = min(max_skip_count, rows.shape[1]) if length > 1 else 0
            matches = [_match_counts(rows, words, k + 1) for k in range(most + 1)]
            column = ngram_indexes[place]
            columns[column] = columns[column] + sum(matches)
    counts: Any = np.stack(columns, axis=1)
    weight_of_column: Any = np.ones(len(columns))
    if weights is not None and mode != "TF":
        weight_of_column[list(ngram_indexes)] = weights
    result: Any = (
        counts * weight_of_column
        if mode == "TFIDF"
        else counts
        if mode == "TF"
        else (counts > 0) * weight_of_column
    )
    return (result.reshape((-1,)) if x.ndim < 2 else result).astype(np.float32)


def _ngrams_in(pool: list, starts: list) -> Iterator[tuple[int, list]]:
    """(length, words) of the n-grams in a pool; ``starts``: the first position of each length."""
    for length, start in enumerate(starts, 1):
        end = starts[length] if length < len(starts) else len(pool)
        for at in range(start, end, length):
            yield length, pool[at : at + length]


def _match_counts(rows: Any, words: list, step: int) -> Any:
    """The number of times that ``words`` occur in each row, ``step`` apart."""
    count = rows.shape[1] - (len(words) - 1) * step
    if count <= 0:
        return np.zeros(rows.shape[:1])
    same = [rows[:, i * step : i * step + count] == word for i, word in enumerate(words)]
    return np.stack(same).all(axis=0).sum(axis=1).astype(np.float64)


def _nms_overlaps(boxes: Any, center_point_box: int) -> Any:
    """The intersection over union of all pairs of boxes of each example."""
    if center_point_box:
        low, high = boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2
    else:
        low = np.minimum(boxes[..., :2], boxes[..., 2:])
        high = np.maximum(boxes[..., :2], boxes[..., 2:])
    area = np.prod(high - low, axis=-1)
    inner_low = np.maximum(low[..., :, None, :], low[..., None, :, :])
    inner_high = np.minimum(high[..., :, None, :], high[..., None, :, :])
    common = np.prod(np.maximum(inner_high - inner_low, np.float32(0)), axis=-1)
    union = area[..., :, None] + area[..., None, :] - common
    return np.where(union > 0, common / np.where(union > 0, union, np.float32(1)), np.float32(0))


def _non_max_suppression(
    boxes: Any,
    scores: Any,
    most: Any = None,
    overlap: Any = None,
    least_score: Any = None,
    center_point_box: int = 0,
) -> Any:
    """NonMaxSuppression: boxes with high scores, without those that overlap a better box."""
    sizes = zip(boxes.shape, (scores.shape[0], scores.shape[-1], 4), strict=False)
    if boxes.ndim != 3 or scores.ndim != 3 or not all(is_same_size(*pair) for pair in sizes):
        raise ShapeError(
            f"NonMaxSuppression: boxes of shape {boxes.shape} and scores of shape {scores.shape} "
            "do not fit\n  the shapes must be (examples, boxes, 4) and (examples, classes, boxes)"
        )
    count = 0 if most is None else known_int(most, "NonMaxSuppression: the number of boxes")
    limit = np.float32(0) if overlap is None else overlap.reshape(())
    order = np.argsort(-scores, axis=-1, kind="stable")  # (examples, classes, boxes)
    ranked = np.take_along_axis(scores, order, -1)
    close = _nms_overlaps(boxes, center_point_box) > limit
    examples = np.arange(boxes.shape[0])[:, None, None, None]
    close = traced_with(close, order)[examples, order[..., :, None], order[..., None, :]]
    allowed = np.ones_like(ranked, dtype=bool)
    if least_score is not None:
        allowed = ranked > least_score.reshape(())
    places = np.arange(boxes.shape[1])

    def step(selected: Any, row: tuple) -> tuple:
        place, is_allowed, overlaps = row
        is_kept = (
            is_allowed & ~np.any(overlaps & selected, axis=-1) & (selected.sum(axis=-1) < count)
        )
        return np.where(places == place, is_kept[..., None], selected), ()

    rows = (places, np.moveaxis(allowed, -1, 0), np.moveaxis(close, -2, 0))
    selected, _ = scan(step, np.zeros_like(allowed), rows)
    example, label, rank = np.nonzero(selected)
    box = traced_with(order, rank)[example, label, rank]
    return np.stack([example, label, box], axis=1).astype(np.int64)


OPERATORS: dict[str, Any] = {
    **{"Gather": _gather, "GatherElements": _gather_elements, "GatherND": _gather_nd},
    **{"Scatter": _scatter_elements, "ScatterElements": _scatter_elements},
    **{"ScatterND": _scatter_nd, "TensorScatter": _tensor_scatter, "Compress": _compress},
    **{"NonZero": _nonzero, "Unique": _unique, "ReverseSequence": _reverse_sequence},
    **{"TfIdfVectorizer": _ngram_counts, "NonMaxSuppression": _non_max_suppression},
}
ML_OPERATORS: dict[str, Any] = {"ArrayFeatureExtractor": _array_feature_extractor}

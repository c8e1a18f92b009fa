"""Reductions, positions of extremes, sorting, and cumulative sums."""

from typing import Any

import numpy as np

from letir.errors import ShapeError
from letir.onnx.importing.values import axes_of, axis_of, known_int, known_sizes, number_like
from letir.ops.nn.softmax import logsumexp

# ---- reductions ----


def _reduction(f: Any) -> Any:
    """The operator of ``f(x, axes, keepdims)``; the axes are an attribute or an input."""

    def run(
        x: Any,
        axes_input: Any = None,
        axes: Any = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Any:
        axes_given = (
            axes if axes_input is None else known_sizes(axes_input, "the axes of a reduction")
        )
        if not axes_given and noop_with_empty_axes:
            return f(x, (), False)
        reduced = axes_of(axes_given, x.ndim) if axes_given else tuple(range(x.ndim))
        return f(x, reduced, bool(keepdims))

    return run


def _sum(x: Any, axes: tuple, keepdims: bool) -> Any:
    """The sum, in the dtype of x."""
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _product(x: Any, axes: tuple, keepdims: bool) -> Any:
    """The product, in the dtype of x."""
    return np.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _mean(x: Any, axes: tuple, keepdims: bool) -> Any:
    """The mean; for integers rounded toward 0."""
    return np.mean(x, axis=axes, keepdims=keepdims).astype(x.dtype)


def _extreme(f: Any, empty: Any) -> Any:
    """The maximum or minimum; ``empty(dtype)``: the result if there are no elements."""

    def run(x: Any, axes: tuple, keepdims: bool) -> Any:
        if 0 in [x.shape[axis] for axis in axes]:
            shape = [
                1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes
            ]
            return np.full(shape, empty(x.dtype), x.dtype)
        if x.dtype == bool:
            return f(x.astype(np.uint8), axis=axes, keepdims=keepdims).astype(bool)
        return f(x, axis=axes, keepdims=keepdims)

    return run


def _least(dtype: np.dtype) -> Any:
    """The least number of a dtype."""
    if dtype.kind == "b":
        return False
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _greatest(dtype: np.dtype) -> Any:
    """The greatest number of a dtype."""
    if dtype.kind == "b":
        return True
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _norm1(x: Any, axes: tuple, keepdims: bool) -> Any:
    """The sum of absolute values."""
    return _sum(np.abs(x), axes, keepdims)


def _norm2(x: Any, axes: tuple, keepdims: bool) -> Any:
    """The root of the sum of squares."""
    return np.sqrt(_sum(np.square(x), axes, keepdims)).astype(x.dtype)


def _log_sum(x: Any, axes: tuple, keepdims: bool) -> Any:
    """The logarithm of the sum."""
    return np.log(_sum(x, axes, keepdims)).astype(x.dtype)


def _log_sum_exp(x: Any, axes: tuple, keepdims: bool) -> Any:
    """log(sum(exp(x))) without overflow."""
    if not axes:
        return x
    if 0 in [x.shape[axis] for axis in axes]:
        return np.log(_sum(x, axes, keepdims))
    return logsumexp(x, axis=axes, keepdims=keepdims).astype(x.dtype)


def _sum_square(x: Any, axes: tuple, keepdims: bool) -> Any:
    """The sum of squares."""
    return _sum(np.square(x), axes, keepdims)


# ---- positions ----


def _argument(f: Any) -> Any:
    """The operator of the position of an extreme."""

    def run(x: Any, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        axis = axis_of(axis, x.ndim)
        if select_last_index:
            result = x.shape[axis] - 1 - f(np.flip(x, axis), axis=axis)
        else:
            result = f(x, axis=axis)
        result = result.astype(np.int64)
        return np.expand_dims(result, axis) if keepdims else result

    return run


def _top_k(
    x: Any,
    k_input: Any = None,
    axis: int = -1,
    largest: int = 1,
    sorted: int = 1,
    k: int = 0,
) -> tuple:
    """TopK: the largest (or smallest) elements along an axis and their positions, in order."""
    axis = axis_of(axis, x.ndim)
    count = k if k_input is None else known_int(k_input, "TopK: the number k")
    if type(count) is int and type(x.shape[axis]) is int and not 0 <= count <= x.shape[axis]:
        raise ShapeError(
            f"TopK: k must be from 0 to {x.shape[axis]}, the size of axis {axis}, found {count}\n"
            "  pass a smaller k"
        )
    if largest:  # of equal elements the first: a stable sort of the reversed axis
        last = x.shape[axis] - 1
        order = np.flip(last - np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    chosen = order[(*[slice(None)] * axis, slice(0, count))]
    return np.take_along_axis(x, chosen, axis), chosen.astype(np.int64)


# ---- cumulative ----


def _cumulative(f: Any, start: int) -> Any:
    """The operator of a cumulative reduction that begins with ``start`` if it is exclusive."""

    def run(x: Any, axis: Any, exclusive: int = 0, reverse: int = 0) -> Any:
        at = axis_of(known_int(axis, "the axis"), x.ndim)
        x = np.flip(x, at) if reverse else x
        if exclusive:
            front, inner = [slice(None)] * x.ndim, [slice(None)] * x.ndim
            front[at], inner[at] = slice(0, 1), slice(0, -1)
            first = x[tuple(front)] * number_like(0, x) + number_like(start, x)
            result = np.concatenate([first, f(x[tuple(inner)], axis=at, dtype=x.dtype)], axis=at)
        else:
            result = f(x, axis=at, dtype=x.dtype)
        return np.flip(result, at) if reverse else result

    return run


OPERATORS: dict[str, Any] = {
    **{"ReduceSum": _reduction(_sum), "ReduceProd": _reduction(_product)},
    **{"ReduceMean": _reduction(_mean), "ReduceMax": _reduction(_extreme(np.max, _least))},
    **{"ReduceMin": _reduction(_extreme(np.min, _greatest)), "ReduceL1": _reduction(_norm1)},
    **{"ReduceL2": _reduction(_norm2), "ReduceLogSum": _reduction(_log_sum)},
    **{"ReduceLogSumExp": _reduction(_log_sum_exp)},
    **{"ReduceSumSquare": _reduction(_sum_square), "TopK": _top_k},
    **{"ArgMax": _argument(np.argmax), "ArgMin": _argument(np.argmin)},
    **{"CumSum": _cumulative(np.cumsum, 0), "CumProd": _cumulative(np.cumprod, 1)},
}

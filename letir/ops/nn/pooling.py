"""Pooling over windows, of any number of trailing axes: unfold and fold, max_pool, avg_pool.

``unfold`` copies the elements of each window, with the window's axes first; ``fold`` adds them up
where they came from. Each is the other's transpose.
"""

import math

from letir.ast.primitive import Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.errors import MissingRule, ShapeError
from letir.ops.as_numpy import copied_function
from letir.ops.define.batch_rules import batch_first, move_to_front, rank_of
from letir.ops.define.records import composite, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import equal, where
from letir.ops.nn.convolution import output_sizes
from letir.ops.reductions.reductions import divide_by_count, max_, sum_
from letir.ops.shape.shape_and_creation import ones_like

# ---- unfold and fold ----


def _unfold_impl(xp, x, *, window, stride, padding, dilation, value=0.0):
    """The elements of each window: the window's axes, the leading axes of x, the places.

    ``window``: its size along each of the last axes; ``stride`` and ``dilation``: a step for each
    of these axes, ``padding``: (low, high) for each, filled with ``value``.

    >>> import numpy as np
    >>> spacing = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,)}
    >>> unfold(np.arange(4.0), window=(2,), **spacing)
    array([[0., 1., 2.],
           [1., 2., 3.]])
    """
    lead = x.ndim - len(window)
    if any(low or high for low, high in padding):
        x = xp.pad(x, ((0, 0),) * lead + padding, constant_values=value)
    places = tuple(
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[lead:], window, stride, dilation, strict=True)
    )
    out = xp.empty((*window, *x.shape[:lead], *places), x.dtype)
    for at in xp.ndindex(*window):
        slices = tuple(
            slice(i * d, i * d + (m - 1) * s + 1, s)
            for i, m, s, d in zip(at, places, stride, dilation, strict=True)
        )
        out[at] = x[(..., *slices)]
    return out


def _fold_impl(xp, y, *, sizes, stride, padding, dilation):
    """The sum of all windows at their places, the transpose of ``unfold``.

    ``sizes``: the sizes of the array that was unfolded, along the axes of the window.

    >>> import numpy as np
    >>> spacing = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,)}
    >>> fold(np.ones((2, 3)), sizes=(4,), **spacing)
    array([1., 2., 2., 1.])
    """
    n = len(sizes)
    padded = [low + size + high for size, (low, high) in zip(sizes, padding, strict=True)]
    out = xp.zeros((*y.shape[n:-n], *padded), y.dtype)
    for at in xp.ndindex(*y.shape[:n]):
        slices = tuple(
            slice(i * d, i * d + (m - 1) * s + 1, s)
            for i, m, s, d in zip(at, y.shape[-n:], stride, dilation, strict=True)
        )
        out[(..., *slices)] += y[at]
    inner = (slice(low, low + size) for size, (low, _) in zip(sizes, padding, strict=True))
    return xp.ascontiguousarray(out[(..., *inner)])


def _unfold_aval(x, *, window, stride, padding, dilation, value):
    """The axes of the result: window axes, leading axes, places of the window."""
    lead = x.ndim - len(window)
    if lead < 0 or any(len(each) != len(window) for each in (stride, padding, dilation)):
        raise ShapeError(
            f"unfold: a window of {window} does not fit an array of {x.shape}\n"
            "  pad the array, or take a smaller window"
        )
    places = output_sizes(x.shape[lead:], window, stride, padding, dilation)
    return x.with_shape((*window, *x.shape[:lead], *places))


def _fold_aval(y, *, sizes, stride, padding, dilation):
    """The type of the operand of ``unfold``: leading axes, then ``sizes``."""
    n = len(sizes)
    if y.ndim < 2 * n or n < 1:
        raise ShapeError(
            f"fold: an array of shape {y.shape} has too few axes for windows of an array of "
            f"sizes {sizes}\n"
            "  pass the result of unfold, or an array of its shape"
        )
    places = output_sizes(sizes, y.shape[:n], stride, padding, dilation)
    if y.shape[-n:] != places:
        raise ShapeError(
            f"fold: an array of sizes {sizes} has {places} windows, found {y.shape[-n:]}\n"
            "  pass the sizes of the array that was unfolded"
        )
    return y.with_shape((*y.shape[n:-n], *sizes))


def _unfold_vjp(ct, y, x, *, window, value, **spacing):
    """``fold`` of the cotangent."""
    sizes = () if x.type is None else x.shape[x.ndim - len(window) :]
    if not sizes or not is_static_shape(sizes):
        raise MissingRule(
            "unfold: its derivative needs known sizes\n"
            "  give the program types with known sizes: letir.retype"
        )
    return (unbroadcast(fold(ct, sizes=sizes, **spacing), x),)


def _batched_unfold(args, axes, *, window, **attrs):
    """The batching rule of unfold: the batch is one more leading axis."""
    out = unfold(move_to_front(args[0], axes[0]), window=window, **attrs)
    return out, len(window)


def _batched_fold(args, axes, *, sizes, **attrs):
    """The batching rule of fold: the batch is moved behind the window's axes."""
    (y,), (axis,), n = args, axes, len(sizes)
    y, ndim = move_to_front(y, axis), rank_of(args[0])
    order = (*range(1, n + 1), 0, *range(n + 1, ndim))
    return fold(y.transpose(order), sizes=sizes, **attrs), 0


unfold: Primitive = define(
    "unfold",
    _unfold_impl,
    _unfold_aval,
    vjp=_unfold_vjp,
    jvp=lambda t, y, x, *, value, **attrs: unfold(t[0], **attrs),  # the padding is constant
    batch=_batched_unfold,
    source=copied_function(_unfold_impl),
    added="value",
)
fold: Primitive = define(
    "fold",
    _fold_impl,
    _fold_aval,
    vjp=lambda ct, x, y, *, sizes, **spacing: (
        unbroadcast(unfold(ct, window=y.shape[: len(sizes)], **spacing), y),
    ),
    jvp=lambda t, x, y, **attrs: fold(t[0], **attrs),
    batch=_batched_fold,
    source=copied_function(_fold_impl),
)

# ---- pooling ----


def _padding_value(x):
    """The padding for maxima: the least value of the dtype."""
    if x.dtype.kind in "fc":
        return -math.inf
    return 0 if x.dtype.kind in "bu" else -(2 ** (8 * x.dtype.itemsize - 1))


def _windows_of(x, window, stride, padding, dilation):
    """The elements of each window, with padding that is never the maximum."""
    spacing = {"stride": stride, "padding": padding, "dilation": dilation}
    return unfold(x, window=window, value=_padding_value(x), **spacing)


def _max_pool_decompose(x, *, window, stride, padding, dilation):
    """The maximum in each window."""
    return max_(_windows_of(x, window, stride, padding, dilation), axis=tuple(range(len(window))))


def _max_pool_impl(xp, x, *, window, stride, padding, dilation):
    """The maxima of views, along one axis after another, the ones with long rows first."""
    after = (slice(None),) * (len(window) - 1)
    for k, s, d, (low, high) in zip(window, stride, dilation, padding, strict=True):
        axis = x.ndim - 1 - len(after)
        if low or high:
            lowest = -xp.inf if x.dtype.kind in "fc" else 0  # of bool and unsigned integers
            lowest = xp.iinfo(x.dtype).min if x.dtype.kind == "i" else lowest
            width = [(0, 0)] * axis + [(low, high)] + [(0, 0)] * len(after)
            x = xp.pad(x, width, constant_values=lowest)
        reach = x.shape[axis] - d * (k - 1)
        parts = [x[(..., slice(j * d, j * d + reach, s), *after)] for j in range(k)]
        x = parts[0] if k == 1 else xp.maximum(parts[0], parts[1])
        for part in parts[2:]:
            x = xp.maximum(x, part, out=x)
        after = after[1:]
    return x if x.flags.c_contiguous and max(window, default=1) > 1 else x.copy()


def _max_pool_vjp(ct, y, x, *, window, stride, padding, dilation, transform):
    """Ties in a window share the cotangent equally."""
    windows, axes = _windows_of(x, window, stride, padding, dilation), tuple(range(len(window)))
    here = equal(windows, y)
    each = divide_by_count(ct, _count_ties(here, axes))
    spacing = {"stride": stride, "padding": padding, "dilation": dilation}
    ct_of_window = where(here, each, 0)
    return (unbroadcast(fold(ct_of_window, sizes=x.shape[x.ndim - len(window) :], **spacing), x),)


def _count_ties(here, axes):
    """The number of elements of each window that equal the maximum; 1 if that is nan."""
    ties = sum_(here, axis=axes)
    return where(ties == 0, 1, ties)


def _max_pool_jvp(tangents, y, x, *, window, stride, padding, dilation, transform):
    """The mean tangent of the elements that tie for the maximum."""
    spacing = {"stride": stride, "padding": padding, "dilation": dilation}
    here, axes = equal(_windows_of(x, window, **spacing), y), tuple(range(len(window)))
    moved = unfold(tangents[0], window=window, **spacing)
    return divide_by_count(sum_(where(here, moved, 0), axis=axes), _count_ties(here, axes))


def _leading_axis_rule(name: str):
    """The batching rule of pooling: the batch is one more leading axis."""

    def rule(args, mapped, *, transform, **attrs):
        record = {"max_pool": max_pool, "avg_pool": avg_pool}[name]
        return record(*args, **attrs)

    return batch_first(rule)


def _avg_pool_decompose(x, *, window, stride, padding, count_padding=True):
    """The mean of each window; padding counts as 0, or not at all if not ``count_padding``."""
    axes = tuple(range(len(window)))
    spacing = {"window": window, "stride": stride, "padding": padding, "dilation": (1,) * len(axes)}
    total = sum_(unfold(x, **spacing), axis=axes)
    if count_padding or not any(any(pair) for pair in padding):
        return total / math.prod(window)
    return divide_by_count(total, sum_(unfold(ones_like(x), **spacing), axis=axes))


max_pool = composite(
    "max_pool",
    _max_pool_decompose,
    impl=_max_pool_impl,
    vjp=_max_pool_vjp,
    jvp=_max_pool_jvp,
    batch=_leading_axis_rule("max_pool"),
    onnx="MaxPool",
)
avg_pool = composite(
    "avg_pool", _avg_pool_decompose, batch=_leading_axis_rule("avg_pool"), onnx="AveragePool"
)

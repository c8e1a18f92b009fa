"""Convolutions and pooling along one axis or two, called as in PyTorch.

``stride``, ``dilation`` and ``padding`` are an int, or one int for each axis. ``padding`` may also
be a pair of ints for each axis, ``"valid"`` (no padding), or ``"same"``: the result then has
ceil(n / stride) elements along an axis of n.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast import entry_point
from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.source import name_operation
from letir.errors import LetirError, ShapeError
from letir.eval.array_modules import type_of
from letir.ops.nn.convolution import conv, conv_transpose
from letir.ops.nn.pooling import avg_pool, max_pool
from letir.ops.shape.reshape_and_ravel import reshape

# ---- settings ----


def _ints_per_axis(name: str, value: Any, count: int, option: str) -> tuple:
    """One int for each of ``count`` axes; ``name``, here and below: the called function."""
    result = (value,) * count if isinstance(value, int) else tuple(value)
    if len(result) != count:
        raise ShapeError(
            f"{name}: {option} must be an int or {count} of them, found {value!r}\n"
            "  pass one number for all axes, or one for each"
        )
    return result


def _padding_pairs(
    name: str, padding: Any, sizes: tuple, kernel: tuple, stride: tuple, dilation: tuple
) -> tuple:
    """The padding before and after each axis, as pairs."""
    if padding == "valid":
        padding = 0
    if padding == "same":
        spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
        totals = [
            max((-(n // -s) - 1) * s + span - n, 0)
            for n, s, span in zip(sizes, stride, spans, strict=True)
        ]
        return tuple([(total // 2, total - total // 2) for total in totals])
    if isinstance(padding, str):
        raise ShapeError(
            f"{name}: padding must be 'valid', 'same', an int, or one for each axis, "
            f"found {padding!r}\n"
            "  'valid' is no padding, 'same' gives one result for each position if stride is 1"
        )
    each = _ints_per_axis(name, padding, len(kernel), "padding")
    return tuple([(p, p) if isinstance(p, int) else tuple(p) for p in each])


def _check_rank(name: str, x: Any, axes: int) -> None:
    """Raise ShapeError unless x has ``axes`` axes in addition to the batch and the channels."""
    if x.ndim != axes + 2:
        raise ShapeError(
            f"{name}: x must have shape (N, channels, *sizes) with {axes} sizes, found {x.shape}\n"
            "  add the missing axes with x[None], or use letir.vmap, which adds and removes them"
        )


def _add_bias(name: str, out: Any, bias: Any) -> Any:
    """``out`` plus one number for each channel, if there is a bias."""
    if bias is None:
        return out
    if np.shape(bias) != (out.shape[1],):
        raise ShapeError(
            f"{name}: bias must have one number for each of the {out.shape[1]} output channels, "
            f"found shape {np.shape(bias)}\n  its length is the size of the weight's first axis"
        )
    return out + reshape(bias, (-1, *[1] * (out.ndim - 2)))


def _apply_checked(name: str, record: Primitive, *operands: Any, **attrs: Any) -> Any:
    """Call ``record``, with the shapes of its operands checked outside of traces too."""
    try:
        if not any(isinstance(x, Value) for x in operands):
            record.aval(*map(type_of, operands), **record.complete(attrs))
        return record(*operands, **attrs)
    except LetirError as error:
        name_operation(error, name)
        raise


# ---- convolutions ----


@entry_point
def conv1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: Any = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Any:
    """The sums of products of ``weight`` with a sliding window of x, as in PyTorch.

    ``x``: shape (N, channels, size); ``weight``: (outputs, channels / groups, kernel); ``bias``:
    (outputs,). Result: (N, outputs, places).

    >>> import numpy as np
    >>> conv1d(np.arange(5.0)[None, None], np.array([[[1.0, -1.0]]]), padding=(1,))[0, 0]
    array([ 0., -1., -1., -1., -1.,  4.])
    """
    return _apply_convolution("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


@entry_point
def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: Any = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Any:
    """``conv1d`` along the last two axes, for a kernel of shape (rows, columns).

    >>> import numpy as np
    >>> from letir import nn
    >>> nn.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)))
    array([[[[4., 4.],
             [4., 4.]]]])
    """
    return _apply_convolution("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def _apply_convolution(
    name: str,
    axes: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: int | Sequence[int] | None,
    padding: Any,
    dilation: int | Sequence[int],
    groups: int,
) -> Any:
    """A convolution along the last ``axes`` axes."""
    _check_rank(name, x, axes)
    if np.ndim(weight) != axes + 2:
        raise ShapeError(
            f"{name}: the weight must have shape (outputs, channels / groups, *kernel) with "
            f"{axes} sizes, found {np.shape(weight)}\n  reshape it"
        )
    stride = _ints_per_axis(name, stride, axes, "stride")
    dilation = _ints_per_axis(name, dilation, axes, "dilation")
    padding = _padding_pairs(name, padding, x.shape[2:], weight.shape[2:], stride, dilation)
    spacing = {"stride": stride, "padding": padding, "dilation": dilation}
    out = _apply_checked(name, conv, x, weight, groups=groups, **spacing)
    return _add_bias(name, out, bias)


@entry_point
def conv_transpose1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: Any = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Any:
    """The transpose of ``conv1d``: each element of x times ``weight``, added to the result at the
    positions that ``conv1d`` would read.

    ``x``: shape (N, channels, size); ``weight``: (channels, outputs / groups, kernel). With a
    stride above 1, results of several sizes are possible; ``output_padding`` is added to the
    smallest size.

    >>> import numpy as np
    >>> conv_transpose1d(np.ones((1, 1, 2)), np.array([[[1.0, 2.0]]]), stride=2)[0, 0]
    array([1., 2., 1., 2.])
    """
    options = (stride, padding, output_padding, groups, dilation)
    return _apply_transposed("conv_transpose1d", 1, x, weight, bias, *options)


@entry_point
def conv_transpose2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: Any = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Any:
    """``conv_transpose1d`` along the last two axes.

    >>> import numpy as np
    >>> from letir import nn
    >>> nn.conv_transpose2d(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)))
    array([[[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]]])
    """
    options = (stride, padding, output_padding, groups, dilation)
    return _apply_transposed("conv_transpose2d", 2, x, weight, bias, *options)


def _apply_transposed(
    name: str,
    axes: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: int | Sequence[int] | None,
    padding: Any,
    output_padding: int | Sequence[int],
    groups: int,
    dilation: int | Sequence[int],
) -> Any:
    """The transpose of a convolution along the last ``axes`` axes."""
    _check_rank(name, x, axes)
    if np.ndim(weight) != axes + 2 or weight.shape[0] != x.shape[1]:
        raise ShapeError(
            f"{name}: x of shape {x.shape} and a weight of shape {np.shape(weight)} do not fit\n"
            "  shapes are (N, channels, *sizes) and (channels, outputs / groups, *kernel)"
        )
    stride = _ints_per_axis(name, stride, axes, "stride")
    dilation = _ints_per_axis(name, dilation, axes, "dilation")
    if padding == "same":
        raise ShapeError(
            f"{name}: padding 'same' is ambiguous for a transposed convolution\n"
            "  pass the number of elements to remove on each side"
        )
    padding = _padding_pairs(name, padding, (), weight.shape[2:], stride, dilation)
    more = _ints_per_axis(name, output_padding, axes, "output_padding")
    sizes = tuple(
        [
            (n - 1) * s - low - high + d * (k - 1) + extra + 1
            for n, k, s, d, extra, (low, high) in zip(
                x.shape[2:], weight.shape[2:], stride, dilation, more, padding, strict=True
            )
        ]
    )
    spacing = {"stride": stride, "padding": padding, "dilation": dilation}
    out = _apply_checked(name, conv_transpose, x, weight, sizes=sizes, groups=groups, **spacing)
    return _add_bias(name, out, bias)


# ---- pooling ----


@entry_point
def max_pool1d(
    x: Any,
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Any = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Any:
    """The maximum of each window along the last axis. Ties share the gradient.

    ``stride``: by default the window, so that windows do not overlap. ``ceil_mode``: a last window
    that is only partly within x is included.

    >>> import numpy as np
    >>> max_pool1d(np.array([[[1.0, 3.0, 2.0, 4.0, 0.0]]]), 2)
    array([[[3., 4.]]])
    """
    return _apply_max_pool("max_pool1d", 1, x, window, stride, padding, dilation, ceil_mode)


@entry_point
def max_pool2d(
    x: Any,
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Any = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Any:
    """``max_pool1d`` along the last two axes.

    >>> import numpy as np
    >>> from letir import nn
    >>> nn.max_pool2d(np.arange(16.0).reshape(1, 1, 4, 4), 2)
    array([[[[ 5.,  7.],
             [13., 15.]]]])
    """
    return _apply_max_pool("max_pool2d", 2, x, window, stride, padding, dilation, ceil_mode)


def _apply_max_pool(
    name: str,
    axes: int,
    x: Any,
    window: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: Any,
    dilation: int | Sequence[int],
    ceil_mode: bool,
) -> Any:
    """The maximum of each window along the last ``axes`` axes."""
    window = _ints_per_axis(name, window, axes, "window")
    dilation = _ints_per_axis(name, dilation, axes, "dilation")
    stride = _ints_per_axis(name, window if stride is None else stride, axes, "stride")
    sizes = x.shape[x.ndim - axes :]
    padding = _padding_pairs(name, padding, sizes, window, stride, dilation)
    if ceil_mode:
        settings = zip(sizes, window, stride, dilation, padding, strict=True)
        padding = tuple(
            [
                (low, high + _ceil_mode_padding(n, k, s, d, (low, high)))
                for n, k, s, d, (low, high) in settings
            ]
        )
    return _apply_checked(
        name, max_pool, x, window=window, stride=stride, padding=padding, dilation=dilation
    )


def _ceil_mode_padding(n: int, k: int, s: int, d: int, pair: tuple) -> int:
    """The further padding for the last, partial window of ``ceil_mode``, if it begins within x."""
    low, high = pair
    room = n + low + high - d * (k - 1) - 1
    missing = -room % s
    begins = math.ceil(room / s) * s
    return missing if begins < n + low else 0


@entry_point
def avg_pool1d(
    x: Any,
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Any = 0,
    count_padding: bool = True,
) -> Any:
    """The mean of each window along the last axis; ``count_padding``: padding counts as 0.

    >>> import numpy as np
    >>> avg_pool1d(np.array([[[1.0, 3.0, 2.0, 4.0]]]), 2)
    array([[[2., 3.]]])
    """
    return _apply_avg_pool("avg_pool1d", 1, x, window, stride, padding, count_padding)


@entry_point
def avg_pool2d(
    x: Any,
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Any = 0,
    count_padding: bool = True,
) -> Any:
    """``avg_pool1d`` along the last two axes.

    >>> import numpy as np
    >>> from letir import nn
    >>> nn.avg_pool2d(np.arange(16.0).reshape(1, 1, 4, 4), 2)
    array([[[[ 2.5,  4.5],
             [10.5, 12.5]]]])
    """
    return _apply_avg_pool("avg_pool2d", 2, x, window, stride, padding, count_padding)


def _apply_avg_pool(
    name: str,
    axes: int,
    x: Any,
    window: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: Any,
    count_padding: bool,
) -> Any:
    """The mean of each window along the last ``axes`` axes."""
    window = _ints_per_axis(name, window, axes, "window")
    stride = _ints_per_axis(name, window if stride is None else stride, axes, "stride")
    padding = _padding_pairs(name, padding, x.shape[x.ndim - axes :], window, stride, (1,) * axes)
    spacing = {"window": window, "stride": stride, "padding": padding}
    return _apply_checked(name, avg_pool, x, count_padding=count_padding, **spacing)

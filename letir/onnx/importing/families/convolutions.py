"""Convolutions with every rule of padding, and Col2Im."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.types import Size
from letir.errors import MissingRule, ShapeError
from letir.onnx.importing.families.products import minus_zero_point, quantize_again
from letir.onnx.importing.families.sampling import sample_linear
from letir.onnx.importing.values import broadcast_along_channels, known_sizes
from letir.ops.nn.convolution import conv, conv_transpose
from letir.ops.nn.pooling import fold


def window_options(
    rank: int,
    kernel: Sequence,
    strides: Sequence | None,
    dilations: Sequence | None,
    pads: Sequence | None,
) -> tuple[list, list, list]:
    """(strides, dilations, (before, after) of each axis), by default 1, 1 and 0."""
    pads = list(pads) if pads else [0] * (2 * rank)
    options = list(strides) if strides else [1] * rank, list(dilations) if dilations else [1] * rank
    lengths: dict[str, float] = {
        "kernel_shape": len(kernel),
        "strides": len(options[0]),
        "dilations": len(options[1]),
    }
    lengths["pads"] = len(pads) / 2
    for name, length in lengths.items():
        if length != rank:
            raise ShapeError(
                f"{name} does not fit an array with {rank} axes after the channels\n"
                "  give one number for each of these axes, two for pads"
            )
    if min([*options[0], *options[1], *kernel], default=1) < 1:
        raise ShapeError(
            "kernel_shape, strides and dilations must be at least 1\n  correct the node"
        )
    return *options, list(zip(pads[:rank], pads[rank:], strict=True))


def same_pads(
    sizes: Sequence, kernel: Sequence, strides: Sequence, dilations: Sequence, auto_pad: str
) -> list[tuple]:
    """The padding with which the result has ceil(size / stride) places."""
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise MissingRule(f"there is no auto_pad {auto_pad!r}\n  use NOTSET, VALID or SAME_UPPER")
    result = []
    for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        if type(n) is Size and s != 1:
            raise MissingRule(
                f"auto_pad {auto_pad} needs the size {n}, which is not known\n"
                "  give it a number: letir.onnx.load(model, sizes={...})"
            )
        rest = 0 if s == 1 else (-(-n // s) - 1) * s - n + 1
        total = max(d * (k - 1) + rest, 0)
        small = total // 2
        result.append(
            (small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small)
        )
    return result


def _conv(
    x: Any,
    w: Any,
    bias: Any = None,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """Conv: sums of products of a kernel with patches of x."""
    kernel, rank = list(w.shape[2:]), x.ndim - 2
    if rank < 1:
        raise ShapeError(
            f"Conv: x must have the axes (examples, channels, sizes), found {x.shape}\n"
            "  reshape x before the node"
        )
    if kernel_shape and list(kernel_shape) != kernel:
        raise ShapeError(
            f"kernel_shape {kernel_shape} does not fit a weight of shape {w.shape}\n"
            "  leave the attribute out"
        )
    s, d, padding = window_options(rank, kernel, strides, dilations, pads)
    if auto_pad not in ("NOTSET", "VALID", ""):
        padding = same_pads(x.shape[2:], kernel, s, d, auto_pad)
    result = conv(x, w, stride=tuple(s), padding=tuple(padding), dilation=tuple(d), groups=group)
    return result if bias is None else result + broadcast_along_channels(bias, result.ndim)


def _transposed_padding(
    x: Any,
    kernel: Sequence,
    s: list,
    d: list,
    extra: Sequence,
    padding: list,
    sizes: Any,
    auto: str,
) -> tuple[list, list]:
    """(the sizes of the result, the padding) of a transposed convolution."""
    full = [
        a * (n - 1) + e + b * (k - 1) + 1
        for a, n, e, b, k in zip(s, x.shape[2:], extra, d, kernel, strict=True)
    ]
    if not sizes and auto in ("NOTSET", "VALID", ""):
        return [n - a - b for n, (a, b) in zip(full, padding, strict=True)], padding
    sizes = list(sizes or [n * a for n, a in zip(x.shape[2:], s, strict=True)])[-len(kernel) :]
    result = []
    for n, m in zip(full, sizes, strict=True):
        total = max(n - m, 0)
        first = total // 2 if auto == "SAME_UPPER" else total - total // 2
        result.append((first, n - m - first))
    return sizes, result


def _conv_transpose(
    x: Any,
    w: Any,
    bias: Any = None,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    output_padding: Any = None,
    output_shape: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """ConvTranspose: the derivative of a convolution with respect to its input."""
    kernel, rank = list(w.shape[2:]), x.ndim - 2
    s, d, padding = window_options(rank, kernel, strides, dilations, pads)
    extra = list(output_padding or [0] * rank)
    sizes, padding = _transposed_padding(x, kernel, s, d, extra, padding, output_shape, auto_pad)
    options: dict[str, Any] = {"stride": tuple(s), "dilation": tuple(d), "groups": group}
    is_plain = all(min(pair) >= 0 for pair in padding)
    if is_plain and all(e < a for e, a in zip(extra, s, strict=True)):
        result = conv_transpose(x, w, sizes=tuple(sizes), padding=tuple(padding), **options)
    else:  # negative padding: zeros beyond the ends
        full = tuple(
            a * (n - 1) + b * (k - 1) + 1
            for a, n, b, k in zip(s, x.shape[2:], d, kernel, strict=True)
        )
        result = conv_transpose(x, w, sizes=full, padding=((0, 0),) * rank, **options)
        after = [e - high for e, (_, high) in zip(extra, padding, strict=True)]
        width = [(max(-low, 0), max(a, 0)) for (low, _), a in zip(padding, after, strict=True)]
        inside = tuple(
            slice(max(low, 0), None if a >= 0 else a)
            for (low, _), a in zip(padding, after, strict=True)
        )
        result = np.pad(result[(slice(None), slice(None), *inside)], [(0, 0), (0, 0), *width])
    return result if bias is None else result + broadcast_along_channels(bias, result.ndim)


# ---- quantised ----


def _conv_integer(x: Any, w: Any, x_zero: Any = None, w_zero: Any = None, **attrs: Any) -> Any:
    """ConvInteger: a convolution of integers without their zero points."""
    return _conv(minus_zero_point(x, x_zero, 1), minus_zero_point(w, w_zero, 0), **attrs)


def _conv_quantized(
    x: Any,
    x_scale: Any,
    x_zero: Any,
    w: Any,
    w_scale: Any,
    w_zero: Any,
    y_scale: Any,
    y_zero: Any,
    bias: Any = None,
    **attrs: Any,
) -> Any:
    """QLinearConv: a convolution of quantised numbers, quantised again."""
    total = _conv_integer(x, w, x_zero, w_zero, **attrs)
    if bias is not None:
        total = total + broadcast_along_channels(bias, x.ndim)
    scale = x_scale * (broadcast_along_channels(w_scale, x.ndim) if w_scale.ndim == 1 else w_scale)
    return quantize_again(total.astype(np.float32) * scale, y_scale, y_zero)


# ---- columns, offsets ----


def _columns_to_image(
    x: Any,
    image_shape: Any,
    block_shape: Any,
    dilations: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """Col2Im: the sums of overlapping blocks, which are columns of x."""
    sizes = known_sizes(image_shape, "Col2Im: the sizes of the image")
    block = known_sizes(block_shape, "Col2Im: the sizes of a block")
    s, d, padding = window_options(len(sizes), block, strides, dilations, pads)
    places = [
        (n + low + high - b * (k - 1) - 1) // a + 1
        for n, k, a, b, (low, high) in zip(sizes, block, s, d, padding, strict=True)
    ]
    examples, channels = x.shape[0], x.shape[1] // math.prod(block)
    blocks = x.reshape((examples, channels, *block, *places))
    rank = len(sizes)
    order = (*range(2, 2 + rank), 0, 1, *range(2 + rank, 2 + 2 * rank))
    return fold(
        np.transpose(blocks, order),
        sizes=tuple(sizes),
        stride=tuple(s),
        padding=tuple(padding),
        dilation=tuple(d),
    )


def _deformed_conv(
    x: Any,
    w: Any,
    offset: Any,
    bias: Any = None,
    mask: Any = None,
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    offset_group: int = 1,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """DeformConv: a convolution whose patches are read at places that an array moves."""
    kernel, rank = list(w.shape[2:]), x.ndim - 2
    s, d, padding = window_options(rank, kernel, strides, dilations, pads)
    examples, channels, places, taps = x.shape[0], x.shape[1], offset.shape[2:], math.prod(kernel)
    moved = offset.reshape((examples, offset_group, taps, rank, *places))
    grids = np.meshgrid(*[np.arange(k) * b for k, b in zip(kernel, d, strict=True)], indexing="ij")
    starts = np.meshgrid(
        *[np.arange(n) * a - low for n, a, (low, _) in zip(places, s, padding, strict=True)],
        indexing="ij",
    )
    at = []
    for i in range(rank):
        fixed = grids[i].reshape(taps, *[1] * rank) + starts[i]
        at.append(moved[:, :, :, i] + fixed.astype(x.dtype))
    each = channels // offset_group
    joined = x.reshape((examples * offset_group, each, *x.shape[2:]))
    coordinates = [c.reshape((examples * offset_group, taps, *places)) for c in at]
    samples = sample_linear(joined, coordinates)  # (examples * groups, channels, taps, places)
    if mask is not None:
        samples = samples * mask.reshape((examples * offset_group, 1, taps, *places))
    samples = samples.reshape((examples, group, channels // group * taps, math.prod(places)))
    rows = w.reshape((group, w.shape[0] // group, channels // group * taps))
    result = (rows @ samples).reshape((examples, w.shape[0], *places))
    return result if bias is None else result + broadcast_along_channels(bias, result.ndim)


OPERATORS: dict[str, Any] = {
    **{"Conv": _conv, "ConvTranspose": _conv_transpose, "ConvInteger": _conv_integer},
    **{"QLinearConv": _conv_quantized, "Col2Im": _columns_to_image, "DeformConv": _deformed_conv},
}

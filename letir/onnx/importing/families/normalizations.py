"""Normalisation by means and variances."""

import math
from typing import Any

import numpy as np

from letir.onnx.importing.values import axis_of, broadcast_along_channels, is_known, number_like
from letir.ops.nn.normalization import batch_norm, layer_norm, rms_norm


def _batch_normalization(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
    is_test: int = 1,
    consumed_inputs: Any = None,
) -> Any:
    """BatchNormalization: by running statistics, or in training by the batch's own."""
    if not training_mode:
        if is_known([scale, bias, mean, variance]):
            factor = scale / np.sqrt(variance + number_like(epsilon, variance))
            shift = bias - mean * factor
            factor, shift = [
                broadcast_along_channels(v, x.ndim).astype(x.dtype) for v in (factor, shift)
            ]
            return x * factor + shift
        result = batch_norm(x, mean, variance, scale, bias, train=False, eps=epsilon)[0]
        return result.astype(x.dtype)
    axes = (0, *range(2, x.ndim))
    middle, spread = np.mean(x, axis=axes), np.var(x, axis=axes)
    parts = [broadcast_along_channels(v, x.ndim) for v in (middle, spread, scale, bias)]
    y = parts[2] * (x - parts[0]) / np.sqrt(parts[1] + number_like(epsilon, x)) + parts[3]
    old_share, new_share = number_like(momentum, mean), number_like(1 - momentum, mean)
    new_mean = mean * old_share + middle.astype(mean.dtype) * new_share
    return (
        y.astype(x.dtype),
        new_mean,
        variance * old_share + spread.astype(mean.dtype) * new_share,
    )


def _instance_normalization(x: Any, scale: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    """InstanceNormalization: each channel of each example."""
    axes = tuple(range(2, x.ndim))
    middle = np.mean(x, axis=axes, keepdims=True)
    spread = np.mean(np.square(x - middle), axis=axes, keepdims=True)
    normalized = (x - middle) / np.sqrt(spread + number_like(epsilon, x))
    return normalized * broadcast_along_channels(scale, x.ndim) + broadcast_along_channels(
        bias, x.ndim
    )


def _layer_normalization(
    x: Any,
    scale: Any = None,
    bias: Any = None,
    *,
    outputs: int,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    """LayerNormalization: (the result, the means, the inverse deviations) over the last axes."""
    axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
    wide = x.astype(np.float32) if x.dtype == np.float16 and stash_type == 1 else x
    fits = all(v is None or tuple(v.shape) == tuple(x.shape[axes[0] :]) for v in (scale, bias))
    if outputs < 2 and fits and wide is x:
        return layer_norm(x, scale, bias, axis=axes, eps=epsilon)
    middle = np.mean(wide, axis=axes, keepdims=True)
    centered = wide - middle
    spread = np.mean(np.square(centered), axis=axes, keepdims=True)
    inverse = number_like(1, wide) / np.sqrt(spread + number_like(epsilon, wide))
    normalized = (centered * inverse).astype(x.dtype)
    normalized = normalized if scale is None else normalized * scale
    return normalized if bias is None else normalized + bias, middle, inverse


def _rms_normalization(
    x: Any, scale: Any, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    """RMSNormalization: x divided by the root of its mean square over the last axes."""
    axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
    wide = x.astype(np.float32) if x.dtype == np.float16 and stash_type == 1 else x
    if tuple(scale.shape) == tuple(x.shape[axes[0] :]) and wide is x and scale.dtype == x.dtype:
        return rms_norm(x, scale, axis=axes, eps=epsilon)
    return rms_norm(wide, axis=axes, eps=epsilon).astype(scale.dtype) * scale


def _group_normalization(
    x: Any,
    scale: Any,
    bias: Any,
    num_groups: int,
    opset: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    """GroupNormalization: each group of channels; before version 21 with a scale for each group."""
    shape, wide = x.shape, x.astype(np.float32) if x.dtype == np.float16 else x
    each = shape[1] // num_groups * math.prod(shape[2:])
    grouped = wide.reshape((shape[0], num_groups, each))
    middle = np.mean(grouped, axis=2, keepdims=True)
    spread = np.mean(np.square(grouped - middle), axis=2, keepdims=True)
    result = (grouped - middle) / np.sqrt(spread + number_like(epsilon, grouped))
    if opset < 21:
        result = result.astype(x.dtype) * scale[:, None] + bias[:, None]
        return result.reshape(shape)
    result = result.reshape(shape).astype(x.dtype)
    return result * broadcast_along_channels(scale, x.ndim) + broadcast_along_channels(bias, x.ndim)


def _local_response(
    x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Any:
    """LRN: x divided by a power of the sum of squares in neighbouring channels."""
    channels = x.shape[1]
    low, high = min((size - 1) // 2, channels), min(size // 2, channels)
    width = [(0, 0), (low, high), *[(0, 0)] * (x.ndim - 2)]
    squares = np.pad(np.square(x), width)
    total = squares[:, :channels]
    for i in range(1, low + high + 1):
        total = total + squares[:, i : i + channels]
    return x / (number_like(bias, x) + number_like(alpha / size, x) * total) ** number_like(beta, x)


OPERATORS: dict[str, Any] = {
    "BatchNormalization": _batch_normalization,
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "RMSNormalization": _rms_normalization,
    "GroupNormalization": _group_normalization,
    "LRN": _local_response,
}

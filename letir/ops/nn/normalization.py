"""Normalisations: batch_norm, layer_norm, group_norm, rms_norm.

Composites without rules of their own: their decompositions are differentiated, to any order
[semantics.md D11].
"""

import math

from letir.errors import ShapeError
from letir.ops.define.records import cast_cotangent, composite
from letir.ops.elementwise.ufuncs import maximum, sqrt, square
from letir.ops.reductions.reductions import count_elements, mean
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.transpose import normalize_axes


def _standardize(x, axes: tuple, eps: float):
    """(x normalised to mean 0 and variance 1 along ``axes``, its mean, its variance).

    Mean and variance keep the reduced axes with length 1.
    """
    middle = mean(x, axis=axes, keepdims=True)
    centered = x - middle
    # not the mean of squares minus the squared mean, which suffers cancellation
    variance = mean(square(centered), axis=axes, keepdims=True)
    return centered / sqrt(variance + eps), middle, variance


def _scale_and_shift(x, weight, bias, axes: tuple):
    """``x * weight + bias``, either of which may be None; their axes are the ``axes`` of x."""
    for operand, combine in ((weight, lambda a, b: a * b), (bias, lambda a, b: a + b)):
        if operand is not None:
            x = combine(x, _align_axes(operand, axes, x.ndim))
    return x


def _align_axes(operand, axes: tuple, ndim: int):
    """``operand``, whose axes are the ``axes`` of an array of rank ``ndim``, made to broadcast."""
    if operand.ndim != len(axes):
        raise ShapeError(
            f"a weight of shape {operand.shape} does not fit {len(axes)} normalised axes: {axes}\n"
            "  give the weight the shape of the last axes of x"
        )
    if axes == tuple(range(ndim - len(axes), ndim)):  # broadcasts already
        return operand
    sizes = dict(zip(axes, operand.shape, strict=True))
    return reshape(operand, tuple(sizes.get(i, 1) for i in range(ndim)))


# ---- statistics over the batch ----


def _batch_norm_decompose(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    *,
    train=True,
    momentum=0.1,
    eps=1e-5,
):
    """(x normalised for each channel, the new running mean, the new running variance).

    ``x``: shape (N, channels, *sizes). With ``train`` x is normalised by the statistics of the
    batch, and the running statistics move towards these by ``momentum`` (for the variance, towards
    the unbiased estimate); if there are none, the batch's are returned. Without ``train`` x is
    normalised by the running statistics, which are returned unchanged.

    Ioffe and Szegedy, Batch normalization, ICML 2015.

    >>> import numpy as np
    >>> x = np.array([[1.0, 0.0], [3.0, 0.0]])
    >>> out, mean, variance = batch_norm(x, np.zeros(2), np.ones(2), momentum=0.5)
    >>> out.round(3), mean, variance
    (array([[-1.,  0.],
           [ 1.,  0.]]), array([1., 0.]), array([1.5, 0.5]))
    """
    if x.ndim < 2:
        raise ShapeError(
            f"batch_norm: x must have shape (N, channels, *sizes), found {x.shape}\n"
            "  add an axis for the examples: x[None]"
        )
    channels = (1,)
    if not train:
        if running_mean is None or running_var is None:
            raise ShapeError(
                "batch_norm: without train it needs the running mean and variance\n"
                "  pass batch_norm(x, mean, var, train=False)"
            )
        scale = _align_axes(sqrt(running_var + eps), channels, x.ndim)
        normalized = (x - _align_axes(running_mean, channels, x.ndim)) / scale
        return (
            _scale_and_shift(normalized, weight, bias, channels),
            running_mean * 1,
            running_var * 1,
        )
    axes = (0, *range(2, x.ndim))
    normalized, middle, variance = _standardize(x, axes, eps)
    return (
        _scale_and_shift(normalized, weight, bias, channels),
        _update_running(running_mean, reshape(middle, (-1,)), momentum),
        _update_running(
            running_var, reshape(_unbiased_variance(variance, x, axes), (-1,)), momentum
        ),
    )


def _unbiased_variance(variance, x, axes: tuple):
    """The unbiased variance, divided by n - 1, from one that was divided by n."""
    n = count_elements(variance, x, (), axes, True)
    if type(n) is int:
        return variance * (n / max(n - 1, 1))
    return cast_cotangent(variance * (n / maximum(n - 1, 1)), variance.dtype)


def _update_running(old, new, momentum: float):
    """The weighted mean of old and new statistics: ``momentum`` is the weight of the new one."""
    return new if old is None else old * (1 - momentum) + new * momentum


batch_norm = composite(
    "batch_norm", _batch_norm_decompose, results=lambda **_: 3, onnx="BatchNormalization"
)

# ---- statistics of each example ----


def _layer_norm_decompose(x, weight=None, bias=None, *, axis=-1, eps=1e-5):
    """x normalised to mean 0 and variance 1 along ``axis``, times ``weight`` plus ``bias``.

    ``axis``: an int or a tuple; ``weight`` and ``bias`` have these axes. Ba, Kiros and Hinton,
    Layer normalization, arXiv:1607.06450.

    >>> import numpy as np
    >>> layer_norm(np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])).round(3)
    array([[-1.225,  0.   ,  1.225],
           [-1.225,  0.   ,  1.225]])
    """
    axes = normalize_axes(axis, x.ndim)
    return _scale_and_shift(_standardize(x, axes, eps)[0], weight, bias, axes)


def _rms_norm_decompose(x, weight=None, *, axis=-1, eps=1e-6):
    """x divided by the root of its mean square along ``axis``, times ``weight``.

    Zhang and Sennrich, Root mean square layer normalization, NeurIPS 2019.

    >>> import numpy as np
    >>> rms_norm(np.array([1.0, -1.0, 7.0, 7.0])).round(3)
    array([ 0.2, -0.2,  1.4,  1.4])
    """
    axes = normalize_axes(axis, x.ndim)
    scale = sqrt(mean(square(x), axis=axes, keepdims=True) + eps)
    return _scale_and_shift(x / scale, weight, None, axes)


def _group_norm_decompose(x, weight=None, bias=None, *, groups, eps=1e-5):
    """Normalise each of ``groups`` groups of channels, over its channels and the sizes.

    ``x``: shape (N, channels, *sizes); ``weight`` and ``bias``: shape (channels,). Wu and He, Group
    normalization, ECCV 2018.

    >>> import numpy as np
    >>> group_norm(np.array([[1.0, 3.0, 10.0, 30.0]]), groups=2).round(3)
    array([[-1.,  1., -1.,  1.]])
    """
    if x.ndim < 2 or x.shape[1] % groups:
        raise ShapeError(
            f"group_norm: {groups} groups do not divide the channels of {x.shape}\n"
            "  choose a number of groups that divides the channels"
        )
    examples, channels, *sizes = x.shape
    each = channels // groups * math.prod(sizes)
    grouped = reshape(x, (examples if type(examples) is int else -1, groups, each))
    result = reshape(_standardize(grouped, (2,), eps)[0], x)
    return _scale_and_shift(result, weight, bias, (1,))


layer_norm = composite("layer_norm", _layer_norm_decompose, onnx="LayerNormalization")
rms_norm = composite("rms_norm", _rms_norm_decompose, onnx="RMSNormalization")
group_norm = composite("group_norm", _group_norm_decompose, onnx="GroupNormalization")

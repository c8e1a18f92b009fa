"""Pooling: maxima, means and norms of windows, with every rule of padding."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.types import Size
from letir.errors import ShapeError
from letir.onnx.importing.families.convolutions import same_pads, window_options
from letir.onnx.importing.families.indexing import scatter_updates
from letir.onnx.importing.values import as_traced, known_sizes, number_like
from letir.ops.nn.pooling import avg_pool, max_pool, unfold
from letir.tracing.tracer import Tracer


@frozen
class Windows:
    """The windows of a pooling operator.

    ``declared``: the padding that the model states; ``padding``: the same plus the elements that
    the last window needs if sizes are rounded up.
    """

    kernel: tuple
    stride: tuple
    dilation: tuple
    declared: tuple
    padding: tuple

    @classmethod
    def from_sizes(
        cls,
        sizes: Sequence,
        kernel: Any,
        strides: Any,
        dilations: Any,
        pads: Any,
        auto: str,
        ceil: int,
    ) -> "Windows":
        """The windows that the attributes of an operator describe."""
        s, d, padding = window_options(len(sizes), kernel, strides, dilations, pads)
        if auto not in ("NOTSET", "VALID", ""):
            padding = same_pads(sizes, kernel, s, d, auto)
        padded = []
        for n, k, a, b, (low, high) in zip(sizes, kernel, s, d, padding, strict=True):
            if not ceil:
                padded.append((low, high))
                continue
            if type(n) is Size:
                raise ShapeError(
                    f"ceil_mode of a pooling operator with the size {n}, which is not known\n"
                    "  give the size a number: letir.onnx.load(model, sizes={...})"
                )
            reach = b * (k - 1) + 1
            count = -(-(n + low + high - reach) // a) + 1
            # a window that would begin in the padding at the end does not count
            count -= (count - 1) * a >= n + low
            padded.append((low, max(high, (count - 1) * a + reach - n - low)))
        return cls(tuple(kernel), tuple(s), tuple(d), tuple(padding), tuple(padded))

    def spacing(self) -> dict[str, Any]:
        """The arguments of ``unfold`` except for the value of the padding."""
        return {
            "window": self.kernel,
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
        }

    @property
    def axes(self) -> tuple:
        """The axes of an unfolded array that are in a window."""
        return tuple(range(len(self.kernel)))


def _max_pool(
    x: Any,
    kernel_shape: Any,
    outputs: int,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Any = None,
    pads: Any = None,
    storage_order: int = 0,
    strides: Any = None,
) -> Any:
    """MaxPool: the maximum of each window, and its position in the flat array on request."""
    sizes = x.shape[2:]
    windows = Windows.from_sizes(sizes, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    result = max_pool(x, **windows.spacing())
    if outputs < 2:
        return result
    lowest = -math.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    patches = unfold(x, value=lowest, **windows.spacing())
    flat = patches.reshape((math.prod(windows.kernel), *patches.shape[len(windows.kernel) :]))
    best = np.expand_dims(np.argmax(flat, axis=0), 0)
    count = math.prod(sizes)
    inside = np.arange(count).reshape(sizes[::-1]).T if storage_order else np.arange(count)
    inside = inside.reshape(sizes)
    places = unfold(inside[None, None], value=0, **windows.spacing())
    places = places.reshape((math.prod(windows.kernel), *places.shape[len(windows.kernel) :]))
    chosen = _take_first(np.broadcast_to(places, flat.shape), best)
    images = np.arange(x.shape[0] * x.shape[1]) * math.prod(sizes)
    return result, chosen + images.reshape((*x.shape[:2], *[1] * len(sizes)))


def _take_first(x: Any, index: Any) -> Any:
    """The elements at ``index`` of the first axis."""
    x = as_traced(np.array(x)) if type(index) is Tracer and type(x) is np.ndarray else x
    return np.take_along_axis(x, index, 0)[0]


def _mean_pool(
    x: Any,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """AveragePool: the mean of each window, without padding unless ``count_include_pad``."""
    sizes = x.shape[2:]
    windows = Windows.from_sizes(sizes, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    spacing = windows.spacing()
    if windows.declared == windows.padding and set(windows.dilation) == {1}:
        del spacing["dilation"]
        return avg_pool(x, count_padding=bool(count_include_pad), **spacing)
    total = np.sum(unfold(x, **spacing), axis=windows.axes)
    ones = np.ones((1, 1, *sizes), x.dtype)
    if count_include_pad:
        ones = np.pad(ones, [(0, 0), (0, 0), *windows.declared], constant_values=1)
        pairs = zip(windows.padding, windows.declared, strict=True)
        spacing["padding"] = tuple((0, high - declared) for (_, high), (_, declared) in pairs)
    return total / np.sum(unfold(ones, **spacing), axis=windows.axes)


def _norm_pool(
    x: Any,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Any = None,
    p: int = 2,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """LpPool: the p-norm of each window."""
    windows = Windows.from_sizes(
        x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode
    )
    return _p_norm(unfold(x, **windows.spacing()), p, windows.axes, False)


def _p_norm(x: Any, p: float, axes: tuple, keepdims: bool) -> Any:
    """The p-norm along axes."""
    if p == 1:
        return np.sum(np.abs(x), axis=axes, keepdims=keepdims)
    if p == 2:
        return np.sqrt(np.sum(np.square(x), axis=axes, keepdims=keepdims))
    total = np.sum(np.abs(x) ** number_like(p, x), axis=axes, keepdims=keepdims)
    return total ** number_like(1 / p, x)


def _global_operator(f: Any) -> Any:
    """The operator that reduces all axes after the channels."""

    def run(x: Any, **attrs: Any) -> Any:
        return f(x, tuple(range(2, x.ndim)), **attrs)

    return run


def _global_mean(x: Any, axes: tuple) -> Any:
    """GlobalAveragePool: the mean of each channel."""
    return np.mean(x, axis=axes, keepdims=True)


def _global_max(x: Any, axes: tuple) -> Any:
    """GlobalMaxPool: the maximum of each channel."""
    return np.max(x, axis=axes, keepdims=True)


def _global_norm(x: Any, axes: tuple, p: int = 2) -> Any:
    """GlobalLpPool: the p-norm of each channel."""
    return _p_norm(x, p, axes, True)


def _max_unpool(
    x: Any,
    indices: Any,
    output_shape: Any = None,
    *,
    kernel_shape: Any,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """MaxUnpool: the maxima at the places that MaxPool found, and 0 elsewhere."""
    s, _, padding = window_options(x.ndim - 2, kernel_shape, strides, None, pads)
    sizes = [
        (n - 1) * a + k - low - high
        for n, k, a, (low, high) in zip(x.shape[2:], kernel_shape, s, padding, strict=True)
    ]
    shape = (*x.shape[:2], *sizes)
    empty = np.zeros(math.prod(shape), x.dtype)
    result = scatter_updates(empty, (indices.reshape((-1,)),), x.reshape((-1,)), "none").reshape(
        shape
    )
    if output_shape is None:
        return result
    full_shape = known_sizes(output_shape, "MaxUnpool: the shape")
    if any(m < n for m, n in zip(full_shape, shape, strict=True)):
        raise ShapeError(
            f"MaxUnpool: the result of shape {shape} does not fit into the shape {full_shape}\n"
            "  pass a larger output_shape"
        )
    return np.pad(result, [(0, m - n) for m, n in zip(full_shape, shape, strict=True)])


def _norm_along(x: Any, axis: int = -1, p: int = 2) -> Any:
    """LpNormalization: x divided by its norm along an axis; 0 where the norm is 0."""
    norm = _p_norm(x, p, (axis % x.ndim,), True)
    return np.where(norm == 0, number_like(0, x), x / np.where(norm == 0, number_like(1, x), norm))


OPERATORS: dict[str, Any] = {
    **{"MaxPool": _max_pool, "AveragePool": _mean_pool, "LpPool": _norm_pool},
    **{
        "GlobalAveragePool": _global_operator(_global_mean),
        "GlobalMaxPool": _global_operator(_global_max),
    },
    **{"GlobalLpPool": _global_operator(_global_norm), "MaxUnpool": _max_unpool},
    **{"LpNormalization": _norm_along},
}

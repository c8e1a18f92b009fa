"""``scipy.ndimage`` for traced values: filters, and shifts by whole numbers.

Each filter pads the array according to ``mode`` and takes weighted sums, or order statistics, of
sliding windows. The result has the dtype of the input, as in SciPy.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ops.shape.transpose import normalize_axes
from letir.scipy.image_order_statistics import (
    map_coordinates as map_coordinates,
)
from letir.scipy.image_order_statistics import (
    maximum_filter as maximum_filter,
)
from letir.scipy.image_order_statistics import (
    median_filter as median_filter,
)
from letir.scipy.image_order_statistics import (
    minimum_filter as minimum_filter,
)
from letir.scipy.image_order_statistics import (
    shift as shift,
)
from letir.scipy.image_windows import (
    cast_to_double,
    dtype_of_output,
    filtered_axes,
    one_per_axis,
    refuse_rounding,
    shape_along,
    store_result,
    windows_of,
)
from letir.scipy.namespace import drop_in, fallback_getattr, refusal_error
from letir.tracing.operands import traced_or_array

__getattr__ = fallback_getattr("ndimage")

# ---- weighted sums ----


def _correlate_weights(input, weights, output, mode, cval, origin, axes, convolves: bool) -> Any:
    """The correlation, or the convolution, of an array with weights of the same rank."""
    x, w = traced_or_array(input), traced_or_array(weights)
    if np.result_type(x, w).kind in "fc":
        refuse_rounding("weighted sums", x, output)
    chosen = filtered_axes(axes, x.ndim)
    if w.ndim != len(chosen):
        raise RuntimeError("filter weights array has incorrect shape.")
    origins = [operator.index(o) for o in one_per_axis(origin, len(chosen))]
    if convolves:
        w = w[(slice(None, None, -1),) * w.ndim]
        at = dict(zip(sorted(chosen), w.shape, strict=True))
        origins = [-o - (at[a] % 2 == 0) for a, o in zip(chosen, origins, strict=True)]
    shape = shape_along(list(w.shape), sorted(chosen), x.ndim, 1)  # SciPy sorts the axes of weights
    windows = windows_of(
        cast_to_double(x), shape, shape_along(origins, chosen, x.ndim, 0), mode, cval
    )
    result = np.tensordot(windows, cast_to_double(w).reshape(shape), x.ndim)
    return store_result(result, x, output)


@drop_in("ndimage")
def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The correlation of an array with weights."""
    return _correlate_weights(input, weights, output, mode, cval, origin, axes, convolves=False)


@drop_in("ndimage")
def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The convolution of an array with weights."""
    return _correlate_weights(input, weights, output, mode, cval, origin, axes, convolves=True)


@drop_in("ndimage")
def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The correlation along one axis."""
    return _correlate_weights(input, weights, output, mode, cval, origin, (axis,), convolves=False)


@drop_in("ndimage")
def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The convolution along one axis."""
    return _correlate_weights(input, weights, output, mode, cval, origin, (axis,), convolves=True)


# ---- Gaussian filters ----


def _gaussian_weights(sigma: Any, order: int, radius: int) -> Any:
    """The weights of a Gaussian, or of its derivative of this order, for a convolution."""
    x = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 / (sigma * sigma) * x**2)
    weights = weights / weights.sum()
    # the factor of the derivative is a polynomial p: (p phi)' = (p' - p x / sigma^2) phi
    powers: list = [1.0]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(powers)][1:]
        lowered = [-c / (sigma * sigma) for c in powers]
        powers = [
            (slope[k] if k < len(slope) else 0.0) + (lowered[k - 1] if k else 0.0)
            for k in range(len(powers) + 1)
        ]
    if order == 0:
        return weights
    return sum(c * x**k for k, c in enumerate(powers)) * weights


@drop_in("ndimage")
def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
) -> Any:
    """A Gaussian filter along one axis; a traced ``sigma`` guards the radius."""
    if operator.index(order) < 0:
        raise ValueError("order must be non-negative")
    reach = int(truncate * sigma + 0.5) if radius is None else operator.index(radius)
    weights = _gaussian_weights(sigma, order, reach)[::-1]
    return correlate1d(input, weights, axis, output, mode, cval, 0)


@drop_in("ndimage")
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """A Gaussian filter along all axes, one after the other."""
    x = traced_or_array(input)
    chosen = filtered_axes(axes, x.ndim)
    per_axis = [one_per_axis(value, len(chosen)) for value in (sigma, order, mode, radius)]
    result, kind = x, dtype_of_output(output)
    for axis, width, degree, border, reach in zip(chosen, *per_axis, strict=True):
        if width > 1e-15:
            result = gaussian_filter1d(
                result, width, axis, degree, kind, border, cval, truncate, radius=reach
            )
    return store_result(result if result is not x else x.copy(), x, output)


def _sum_along_axes(input, output, mode, axes, second_derivative, combine=lambda x: x) -> Any:
    """The sum of a derivative along each axis."""
    x = traced_or_array(input)
    chosen = filtered_axes(axes, x.ndim)
    modes = one_per_axis(mode, len(chosen))
    kind = dtype_of_output(output)
    parts = [combine(second_derivative(x, a, m, kind)) for a, m in zip(chosen, modes, strict=True)]
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return store_result(result, x, output)


@drop_in("ndimage")
def laplace(
    input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Any:
    """The Laplacian by second differences."""

    def second(x, axis, border, kind):
        return correlate1d(x, [1, -2, 1], axis, kind, border, cval, 0)

    return _sum_along_axes(input, output, mode, axes, second)


def _gaussian_derivative(
    degree: int, input: Any, sigma: Any, axes: Any, cval: Any, options: dict
) -> Callable:
    """The filter by a derivative of this degree of a Gaussian along one axis, smooth along the
    other ``axes``: a function of (array, axis, mode, dtype of the result).
    """
    chosen = filtered_axes(axes, traced_or_array(input).ndim)

    def derivative(x, axis, border, kind):
        order = [degree * (a == axis) for a in chosen]
        return gaussian_filter(x, sigma, order, kind, border, cval, axes=chosen, **options)

    return derivative


@drop_in("ndimage")
def gaussian_laplace(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **options: Any,
) -> Any:
    """The Laplacian by second derivatives of a Gaussian."""
    second = _gaussian_derivative(2, input, sigma, axes, cval, options)
    return _sum_along_axes(input, output, mode, axes, second)


@drop_in("ndimage")
def gaussian_gradient_magnitude(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **options: Any,
) -> Any:
    """The length of the gradient, computed with derivatives of a Gaussian."""
    x = traced_or_array(input)
    first = _gaussian_derivative(1, x, sigma, axes, cval, options)
    result = _sum_along_axes(x, dtype_of_output(output), mode, axes, first, np.square)
    return store_result(np.sqrt(result), x, output)


# ---- other separable filters ----


@drop_in("ndimage")
def uniform_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The mean of a window along one axis."""
    refuse_rounding("means of windows", traced_or_array(input), output)
    n = operator.index(size)
    return correlate1d(input, np.full(n, 1.0 / n), axis, output, mode, cval, origin)


@drop_in("ndimage")
def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The mean of a window, along one axis after the other."""
    x = traced_or_array(input)
    chosen = filtered_axes(axes, x.ndim)
    per_axis = [one_per_axis(value, len(chosen)) for value in (size, mode, origin)]
    result = x
    for axis, n, border, start in zip(chosen, *per_axis, strict=True):
        if n > 1:
            result = uniform_filter1d(result, n, axis, dtype_of_output(output), border, cval, start)
    return store_result(result if result is not x else x.copy(), x, output)


def _edge_filter(input, axis, output, mode, cval, smoothing: list) -> Any:
    """Differences along one axis, smoothed along all others."""
    x = traced_or_array(input)
    if x.dtype == np.uint64:  # the smoothed numbers may not fit
        raise refusal_error("ndimage.sobel and prewitt", "uint64 is not supported")
    modes = one_per_axis(mode, x.ndim)
    (axis,) = normalize_axes(axis, x.ndim)
    kind = dtype_of_output(output)
    result = correlate1d(x, [-1, 0, 1], axis, kind, modes[axis], cval, 0)
    for other in range(x.ndim):
        if other != axis:
            result = correlate1d(result, smoothing, other, kind, modes[other], cval, 0)
    return store_result(result, x, output)


@drop_in("ndimage")
def sobel(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Any:
    """The Sobel filter."""
    return _edge_filter(input, axis, output, mode, cval, [1, 2, 1])


@drop_in("ndimage")
def prewitt(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Any:
    """The Prewitt filter."""
    return _edge_filter(input, axis, output, mode, cval, [1, 1, 1])

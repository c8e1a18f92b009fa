"""Formulas of ``scipy.ndimage``: splines through an image, at traced or known coordinates.

A spline of degree n is a sum of B-splines: its coefficients are the image, filtered along each
axis, and its value at a coordinate takes n + 1 coefficients along each axis.
"""

import functools
import itertools
import operator
from typing import Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.scipy.formulas.formula_table import formula, no_derivative
from letir.scipy.image_windows import cast_to_double, one_per_axis
from letir.scipy.namespace import find_in_scipy
from letir.tracing.operands import traced_or_array

_PADDING = 12  # SciPy extends images by 12 elements in the modes that have no exact filter
_PADDED = {"nearest": "edge", "grid-constant": "constant"}

# ---- the coefficients of a spline ----


def _along(x: Any, matrix: Any, axis: int) -> Any:
    """The product of a matrix and ``x`` along an axis."""
    return np.moveaxis(np.moveaxis(x, axis, -1) @ matrix.T, -1, axis)


def _filter_matrix(n: int, order: int, mode: str) -> Any:
    return find_in_scipy("ndimage", "spline_filter1d")(np.eye(n), order, 0, np.float64, mode)


def _coefficients(x: Any, order: int, mode: str, cval: Any, prefilter: bool) -> tuple:
    """(coefficients, number of elements that they have beyond each border of the image)."""
    x = cast_to_double(x)
    if order < 2 or not prefilter:
        return x, 0
    pad = _PADDING if mode in _PADDED else 0
    if pad:
        padding: Any = _PADDED[mode]
        x = np.pad(x, pad, padding, **({"constant_values": cval} if padding == "constant" else {}))
    for axis, n in enumerate(x.shape):
        if n > 1:
            x = _along(x, _filter_matrix(n, order, mode), axis)
    return x, pad


# ---- coordinates, and the weights of B-splines ----


def _into_image(c: Any, n: int, mode: str) -> Any:
    """Coordinates mapped into an axis of ``n`` elements, as the mode extends the image."""
    if mode in ("grid-constant", "constant"):
        return c
    if mode == "nearest":
        return np.clip(c, 0, n - 1)
    if n <= 1:
        return c * 0
    if mode == "mirror":
        around = np.mod(c, 2 * n - 2)
        around = np.where(around > n - 1, 2 * n - 2 - around, around)
    elif mode in ("reflect", "grid-mirror"):
        around = np.mod(c, 2 * n)
        around = np.where(around >= n, 2 * n - 1 - around, around)
    else:
        size, gap = (n - 1, 0) if mode == "wrap" else (n, 1)
        below = c + size * (np.trunc((-gap - c) / size) + 1)
        above = c - size * np.trunc(c / size)
        around = np.where(c < 0, below, above)
    return np.where((c < 0) | (c > n - 1), around, c)


def _spline_weights(part: Any, order: int) -> list:
    """The values at ``part``, in [0, 1), of the B-splines of this degree that are not zero there,
    by the recursion of de Boor.
    """
    weights: list = [1.0]
    for d in range(1, order + 1):
        left = [((part + d - j) / d) * w for j, w in enumerate(weights, 1)]
        right = [((1 + j - part) / d) * w for j, w in enumerate(weights)]
        weights = [right[0], *[a + b for a, b in zip(left, right[1:], strict=False)], left[-1]]
    return weights


def _neighbours(c: Any, n: int, order: int, mode: str) -> list:
    """(index, weight, mask of indices in the image or None) of the coefficients for coordinates."""
    half = 0.0 if order % 2 else 0.5
    low = np.floor(c + half)
    weights = _spline_weights(c + half - low, order)
    first = low.astype(np.intp) - order // 2
    result = []
    for j, weight in enumerate(weights):
        place = first + j
        if mode == "grid-constant":
            inside = (place >= 0) & (place < n)
            result.append((np.clip(place, 0, n - 1), weight, inside))
        else:
            borders = "mirror" if mode in ("constant", "wrap") else mode
            result.append((_into_image(place, n, borders).astype(np.intp), weight, None))
    return result


def interpolated(
    x: Any, places: list, order: int, mode: str, cval: Any, prefilter: bool = True
) -> Any:
    """The spline through ``x`` at coordinates, one array for each axis; they broadcast."""
    table, pad = _coefficients(x, order, mode, cval, prefilter)
    places = [c + pad for c in places] if pad else places
    inside = [(c >= 0) & (c <= n - 1) for c, n in zip(places, table.shape, strict=True)]
    places = [
        np.where(is_inside, c, 0.0) if mode == "constant" else _into_image(c, n, mode)
        for c, n, is_inside in zip(places, table.shape, inside, strict=True)
    ]
    corners = [_neighbours(c, n, order, mode) for c, n in zip(places, table.shape, strict=True)]
    result: Any = 0.0
    for corner in itertools.product(*corners):
        value = table[tuple([place for place, _, _ in corner])]
        masks = [mask for _, _, mask in corner if mask is not None]
        if masks:
            value = np.where(functools.reduce(operator.and_, masks), value, cval)
        result = result + functools.reduce(operator.mul, [w for _, w, _ in corner]) * value
    if mode == "constant":
        result = np.where(functools.reduce(operator.and_, inside), result, cval)
    return result


def _refuse_unsupported(x: Any, output: Any) -> None:
    """Raise MissingRule for images of integers, empty images, and results of integers."""
    if x.dtype.kind not in "fc" or (output is not None and np.dtype(output).kind not in "fc"):
        no_derivative("the result is rounded to integers")
    if x.ndim < 1 or 0 in x.shape:
        no_derivative("the image is empty")


# ---- SciPy's functions ----


@formula("ndimage.map_coordinates")
def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image at fractional coordinates."""
    x = traced_or_array(input)
    _refuse_unsupported(x, output)
    places = [traced_or_array(c).astype(float) for c in coordinates]
    return interpolated(x, places, order, mode, cval, prefilter)


@formula("ndimage.shift")
def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image moved along its axes."""
    x = traced_or_array(input)
    _refuse_unsupported(x, output)
    steps = one_per_axis(shift, x.ndim)
    places = [c - step for c, step in zip(_open_grid(x.shape), steps, strict=True)]
    return interpolated(x, places, order, mode, cval, prefilter)


@formula("ndimage.zoom")
def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
    results: tuple,
) -> Any:
    """The image in another size."""
    x = traced_or_array(input)
    _refuse_unsupported(x, output)
    if results[0].shape == x.shape and prefilter:
        return x  # without filtering, as in SciPy
    places = []
    for n, m, grid in zip(x.shape, results[0].shape, _open_grid(results[0].shape), strict=True):
        if grid_mode:
            places.append((grid + 0.5) * (n / m if m else 1.0) - 0.5)
        else:
            places.append(grid * ((n - 1) / (m - 1) if m != 1 else 1.0))
    return interpolated(x, places, order, mode, cval, prefilter)


def _open_grid(shape: tuple) -> list:
    """The indices along each axis, as arrays that broadcast."""
    return [
        np.arange(float(n)).reshape(tuple([-1 if a == axis else 1 for a in range(len(shape))]))
        for axis, n in enumerate(shape)
    ]


def _affine_places(shape: tuple, matrix: Any, offsets: list) -> list:
    """``matrix @ index + offsets`` along each axis, rounded as SciPy rounds it."""
    grid = _open_grid(shape)
    if matrix.ndim == 1:
        return [(c + o / m) * m for c, m, o in zip(grid, matrix, offsets, strict=True)]
    places = []
    for row, offset in zip(matrix, offsets, strict=True):
        terms = [c * m for c, m in zip(grid, row, strict=True)]
        places.append(functools.reduce(operator.add, terms, offset))
    return places


@formula("ndimage.affine_transform")
def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    results: tuple,
) -> Any:
    """The image at the coordinates ``matrix @ index + offset``."""
    x, matrix = traced_or_array(input), traced_or_array(matrix)
    _refuse_unsupported(x, output)
    n = x.ndim
    if matrix.ndim == 2 and matrix.shape[1] == n + 1:
        offset, matrix = matrix[:n, n], matrix[:n, :n]
    offsets = [traced_or_array(o) for o in one_per_axis(offset, n)]
    return interpolated(
        x, _affine_places(results[0].shape, matrix, offsets), order, mode, cval, prefilter
    )


@formula("ndimage.rotate")
def rotate(
    input: Any,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    results: tuple,
) -> Any:
    """The image rotated in the plane of two axes."""
    x = traced_or_array(input)
    _refuse_unsupported(x, output)
    first, second = sorted([a % x.ndim for a in axes])
    x = np.moveaxis(x, (first, second), (0, 1))
    sizes = (results[0].shape[first], results[0].shape[second])
    angle = traced_or_array(angle)
    c, s = PRIMITIVES["cosdg"](angle), PRIMITIVES["sindg"](angle)
    middle = [(n - 1) / 2 for n in sizes]
    offsets = [
        (x.shape[0] - 1) / 2 - (c * middle[0] + s * middle[1]),
        (x.shape[1] - 1) / 2 - (c * middle[1] - s * middle[0]),
    ]
    places = _affine_places(sizes, np.stack([np.stack([c, s]), np.stack([-s, c])]), offsets)
    if x.ndim == 2:
        return interpolated(x, places, order, mode, cval, prefilter)
    planes = [
        interpolated(plane, places, order, mode, cval, prefilter)
        for plane in np.moveaxis(x.reshape((*x.shape[:2], -1)), -1, 0)
    ]
    result = np.stack(planes, axis=-1).reshape((*sizes, *x.shape[2:]))
    return np.moveaxis(result, (0, 1), (first, second))


@formula("ndimage.spline_filter1d")
def spline_filter1d(
    input: Any, order: int = 3, axis: int = -1, output: Any = float, mode: str = "mirror"
) -> Any:
    """The coefficients of a spline along one axis."""
    x = traced_or_array(input)
    n = x.shape[axis]
    return (
        _along(cast_to_double(x), _filter_matrix(n, order, mode), axis)
        if n > 1
        else cast_to_double(x)
    )


@formula("ndimage.spline_filter")
def spline_filter(input: Any, order: int = 3, output: Any = float, mode: str = "mirror") -> Any:
    """The coefficients of a spline along all axes."""
    x = cast_to_double(traced_or_array(input))
    for axis in range(x.ndim):
        x = spline_filter1d(x, order, axis, float, mode)
    return x

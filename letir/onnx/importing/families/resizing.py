"""Resize and Upsample: each axis is interpolated separately, with constant weights."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.types import Size
from letir.errors import MissingRule, ShapeError
from letir.onnx.importing.values import (
    MAX_ELEMENTS,
    axes_of,
    check_elements,
    known_array,
    known_sizes,
    number_like,
)

_MAX_SUMMED_NEIGHBOURS = 4


def _source_places(mode: str, n: int, count: int, scale: float, roi: Sequence | None) -> np.ndarray:
    """The position of each of ``count`` results in an axis of ``n`` elements."""
    at, length = np.arange(count, dtype=np.float64), scale * n
    if mode == "align_corners":
        return np.zeros(count) if length == 1 else at * (n - 1) / (length - 1)
    if mode == "asymmetric":
        return at / scale
    if mode == "tf_crop_and_resize":
        if roi is None:
            raise ShapeError(
                "Resize: tf_crop_and_resize needs the input roi, the region to resize\n"
                "  add the input to the node"
            )
        first, last = float(roi[0]), float(roi[1])
        inner = (last - first) * (n - 1)
        steps = np.full(count, inner / 2) if length == 1 else at * inner / (length - 1)
        return steps + first * (n - 1)
    if mode == "pytorch_half_pixel" and length == 1:
        return np.full(count, -0.5)
    shift = 0.0
    if mode == "half_pixel_symmetric":
        shift = n / 2 * (1 - count / length)
    elif mode not in ("half_pixel", "pytorch_half_pixel"):
        raise MissingRule(
            f"Resize: there is no coordinate_transformation_mode {mode!r}\n"
            "  use one of ONNX's modes, such as half_pixel"
        )
    return shift + (at + 0.5) / scale - 0.5


def _nearest_positions(places: np.ndarray, mode: str) -> np.ndarray:
    """The position of the element that is nearest to each place."""
    low = np.floor(places)
    share = places - low
    up = {
        "round_prefer_floor": share > 0.5,
        "round_prefer_ceil": share >= 0.5,
        "floor": np.zeros(share.shape, bool),
        "ceil": share > 0,
    }
    if mode not in up:
        raise MissingRule(
            f"Resize: there is no nearest_mode {mode!r}\n  use one of {', '.join(up)}"
        )
    return (low + up[mode]).astype(np.int64)


def _linear_weight(distance: np.ndarray) -> np.ndarray:
    """The weight of a neighbour in linear interpolation."""
    return np.maximum(1 - np.abs(distance), 0)


def _cubic_weight(distance: np.ndarray, a: float) -> np.ndarray:
    """The weight of a neighbour in cubic convolution (Keys, 1981)."""
    t = np.abs(distance)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _neighbour_weights(
    places: np.ndarray, n: int, scale: float, options: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """(the positions of the neighbours of each place, their weights)."""
    is_cubic = options["mode"] == "cubic"
    shrink = min(scale, 1.0) if options["antialias"] else 1.0
    reach = (2 if is_cubic else 1) / shrink
    low = np.ceil(places - reach).astype(np.int64)
    check_elements([len(places), min(math.floor(2 * reach), n + MAX_ELEMENTS) + 1], "Resize")
    steps = np.arange(math.floor(2 * reach) + 1)
    index = low[:, None] + steps
    distance = (index - places[:, None]) * shrink
    weights = (
        _cubic_weight(distance, options["cubic_coeff_a"]) if is_cubic else _linear_weight(distance)
    )
    if options["exclude_outside"]:
        weights = np.where((index < 0) | (index >= n), 0, weights)
    if options["exclude_outside"] or options["antialias"]:
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    return np.clip(index, 0, n - 1), weights


def _resized_axis(x: Any, axis: int, count: int, scale: float, roi: Any, options: dict) -> Any:
    """``x`` with ``axis`` resized to ``count`` elements."""
    n = x.shape[axis]
    if type(n) is Size:
        if options["mode"] == "nearest" and float(scale).is_integer() and scale >= 1:
            return np.repeat(x, int(scale), axis=axis)
        raise ShapeError(
            f"Resize: the size {n} of axis {axis} is not known\n"
            "  give it a number: letir.onnx.load(model, sizes={...})"
        )
    places = _source_places(options["coordinates"], n, count, scale, roi)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    if options["mode"] == "nearest":
        index = np.clip(_nearest_positions(places, options["nearest_mode"]), 0, n - 1)
        result = np.take(x, index, axis=axis)
    else:
        index, weights = _neighbour_weights(places, n, scale, options)
        used = (weights != 0).any(axis=0)
        index, weights = index[:, used], weights[:, used].astype(x.dtype)
        if weights.shape[1] <= _MAX_SUMMED_NEIGHBOURS:
            terms = [
                np.take(x, index[:, k], axis=axis) * weights[:, k].reshape(shape)
                for k in range(weights.shape[1])
            ]
            result = sum(terms[1:], terms[0])
        else:
            check_elements([count, n], "Resize")
            matrix = np.zeros((count, n), x.dtype)
            np.add.at(matrix, (np.arange(count)[:, None], index), weights)
            result = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    if options["coordinates"] == "tf_crop_and_resize":
        outside = ((places < 0) | (places > n - 1)).reshape(shape)
        if outside.any():
            return np.where(outside, number_like(options["outside"], result), result)
    return result


def _scales_and_sizes(
    x: Any, axes: tuple, scales: Any, sizes: Any, policy: str
) -> tuple[list[float], list[Any]]:
    """(the scale, the new size) of each axis."""
    old = [x.shape[axis] for axis in axes]
    if scales is not None and scales.size:
        factors = [float(s) for s in known_array(scales, "Resize: the scales")]
        if len(factors) != len(axes) or min(factors) <= 0:
            raise ShapeError(
                f"Resize: the scales {factors} do not fit {len(axes)} axes\n"
                "  give one positive number for each axis"
            )
        return factors, [
            n * int(s) if type(n) is Size else math.floor(n * s)
            for n, s in zip(old, factors, strict=True)
        ]
    if sizes is None:
        raise ShapeError(
            "Resize: the node has neither scales nor sizes\n  give it one of these inputs"
        )
    new = known_sizes(sizes, "Resize: the sizes")
    if any(type(n) is Size for n in [*new, *old]):
        same = [m if m is n or m == n else None for m, n in zip(new, old, strict=True)]
        factors = [1.0 if s is not None else w / n for s, w, n in zip(same, new, old, strict=True)]
        return factors, new
    factors = [m / n if n else 1.0 for m, n in zip(new, old, strict=True)]
    if policy != "stretch":
        factor = min(factors) if policy == "not_larger" else max(factors)
        return [factor] * len(axes), [int(factor * n + 0.5) for n in old]
    return factors, new


def _resize_regions(roi: Any) -> list[list] | None:
    """(start, end) of the region to resize along each axis; None for the whole array."""
    if roi is None:
        return None
    return known_array(roi, "Resize: the region").reshape(2, -1).T.tolist()


def _resize(
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    antialias: int = 0,
    axes: Any = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:
    """Resize: more or fewer elements along each axis, by interpolation."""
    found_axes = tuple(range(x.ndim)) if axes is None else axes_of(axes, x.ndim)
    factors, counts = _scales_and_sizes(x, found_axes, scales, sizes, keep_aspect_ratio_policy)
    check_elements(counts, "Resize")
    options = {
        **{"mode": mode, "nearest_mode": nearest_mode, "antialias": antialias},
        **{"exclude_outside": exclude_outside, "cubic_coeff_a": cubic_coeff_a},
        **{"coordinates": coordinate_transformation_mode, "outside": extrapolation_value},
    }
    regions = (
        _resize_regions(roi) if coordinate_transformation_mode == "tf_crop_and_resize" else None
    )
    is_exact = mode == "nearest" or x.dtype.kind == "f"
    result = x if is_exact else x.astype(np.float64)
    for place, (axis, scale, count) in enumerate(zip(found_axes, factors, counts, strict=True)):
        region = None if regions is None else regions[place]
        whole = region is None or (region[0] == 0 and region[1] == 1)
        n = x.shape[axis]
        if whole and scale == 1 and (type(n) is Size or n == count):
            continue
        result = _resized_axis(result, axis, count, scale, region, options)
    if is_exact:
        return result
    limits = np.iinfo(x.dtype)
    return np.clip(result, limits.min, limits.max).astype(x.dtype)


def _upsample(x: Any, scales_input: Any = None, mode: str = "nearest", scales: Any = None) -> Any:
    """Upsample: Resize before version 10."""
    factors = np.array(scales, np.float32) if scales_input is None else scales_input
    kind = "linear" if mode == "bilinear" else mode
    return _resize(
        x,
        None,
        factors,
        mode=kind,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def _resize_of_version(*inputs: Any, opset: int, **attrs: Any) -> Any:
    """Resize: before version 11 without a region, and like Upsample."""
    if opset < 11:
        return _upsample(*inputs, **attrs)
    return _resize(*inputs, **attrs)


OPERATORS: dict[str, Any] = {"Resize": _resize_of_version, "Upsample": _upsample}

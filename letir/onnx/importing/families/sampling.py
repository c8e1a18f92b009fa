"""Reading images at positions between their elements: GridSample, RoiAlign and MaxRoiPool."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import letir.numpy as lnp
from letir.ast.symbolic_sizes import is_same_size
from letir.errors import ShapeError
from letir.onnx.importing.values import (
    as_traced,
    check_elements,
    known_array,
    known_int,
    number_like,
    take_elements,
)
from letir.tracing.tracer import Tracer

_MAX_REGIONS = 1000  # which are recorded one by one
_MAX_AXES = 6  # each doubles the number of neighbours

# ---- reading ----


def _read_at(x: Any, places: Sequence) -> Any:
    """The elements of ``x`` (N, C, *sizes) at integer places (N, *out); 0 outside of x.

    Result: shape (N, C, *out).
    """
    inside, index = None, []
    for place, n in zip(places, x.shape[2:], strict=True):
        here = (place >= 0) & (place < n)
        inside = here if inside is None else inside & here
        index.append(np.clip(place, 0, n - 1))
    last = np.moveaxis(x, 1, -1)
    if type(last) is np.ndarray and any(type(place) is Tracer for place in index):
        last = as_traced(last)
    rows = lnp.arange(x.shape[0]).reshape((-1, *[1] * (index[0].ndim - 1)))
    values = np.moveaxis(last[(rows, *index)], -1, 1)
    return np.where(np.expand_dims(inside, 1), values, number_like(0, x))


def sample_linear(x: Any, coordinates: Sequence) -> Any:
    """``x`` at coordinates between its elements, by linear interpolation along each axis."""
    low = [np.floor(c) for c in coordinates]
    shares = [(c - a).astype(x.dtype) for c, a in zip(coordinates, low, strict=True)]
    firsts, total = [a.astype(np.int64) for a in low], None
    for corner in itertools.product((0, 1), repeat=len(firsts)):
        weight = None
        for step, share in zip(corner, shares, strict=True):
            part = share if step else number_like(1, x) - share
            weight = part if weight is None else weight * part
        places = [first + step for first, step in zip(firsts, corner, strict=True)]
        term = _read_at(x, places) * np.expand_dims(weight, 1)
        total = term if total is None else total + term
    return total


# ---- GridSample ----


def _pixel_position(coordinate: Any, n: int, align_corners: int) -> Any:
    """The place of a coordinate between -1 and 1 in an axis of n elements."""
    if align_corners:
        return (coordinate + 1) / 2 * (n - 1)
    return ((coordinate + 1) * n - 1) / 2


def _reflect_positions(place: Any, low: float, high: float) -> Any:
    """Places reflected at the ends until they are between them."""
    span = high - low
    if span == 0:
        return place * 0
    rest = np.mod(place - low, 2 * span)
    return low + np.minimum(rest, 2 * span - rest)


def _apply_padding_mode(place: Any, n: int, padding_mode: str, align_corners: int) -> Any:
    """Places moved into the axis according to the padding mode."""
    if padding_mode == "border":
        return np.clip(place, 0, n - 1)
    if padding_mode == "reflection":
        low, high = (0, n - 1) if align_corners else (-0.5, n - 0.5)
        return np.clip(_reflect_positions(place, low, high), 0, n - 1)
    return place


def _cubic_weights(share: Any) -> list:
    """The weights of four neighbours in cubic convolution (Keys, 1981) with a = -0.75."""
    a = -0.75
    first = [share + 1, share, 1 - share, 2 - share]
    far = [((a * t - 5 * a) * t + 8 * a) * t - 4 * a for t in (first[0], first[3])]
    near = [((a + 2) * t - (a + 3)) * t * t + 1 for t in (first[1], first[2])]
    return [far[0], near[0], near[1], far[1]]


def _sample_cubic(x: Any, places: Sequence, padding_mode: str, align_corners: int) -> Any:
    """``x`` at places between its elements, by cubic convolution."""
    low = [np.floor(place) for place in places]
    weights = [_cubic_weights(p - a) for p, a in zip(places, low, strict=True)]
    total = None
    for corner in itertools.product(range(4), repeat=len(low)):
        at, weight = [], None
        for axis, step in enumerate(corner):
            place = _apply_padding_mode(
                low[axis] + (step - 1), x.shape[axis + 2], padding_mode, align_corners
            )
            at.append(np.rint(place).astype(np.int64))
            part = weights[axis][step]
            weight = part if weight is None else weight * part
        term = _read_at(x, at) * np.expand_dims(weight, 1).astype(x.dtype)
        total = term if total is None else total + term
    return total


def _grid_sample(
    x: Any, grid: Any, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Any:
    """GridSample: x at places that are given by coordinates between -1 and 1, last axis first."""
    rank = x.ndim - 2
    fits = grid.shape[-1] == rank and is_same_size(grid.shape[0], x.shape[0])
    if not 1 <= rank <= _MAX_AXES or not fits:
        raise ShapeError(
            f"GridSample: x of shape {x.shape} and coordinates of shape {grid.shape} do not fit\n"
            "  for x of shape (N, C, H, W), the coordinates have shape (N, rows, columns, 2)"
        )
    places = [
        _pixel_position(grid[..., rank - 1 - axis], x.shape[axis + 2], align_corners)
        for axis in range(rank)
    ]
    if mode in ("cubic", "bicubic"):
        return _sample_cubic(x, places, padding_mode, align_corners)
    places = [
        _apply_padding_mode(place, n, padding_mode, align_corners)
        for place, n in zip(places, x.shape[2:], strict=True)
    ]
    if mode == "nearest":
        return _read_at(x, [np.rint(place).astype(np.int64) for place in places])
    return sample_linear(x, places)


# ---- RoiAlign ----


def _roi_places(start: Any, size: Any, bins: int, samples: int) -> Any:
    """The sampled places along one axis: shape (regions, bins * samples)."""
    steps = (np.arange(bins * samples) + 0.5) / samples
    return start[:, None] + (size / bins)[:, None] * steps.astype(np.float32)


def _roi_align(
    x: Any,
    rois: Any,
    batch_indices: Any,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    """RoiAlign: means (or maxima) of samples in the bins of regions (He et al., 2017)."""
    is_half = coordinate_transformation_mode == "half_pixel"
    boxes = rois * np.float32(spatial_scale) - np.float32(0.5 if is_half else 0)
    directions = []
    for axis, bins in ((1, output_height), (0, output_width)):
        start, size = boxes[:, axis], boxes[:, axis + 2] - boxes[:, axis]
        size = size if is_half else np.maximum(size, np.float32(1))
        samples = sampling_ratio
        if samples <= 0:
            each = known_array(size, "RoiAlign: the sizes of the regions") / bins
            counts = set(np.ceil(each).astype(int).tolist())
            if len(counts) > 1:
                return _roi_align_each(
                    x,
                    rois,
                    batch_indices,
                    *(coordinate_transformation_mode, mode, output_height, output_width),
                    *(sampling_ratio, spatial_scale),
                )
            samples = max(*counts, 1)
        directions.append((_roi_places(start, size, bins, samples), bins, samples))
    (ys, height, by_y), (xs, width, by_x) = directions
    regions = _read_regions(x, batch_indices, ys, xs, mode)
    blocks = regions.reshape((*regions.shape[:2], height, by_y, width, by_x))
    return (np.max if mode == "max" else np.mean)(blocks, axis=(3, 5))


def _roi_align_each(x: Any, rois: Any, batch_indices: Any, *attrs: Any) -> Any:
    """RoiAlign region by region, for regions with different numbers of samples."""
    if known_int([rois.shape[0]], "RoiAlign: the number of regions") > _MAX_REGIONS:
        raise ShapeError(
            f"RoiAlign: with sampling_ratio=0 at most {_MAX_REGIONS} regions are supported, "
            f"found {rois.shape[0]}\n  set sampling_ratio to a positive number"
        )
    rows = [
        _roi_align(x, rois[i : i + 1], batch_indices[i : i + 1], *attrs)
        for i in range(rois.shape[0])
    ]
    return np.concatenate(rows)


def _read_regions(x: Any, batch_indices: Any, ys: Any, xs: Any, mode: str) -> Any:
    """The image of each region at all pairs of places, by linear interpolation.

    Places up to 1 outside of the image count as its border. ``mode`` "max" takes the largest of the
    four weighted neighbours instead of their sum.
    """
    images = take_elements(x, batch_indices, axis=0)
    inside, sides = [], []
    for place, n in ((ys, x.shape[2]), (xs, x.shape[3])):
        inside.append((place >= -1) & (place <= n))
        clipped = np.clip(place, 0, n - 1).astype(x.dtype)
        low = np.minimum(np.floor(clipped), number_like(max(n - 2, 0), x))
        share = clipped - low
        first = low.astype(np.int64)
        second = np.minimum(first + 1, n - 1)
        sides.append([(first, number_like(1, x) - share), (second, share)])
    terms = []
    shape = (ys.shape[0], ys.shape[1], xs.shape[1])
    for (y, by_y), (column, by_x) in itertools.product(*sides):
        at = [np.broadcast_to(y[:, :, None], shape), np.broadcast_to(column[:, None, :], shape)]
        weight = (by_y[:, :, None] * by_x[:, None, :])[:, None]
        terms.append(_read_at(images, at) * weight)
    values = np.max(np.stack(terms), axis=0) if mode == "max" else sum(terms[1:], terms[0])
    is_inside = (inside[0][:, :, None] & inside[1][:, None, :])[:, None]
    return np.where(is_inside, values, number_like(0, x))


# ---- MaxRoiPool ----


def _is_in_bin(low: Any, high: Any, bins: int, size: Any) -> Any:
    """Whether each place along an axis is in each bin of each region: (regions, bins, size)."""
    width = np.maximum(high - low + number_like(1, low), number_like(1, low)) / number_like(
        bins, low
    )
    number, place = lnp.arange(bins).astype(low.dtype), lnp.arange(size)
    first = np.floor(number * width[:, None]) + low[:, None]
    last = np.ceil((number + number_like(1, low)) * width[:, None]) + low[:, None]
    return (place >= np.expand_dims(first, -1)) & (place < np.expand_dims(last, -1))


def _max_roi_pool(x: Any, rois: Any, pooled_shape: Any, spatial_scale: float = 1.0) -> Any:
    """MaxRoiPool: the maximum in each bin of regions; 0 in a bin outside of the image."""
    scaled = rois[:, 1:] * number_like(spatial_scale, rois)
    rounded = np.trunc(scaled + np.copysign(number_like(0.5, rois), scaled))
    left, top, right, bottom = [rounded[:, n] for n in range(4)]
    rows, columns = pooled_shape
    check_elements((rois.shape[0], *x.shape[1:3], columns, x.shape[3]), "MaxRoiPool")
    image, lowest = take_elements(x, rois[:, 0].astype(np.int64), axis=0), number_like(-np.inf, x)
    inside = _is_in_bin(left, right, columns, x.shape[3])[:, None, None]
    maxima = np.max(np.where(inside, np.expand_dims(image, 3), lowest), axis=4)
    inside = _is_in_bin(top, bottom, rows, x.shape[2])[:, None, :, :, None]
    maxima = np.max(np.where(inside, np.expand_dims(maxima, 2), lowest), axis=3)
    return np.where(maxima == lowest, number_like(0, x), maxima)


OPERATORS: dict[str, Any] = {
    "GridSample": _grid_sample,
    "RoiAlign": _roi_align,
    "MaxRoiPool": _max_roi_pool,
}

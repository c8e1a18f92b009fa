"""Operators on shapes and the order of elements."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import letir.numpy as lnp
from letir.ast.types import Size
from letir.errors import MissingRule, ShapeError
from letir.onnx.importing.tensors import dtype_of
from letir.onnx.importing.values import (
    as_array,
    axes_of,
    axis_of,
    is_shape,
    known_array,
    known_int,
    known_sizes,
    made_later,
    position_range,
    recorded_array,
    vector_of_sizes,
    zeros_of,
)
from letir.tracing.tracer import Tracer

# ---- sizes ----


def _shape(x: Any, start: int = 0, end: int | None = None) -> Any:
    """Shape: the sizes of the axes from ``start`` to ``end``."""
    return vector_of_sizes(x.shape[slice(start, end)])


def _size(x: Any) -> Any:
    """Size: the number of elements."""
    return vector_of_sizes([math.prod(x.shape)]).reshape(())


def _reshape(x: Any, shape_input: Any = None, shape: Any = None, allowzero: int = 0) -> Any:
    """Reshape: 0 keeps a size unless ``allowzero``, and -1 is computed."""
    sizes = known_sizes(shape if shape_input is None else shape_input, "Reshape: the shape")
    if not allowzero:
        short = [i for i, n in enumerate(sizes) if type(n) is int and n == 0 and i >= x.ndim]
        if short:
            raise ShapeError(
                f"Reshape: a 0 in the shape {sizes} keeps the size of an axis that the input of "
                f"shape {x.shape} does not have\n  the model is damaged, or needs allowzero=1"
            )
        sizes = [x.shape[i] if type(n) is int and n == 0 else n for i, n in enumerate(sizes)]
    return lnp.reshape(x, tuple(sizes)) if not is_shape(x) else x.reshape(sizes)


def _flatten(x: Any, axis: int = 1) -> Any:
    """Flatten: to two axes, the first of them for all axes before ``axis``."""
    axis = axis if axis == x.ndim else axis_of(axis, x.ndim)
    return lnp.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _squeeze(x: Any, axes_input: Any = None, axes: Any = None) -> Any:
    """Squeeze: without axes of size 1."""
    numbers = axes if axes_input is None else known_sizes(axes_input, "Squeeze: the axes")
    if numbers is None:
        numbers = [i for i, n in enumerate(x.shape) if type(n) is int and n == 1]
    positions = axes_of(list(numbers), x.ndim)
    if any(type(x.shape[axis]) is int and x.shape[axis] != 1 for axis in positions):
        raise ShapeError(f"Squeeze: the axes {positions} of {x.shape} do not all have size 1")
    return x.reshape(tuple(n for i, n in enumerate(x.shape) if i not in positions))


def _unsqueeze(x: Any, axes_input: Any = None, axes: Any = None) -> Any:
    """Unsqueeze: with new axes of size 1 at these places of the result."""
    numbers = axes if axes_input is None else known_sizes(axes_input, "Unsqueeze: the axes")
    rank = x.ndim + len(numbers)
    positions, rest = axes_of(list(numbers), rank), iter(x.shape)
    return x.reshape(tuple(1 if i in positions else next(rest) for i in range(rank)))


def _transpose(x: Any, perm: Sequence[int] | None = None) -> Any:
    """Transpose: the axes in another order, by default reversed."""
    return np.transpose(x, perm)


# ---- joining and splitting ----


def _concat(*arrays: Any, axis: int = 1) -> Any:
    """Concat: arrays one after another along an axis."""
    if any(map(is_shape, arrays)) and not all(type(x) is np.ndarray for x in arrays):
        arrays = tuple(map(as_array, arrays))
    return np.concatenate(arrays, axis=axis_of(axis, arrays[0].ndim))


def _split(
    x: Any,
    split_input: Any = None,
    *,
    outputs: int,
    axis: int = 0,
    split: Any = None,
    num_outputs: int | None = None,
) -> tuple:
    """Split: parts of given lengths, or of equal length except for the last."""
    axis = axis_of(axis, x.ndim)
    lengths = split if split_input is None else known_sizes(split_input, "Split: the lengths")
    n = x.shape[axis]
    if lengths is None:
        count = outputs
        if num_outputs not in (None, outputs):
            raise ShapeError(
                f"Split: the node names {outputs} results, but num_outputs is {num_outputs}\n"
                "  give both the same number"
            )
        if type(n) is Size:
            each: Any = (n + (count - 1)) // count
            lengths = [each] * (count - 1) + [n - each * (count - 1)]
        else:
            each = -(-n // count)
            lengths = [min(each, max(n - i * each, 0)) for i in range(count)]
    elif all(type(k) is int for k in [n, *lengths]) and sum(lengths) != n:
        raise ShapeError(
            f"Split: parts of lengths {lengths} do not add up to the {n} elements of the axis\n"
            "  correct the lengths"
        )
    parts, start = [], 0
    for length in lengths:
        parts.append(x[(*[slice(None)] * axis, slice(start, start + length))])
        start = start + length
    return tuple(parts)


def _slice(
    x: Any,
    starts_input: Any = None,
    ends_input: Any = None,
    axes_input: Any = None,
    steps: Any = None,
    *,
    starts: Any = None,
    ends: Any = None,
    axes: Any = None,
) -> Any:
    """Slice: from ``starts`` to ``ends`` in ``steps`` along the axes."""
    begin = known_sizes(starts if starts_input is None else starts_input, "Slice: the starts")
    end = known_sizes(ends if ends_input is None else ends_input, "Slice: the ends")
    numbers = axes if axes_input is None else known_sizes(axes_input, "Slice: the axes")
    positions = axes_of(list(range(len(begin))) if numbers is None else list(numbers), x.ndim)
    by = [1] * len(begin) if steps is None else known_sizes(steps, "Slice: the steps")
    index: list[Any] = [slice(None)] * x.ndim
    for axis, a, b, step in zip(positions, begin, end, by, strict=True):
        index[axis] = _bounded_slice(a, b, step, x.shape[axis])
    return x[tuple(index)]


def _bounded_slice(start: Any, end: Any, step: int, size: Any) -> slice:
    """A slice by ONNX's rules: bounds beyond the ends are clamped, also downwards."""
    if step > 0:
        huge = type(end) is int and end >= 2**31 - 1
        return slice(start, None if huge else end, step)
    if type(start) is int and start >= 2**31 - 1:
        start = None
    if type(end) is int and type(size) is int:
        end = None if end < -size else end  # before the first element
    elif type(end) is int and end < -(2**31) + 1:
        end = None
    if type(start) is int and type(size) is int and start < -size:
        start = 0
    return slice(start, end, step)


def _pad(
    x: Any,
    pads_input: Any = None,
    constant: Any = None,
    axes_input: Any = None,
    *,
    mode: str = "constant",
    pads: Any = None,
    value: float = 0.0,
) -> Any:
    """Pad: elements added before and after each axis; negative numbers remove elements."""
    numbers = pads if pads_input is None else known_sizes(pads_input, "Pad: the numbers")
    axes = range(x.ndim) if axes_input is None else known_sizes(axes_input, "Pad: the axes")
    positions = axes_of(list(axes), x.ndim)
    if len(numbers) != 2 * len(positions):
        raise ShapeError(
            f"Pad: {len(numbers)} numbers for {len(positions)} axes\n"
            "  give two for each axis: the elements before and after it"
        )
    pairs: list[Any] = [(0, 0)] * x.ndim
    for axis, low, high in zip(positions, numbers, numbers[len(positions) :], strict=False):
        pairs[axis] = (low, high)
    cropped = _without_elements(x, pairs)
    width = [(max(low, 0), max(high, 0)) for low, high in pairs]
    sizes = [n + a + b for n, (a, b) in zip(cropped.shape, width, strict=True)]
    cropped = made_later(cropped, sizes, "Pad")
    if mode != "constant":
        return lnp.pad(cropped, width, mode=mode)
    fill = value if constant is None else constant
    if hasattr(fill, "reshape"):
        fill = fill.reshape(())
    if cropped.dtype == bool and type(fill) is float:
        fill = bool(fill)
    if type(fill) is float or type(fill) is np.ndarray:
        return np.pad(cropped, width, mode="constant", constant_values=cropped.dtype.type(fill))
    inner = np.pad(cropped, width, mode="constant")  # a traced number fills the rest
    mask = np.pad(np.ones(cropped.shape, bool), width, mode="constant")
    return np.where(mask, inner, fill)


def _without_elements(x: Any, pairs: list) -> Any:
    """``x`` without the elements that negative numbers in ``pairs``, one pair an axis, remove."""
    index = tuple(
        slice(max(-low, 0), n - max(-high, 0)) if min(low, high) < 0 else slice(None)
        for (low, high), n in zip(pairs, x.shape, strict=True)
    )
    return x[index] if any(s != slice(None) for s in index) else x


# ---- making ----


def _constant(**attrs: Any) -> Any:
    """Constant: the tensor, number or numbers in its attribute."""
    (name, value), *more = attrs.items() or [("", None)]
    if more or not name:
        raise ShapeError(
            "Constant: exactly one attribute must hold the value\n  correct the node in the model"
        )
    if name == "sparse_value":
        raise MissingRule("Constant: sparse tensors are supported as initializers only")
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64}
    kinds["value_ints"] = np.int64
    return value if name == "value" else np.array(value, kinds.get(name))


def _constant_of_shape(shape: Any, value: Any = None) -> Any:
    """ConstantOfShape: an array full of one number."""
    fill = np.zeros(1, np.float32) if value is None else value
    zeros = zeros_of(
        known_sizes(shape, "ConstantOfShape: the shape"), fill.dtype, "ConstantOfShape"
    )
    return zeros + fill.reshape(()) if fill.dtype != bool else zeros | fill.reshape(())


def _expand(x: Any, shape: Any) -> Any:
    """Expand: x and an array of the given shape broadcast against each other."""
    sizes = known_sizes(shape, "Expand: the shape")
    rank = max(x.ndim, len(sizes))
    own = [1] * (rank - x.ndim) + list(x.shape)
    sizes = [1] * (rank - len(sizes)) + sizes
    out = tuple(b if type(a) is int and a == 1 else a for a, b in zip(own, sizes, strict=True))
    for a, b in zip(own, sizes, strict=True):
        if type(a) is int and type(b) is int and a != b and 1 not in (a, b):
            raise ShapeError(
                f"Expand: an array of shape {tuple(x.shape)} does not broadcast with the shape "
                f"{tuple(sizes)}\n  sizes at one axis must be equal, or one of them 1"
            )
    return np.broadcast_to(made_later(x, out, "Expand"), out)


def _tile(x: Any, repeats: Any) -> Any:
    """Tile: repeated along each axis."""
    times = known_sizes(repeats, "Tile: the repeats")
    x = made_later(x, [n * k for n, k in zip(x.shape, times, strict=True)], "Tile")
    return np.tile(x, tuple(times))


def _range(start: Any, limit: Any, delta: Any) -> Any:
    """Range: numbers from ``start`` before ``limit`` in steps of ``delta``."""
    numbers = [known_array(x, "Range: a bound").reshape(()) for x in (start, limit, delta)]
    first, last, step = [x.item() for x in numbers]
    if Size in (type(first), type(last), type(step)):
        return lnp.arange(first, last, step).astype(np.int64)
    if step == 0:
        raise ShapeError("Range: the step is 0")
    count = max(math.ceil((last - first) / step), 0)
    return numbers[0] + position_range(count, numbers[0].dtype, "Range") * numbers[2]


def _eye_like(x: Any, dtype: int | None = None, k: int = 0) -> Any:
    """EyeLike: ones on a diagonal."""
    rows, columns = x.shape
    aval = x.dtype if dtype is None else dtype_of(dtype)
    if type(made_later(np.zeros(()), x.shape, "EyeLike")) is Tracer:
        return recorded_array("eye", rows, columns, k, dtype=aval)
    return np.eye(rows, columns, k, dtype=aval)


def _one_hot(indices: Any, depth: Any, values: Any, axis: int = -1) -> Any:
    """OneHot: the second of ``values`` at each index of a new axis, the first elsewhere."""
    n = known_int(depth, "OneHot: the depth")
    axis = axis_of(axis, indices.ndim + 1)
    indices = made_later(indices, [*indices.shape, n], "OneHot")
    shape = [-1 if i == axis else 1 for i in range(indices.ndim + 1)]
    places = position_range(n, np.int64, "OneHot").reshape(shape)
    wrapped = np.where(indices < 0, indices + np.asarray(n).astype(indices.dtype), indices)
    at = np.expand_dims(wrapped, axis)
    return np.where(at == places, values[1], values[0])


# ---- order ----


def _triangle(x: Any, k: Any = None, upper: int = 1) -> Any:
    """Trilu: the elements on one side of a diagonal."""
    diagonal = 0 if k is None else known_int(k, "Trilu: the diagonal")
    rows, columns = x.shape[-2:]
    if type(rows) is Size or type(columns) is Size:
        return (np.triu if upper else np.tril)(x, diagonal)
    offset = np.arange(columns) - np.arange(rows)[:, None]
    mask = offset >= diagonal if upper else offset <= diagonal
    return np.where(mask, x, np.zeros((), x.dtype))


def _depth_to_space(x: Any, blocksize: int, mode: str = "DCR") -> Any:
    """DepthToSpace: blocks of channels become blocks of pixels."""
    n, c, h, w = x.shape
    b, rest = blocksize, c // blocksize**2
    if mode == "DCR":
        result = np.transpose(x.reshape((n, b, b, rest, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        result = np.transpose(x.reshape((n, rest, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return result.reshape((n, rest, h * b, w * b))


def _space_to_depth(x: Any, blocksize: int, mode: str = "DCR") -> Any:
    """SpaceToDepth: blocks of pixels become blocks of channels."""
    n, c, h, w = x.shape
    b = blocksize
    blocks = x.reshape((n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return np.transpose(blocks, order).reshape((n, c * b * b, h // b, w // b))


OPERATORS: dict[str, Any] = {
    **{"Shape": _shape, "Size": _size, "Reshape": _reshape, "Flatten": _flatten},
    **{"Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Transpose": _transpose},
    **{"Concat": _concat, "Split": _split, "Slice": _slice, "Pad": _pad},
    **{"Constant": _constant, "ConstantOfShape": _constant_of_shape, "Expand": _expand},
    **{"Tile": _tile, "Range": _range, "EyeLike": _eye_like, "OneHot": _one_hot},
    **{"Trilu": _triangle, "DepthToSpace": _depth_to_space, "SpaceToDepth": _space_to_depth},
}

"""pad: borders around an array, in every mode of NumPy.

The constant mode has its own derivative rules. In the other modes the border of an axis is a
linear function of the elements along it (edge, reflect, symmetric, wrap, linear_ramp, mean), or
their extremum or median; these are differentiated through ``_pad_decompose``, which goes from axis
to axis as NumPy does. The border of mode="empty", undefined in NumPy, is zeros here.
"""

from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import SeveralBinds
from letir.ast.sizes.size import Size
from letir.errors import MissingRule, ShapeError, mark_unrecorded_code
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import batch_first, emit_op, emit_with_shape, known_size
from letir.ops.define.composite_programs import composite_rules
from letir.ops.define.records import composite
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.repeat_and_diagonal import count_axes
from letir.ops.shape.shape_and_creation import as_size, broadcast_to, full, shape_operands
from letir.ops.shape.transpose import move_axes

_COPIED = frozenset(["edge", "wrap", "reflect", "symmetric"])
_REDUCED = {"maximum": "max", "minimum": "min", "median": "median"}
_OPTIONS = {  # mode -> the keyword that NumPy takes with it
    "constant": "constant_values",
    "linear_ramp": "end_values",
    **dict.fromkeys(("mean", *_REDUCED), "stat_length"),
    **dict.fromkeys(("reflect", "symmetric"), "reflect_type"),
    **dict.fromkeys(("edge", "wrap", "empty")),
}


def _pairs_of(numbers, ndim: int, convert) -> tuple:
    """(before, after) for each axis, from any of the forms that NumPy accepts."""
    if isinstance(numbers, dict):  # axis -> width; other axes get no border
        full: list = [(0, 0)] * ndim
        for axis, pair in numbers.items():
            full[axis] = pair if isinstance(pair, list | tuple) or np.ndim(pair) else (pair, pair)
        numbers = full
    values: list = []
    places = np.array(_places_of(numbers, convert, values))
    if not ndim and not places.size:
        return ()
    pairs = np.broadcast_to(places, (ndim, 2)).tolist()
    return tuple([tuple([values[i] for i in pair]) for pair in pairs])


def _places_of(numbers: Any, convert, values: list) -> Any:
    """The places in ``values`` of numbers in nested lists, which are converted and appended to it.

    The places are broadcast instead of the numbers, because some of these may be traced.
    """
    if isinstance(numbers, list | tuple) or (hasattr(numbers, "shape") and numbers.shape):
        return [_places_of(n, convert, values) for n in numbers]
    values.append(convert(numbers[()] if type(numbers) is np.ndarray else numbers))
    return len(values) - 1


def _pad_prepare(array, pad_width, mode="constant", **options):
    """np.pad. ``value`` is the value of the border or the end of its ramp; ``of`` is the
    ``stat_length`` or ``reflect_type``.
    """
    if callable(mode):
        raise mark_unrecorded_code(
            MissingRule(
                "pad: a function as mode is not recorded: it writes into NumPy's own array\n"
                "  build your own border with concatenate"
            )
        )
    if mode not in _OPTIONS:
        raise ShapeError(
            f"pad: mode={mode!r} is not one of {', '.join(sorted(_OPTIONS))}\n"
            "  build your own border with concatenate"
        )
    if not options.keys() <= {_OPTIONS[mode]}:
        raise ShapeError(
            f"pad: {', '.join(options)} cannot be given with mode={mode!r}\n"
            "  leave these options out"
        )
    ndim = count_axes(array)
    attrs = {"width": _pairs_of(pad_width, ndim, as_size)}
    option = next(iter(options.values()), None) if ndim else None  # else there is no border
    if mode != "constant" and mode != "empty":
        attrs["mode"] = mode
    if option is not None and mode in ("constant", "linear_ramp"):
        if _first_value(option) is not None:
            raise SeveralBinds(lambda: _pad_with_values(array, attrs["width"], option, mode))
        attrs["value"] = _border_values(option, ndim)
    elif option is not None:
        attrs["of"] = option if type(option) is str else _pairs_of(option, ndim, as_size)
    return (array,), attrs


def _border_values(values, ndim: int):
    """The values of the border: one, or a pair for each axis."""
    if isinstance(values, int | float | complex | np.generic):
        return values
    return _pairs_of(values, ndim, lambda n: n.item() if isinstance(n, np.generic) else n)


def _pad_with_values(x, width: tuple, values, mode: Any) -> Any:
    """``x`` with traced border values: the border for 0, plus the values times their weights."""
    x = x if isinstance(x, Value) else np.asarray(x)
    ends = _pairs_of(values, x.ndim, lambda n: n)
    if mode == "constant":
        return _pad_decompose(x, width=width, value=ends)
    for axis, pair in enumerate(width):
        if sum(pair):
            n = known_size(x.shape[axis], "pad")
            x = pad(x, [pair if i == axis else (0, 0) for i in range(x.ndim)], mode)
            for end, units in zip(ends[axis], ((1, 0), (0, 1)), strict=True):
                ramp = np.pad(np.zeros(n), pair, mode, end_values=units).astype(x.dtype)
                x = x + end * ramp.reshape(-1, *(1,) * (x.ndim - axis - 1))
    return x


def _first_value(values) -> Value | None:
    """The first Value among these numbers, None if there is none."""
    if isinstance(values, list | tuple):
        return next((value for v in values if (value := _first_value(v)) is not None), None)
    return values if isinstance(values, Value) else None


def _pad_impl(xp, x, *, width, value=0, mode="constant", of=None):
    """np.pad; a 0-d array has no border."""
    if not width:
        return xp.array(x)
    name = _OPTIONS[mode]
    option = value if mode in ("constant", "linear_ramp") else of
    return xp.pad(x, width, mode, **({} if option is None else {name: option}))


def _pad_aval(x, *, width, value, mode, of):
    """The operand's type with each axis longer by its two widths."""
    if len(width) != x.ndim or any(n < 0 for pair in width for n in pair):
        raise ShapeError(
            f"pad: widths {width} do not fit an array of shape {x.shape}\n"
            "  write ((before, after), ...), one pair for each axis"
        )
    pairs = list(zip(x.shape, width, strict=True))
    if mode != "constant" and any(n == 0 and sum(pair) for n, pair in pairs):
        raise ShapeError(
            f"pad: mode={mode!r} cannot extend an empty axis of {x.shape}\n  use mode='constant'"
        )
    return x.with_shape(tuple([n + before + after for n, (before, after) in pairs]))


@batch_first
def _pad_batch(args, mapped, *, width, value, mode, of, transform=None):
    """The batching rule: the batch axis gets no border."""
    if type(value) is tuple:
        value = ((0, 0), *value)
    if type(of) is tuple:
        of = ((1, 1), *of)
    return emit_op("pad", args, width=((0, 0), *width), value=value, mode=mode, of=of)


# ---- derivatives ----


def _pad_decompose(x, *, width, value=0, mode="constant", of=None):
    """``x`` padded along one axis after the other."""
    for axis, pair in enumerate(width):
        if pair == (0, 0):
            continue
        values = value[axis] if type(value) is tuple else (value, value)
        if mode in ("constant", "empty"):
            x = concatenate(
                [
                    _constant_border(x, axis, pair[0], values[0]),
                    x,
                    _constant_border(x, axis, pair[1], values[1]),
                ],
                axis,
            )
        else:
            x = _add_borders(x, axis, pair, mode, of[axis] if type(of) is tuple else of)
        if mode == "linear_ramp" and values != (0, 0):  # the part that does not depend on x
            ends = np.pad(np.zeros(x.shape[axis] - sum(pair)), pair, mode, end_values=values)
            x = x + ends.astype(x.dtype).reshape(-1, *(1,) * (x.ndim - axis - 1))
    return x


def _constant_border(x: Any, axis: int, width: int, value) -> Any:
    """A border for one side of ``axis`` that holds one value."""
    shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
    traced = _first_value((x, value))
    if traced is None:
        return np.full(shape, value, x.dtype)
    sizes, shape = shape_operands(shape, (traced,))
    settings = full.complete({"shape": shape, "dtype": x.dtype})
    return traced.emitter.apply(full, (value, *sizes), settings)


def _add_borders(x: Value, axis: int, pair: tuple, mode: Any, of) -> Value:
    """``x`` with borders at both ends of one axis, computed from its elements."""
    if mode in _COPIED and of != "odd" and type(x.shape[axis]) is Size:
        return _add_copied_borders(x, axis, pair, mode)
    n = known_size(x.shape[axis], "pad")
    if mode in _REDUCED:
        lengths = [n if of is None else min(k, n) for k in of or (n, n)]
        ends = slice(lengths[0]), slice(n - lengths[1], None)
        before, after = (
            _end_of(x, axis, end, width, _REDUCED[mode])
            for end, width in zip(ends, pair, strict=True)
        )
        return concatenate([before, x, after], axis)
    if mode in _COPIED and of != "odd":
        places = np.pad(np.arange(n), pair, mode)
        pieces = np.split(places, [pair[0], pair[0] + n])
        borders = [x[(*(slice(None),) * axis, pieces[i])] for i in (0, 2)]
        return concatenate([borders[0], x, borders[1]], axis)
    # the border is a linear function of the axis: a matrix of the borders of unit vectors
    options = {} if of is None else {_OPTIONS[mode]: of if type(of) is str else (of, of)}
    matrix = np.pad(np.eye(n), (pair, (0, 0)), mode, **options)
    return move_axes(move_axes(x, (axis,), (-1,)) @ matrix.T.astype(x.dtype), (-1,), (axis,))


def _add_copied_borders(x: Value, axis: int, pair: tuple, mode: str) -> Value:
    """``x`` with copies of its elements at both ends of an axis of symbolic size.

    The borders are slices, for which the axis must be long enough.
    """
    front, n = (slice(None),) * axis, x.shape[axis]
    if mode == "edge":
        shapes = [(*x.shape[:axis], width, *x.shape[axis + 1 :]) for width in pair]
        ends = x[(*front, slice(1))], x[(*front, slice(-1, None))]
        before, after = map(broadcast_to, ends, shapes)
        return concatenate([before, x, after], axis)
    skipped = mode == "reflect"  # the element at the edge itself
    if not n >= max(pair) + skipped:
        raise ShapeError(
            f"pad: borders of {pair} elements by {mode!r} of an axis of {n}\n  pass smaller widths"
        )
    first, last = slice(skipped, pair[0] + skipped), slice(n - pair[1] - skipped, n - skipped)
    if mode == "wrap":
        first, last = slice(n - pair[0], n), slice(pair[1])
    borders = [x[(*front, part)] for part in (first, last)]
    if mode != "wrap":
        borders = [border[(*front, slice(None, None, -1))] for border in borders]
    return concatenate([borders[0], x, borders[1]], axis)


def _end_of(x: Value, axis: int, end: slice, width: int, reduction: str) -> Value:
    """A border that holds the extremum or median of the part ``end`` of the axis."""
    part = x[(*(slice(None),) * axis, end)]
    reduced = PRIMITIVES[reduction](part, axis=axis, keepdims=True)
    shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
    return emit_with_shape("broadcast_to", reduced, shape, x).astype(x.dtype)


_linear_vjp, _linear_jvp = composite_rules(_pad_decompose, several=False)


def _pad_vjp(ct, y, x, *, transform, **attrs):
    """The cotangent without the constant border; other modes go through the decomposition."""
    if attrs["mode"] != "constant":
        return _linear_vjp(ct, y, x, transform=transform, **attrs)
    # None, not -0: x[1:-0] is empty
    inner = [slice(before, None if after == 0 else -after) for before, after in attrs["width"]]
    return (ct[tuple(inner)],)


def _pad_jvp(tangents, y, x, *, transform, **attrs):
    """The tangent with a border of zeros; other modes go through the decomposition."""
    if attrs["mode"] != "constant":
        return _linear_jvp(tangents, y, x, transform=transform, **attrs)
    return pad(tangents[0], attrs["width"])


pad = composite(
    "pad",
    _pad_decompose,
    impl=_pad_impl,
    aval=_pad_aval,
    vjp=_pad_vjp,
    jvp=_pad_jvp,
    prepare=_pad_prepare,
    numpy=(np.pad,),
    batch=_pad_batch,
    onnx="Pad",
    sizes_in=("width",),
    source=arrays.pad,
    added="value",
    cost="moderate",
)

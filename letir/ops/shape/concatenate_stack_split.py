"""Arrays joined and cut into parts along an axis: concatenate, stack, split."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import SeveralBinds
from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import has_sizes, is_static_shape
from letir.ast.types import ArrayType, number_dtype
from letir.errors import AxisBoundsError, DTypeError, MissingRule, ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import axes_rule, joining_rule
from letir.ops.define.records import add_terms, array_dtype, define, result_dtype, unbroadcast
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_size, zeros_like
from letir.ops.shape.transpose import int_or_tuple, normalize_axes


def _concatenate_aval(*parts, axis, dtype):
    """The parts' common shape, with the sum of their sizes along ``axis``."""
    if not parts:
        raise ShapeError("concatenate: need at least one array\n  pass a list that is not empty")
    dtype = dtype or result_dtype(*parts)  # Python numbers are weak here, unlike in stack
    if axis is None:
        return ArrayType(dtype, (sum(part.size for part in parts),))
    if not parts[0].shape:
        raise ShapeError(
            "concatenate: 0-d arrays cannot be concatenated; use stack\n"
            "  or make them vectors: np.atleast_1d(x)"
        )
    (axis,) = normalize_axes(axis, parts[0].ndim)
    rest = {part.shape[:axis] + part.shape[axis + 1 :] for part in parts}
    if len(rest) > 1 or len({part.ndim for part in parts}) > 1:
        listed = ", ".join(str(part.shape) for part in parts)
        raise ShapeError(
            f"concatenate: shapes {listed} differ in axes other than {axis}\n"
            "  the arrays may differ in size along that axis only: choose another, or use stack"
        )
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return ArrayType(dtype, tuple(shape))


def _concatenate_vjp(ct, y, *parts, axis, dtype):
    """The cotangent split into one slice for each part."""
    if any(isinstance(part, Value) and part.type is None for part in parts):
        raise MissingRule(
            "concatenate: its derivative needs the sizes of its parts\n"
            "  give the program types with known sizes: letir.retype"
        )
    extents = [_part_size(part, axis) for part in parts]
    sections = _sections_of(extents)
    if sections is None:
        pieces = _slices_of(ct, extents, 0 if axis is None else axis % ct.ndim, parts)
    else:
        pieces = split(ct, sections, 0 if axis is None else axis)
    if axis is None:
        pieces = [
            reshape(c, part) if isinstance(part, Value) else c
            for c, part in zip(pieces, parts, strict=True)
        ]
    return tuple(unbroadcast(piece, part) for piece, part in zip(pieces, parts, strict=True))


def _slices_of(ct: Value, extents: list, axis: int, parts: tuple) -> list[Value]:
    """``ct`` cut into parts of these sizes, which are read from the axes of ``parts``."""
    if any(type(n) is Size and n.is_internal for n in extents):
        named = ", ".join(map(str, extents))
        raise MissingRule(
            f"concatenate: its derivative needs sizes among {named}\n"
            "  give the program types with known sizes: letir.retype"
        )
    result, front, index = [], (slice(None),) * axis, PRIMITIVES["index"]
    for a, b in itertools.pairwise([0, *itertools.accumulate(extents)]):
        attrs = index.complete({"item": (*front, slice(a, b))})
        if has_sizes(attrs, index.sizes_in):
            result.append(LATE_BOUND["sized_call"](index, (ct,), attrs, parts))
        else:
            result.append(ct.emitter.apply(index, (ct,), attrs))
    return result


def _sections_of(extents: list) -> int | tuple[int, ...] | None:
    """The ``sections`` of split that give parts of these sizes; None if they are not numbers.

    That is the number of parts if all have the same symbolic size. Otherwise these are the indices
    at which all parts but the last end, counted from the end of the axis where only that index is a
    number.
    """
    if type(extents[0]) is not int and all(n == extents[0] for n in extents):
        return len(extents)
    before = list(itertools.accumulate(extents))
    places = []
    for place in before[:-1]:
        remaining = before[-1] - place
        is_from_end = type(place) is not int and type(remaining) is int and remaining > 0
        places.append(-remaining if is_from_end else place)
    return tuple(places) if is_static_shape(places) else None


def _part_size(part, axis):
    """The size of a part along ``axis``, or its number of elements if ``axis`` is None. A Python
    number is one element.
    """
    if not isinstance(part, Value):
        return 1
    return part.size if axis is None else part.shape[axis]


def _tangents_or_zeros(tangents, parts) -> list:
    """The tangents, with zeros of the part's shape in place of None; 0 for a number."""
    zeros = [zeros_like(part) if isinstance(part, Value) else 0 for part in parts]
    return [zero if t is None else t for t, zero in zip(tangents, zeros, strict=True)]


def _concatenate_prepare(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """np.concatenate, which checks the casts to ``dtype`` here."""
    parts = tuple(map(LATE_BOUND["stack_traced"], arrays))
    if dtype is not None:
        dtype = number_dtype(dtype)
        _check_casts(parts, dtype, casting)
    return parts, {"axis": int_or_tuple(axis), "dtype": dtype}


def _check_casts(parts: tuple, dtype: np.dtype, casting: Any) -> None:
    """Raise DTypeError unless all parts may be cast to ``dtype``."""
    kinds = {x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype for x in parts}
    for aval in kinds - {None}:
        if not np.can_cast(aval, dtype, casting):
            raise DTypeError(
                f"cannot cast {aval} to {dtype} with casting={casting!r}\n"
                "  write casting='unsafe' if the loss is intended"
            )


def _stack_prepare(arrays, axis=0, out=None):
    """stack in rules."""
    return tuple(arrays), {"axis": as_size(axis)}


def _stack_call(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """np.stack."""
    if dtype is None:
        return _stack_prepare(arrays, axis)
    parts = tuple(map(LATE_BOUND["stack_traced"], arrays))
    _check_casts(parts, np.dtype(dtype), casting)
    arrays = [x if isinstance(x, Value) else np.asarray(x) for x in parts]
    raise SeveralBinds(lambda: stack([x.astype(dtype) for x in arrays], axis))


def _concatenate_impl(xp, *parts, axis=0, dtype=None):
    """The parts joined. Which casts are allowed was checked when the call was recorded."""
    if dtype is None:
        return xp.concatenate(parts, axis=axis)
    return xp.concatenate(parts, axis=axis, dtype=dtype, casting="unsafe")


concatenate: Primitive = define(
    "concatenate",
    _concatenate_impl,
    _concatenate_aval,
    vjp=_concatenate_vjp,
    jvp=lambda t, y, *parts, axis, dtype: concatenate(
        _tangents_or_zeros(t, parts), axis, dtype=y.dtype
    ),
    prepare=_concatenate_prepare,
    numpy=(np.concatenate,),
    batch=joining_rule("concatenate"),
    onnx="Concat",
    source=arrays.list_call,
    never_fails="biuf",
    only_float_warnings=True,
    ends_fusion=True,
    order="all",
    compact="array",
    cost="moderate",
    moves_elements=10_000,
)


def _stack_aval(*parts, axis):
    """The common shape of the parts with a new axis."""
    if len({part.shape for part in parts}) != 1:
        listed = ", ".join(str(part.shape) for part in parts) or "none"
        raise ShapeError(
            f"stack: all arrays must have one shape, found {listed}\n"
            "  pad or broadcast them to one shape, or use concatenate"
        )
    shape = list(parts[0].shape)
    (axis,) = normalize_axes(axis, len(shape) + 1)
    shape.insert(axis, len(parts))
    return ArrayType(array_dtype(*parts), tuple(shape))


def _stack_vjp(ct, y, *parts, axis):
    """The slices of the cotangent along the new axis."""
    pieces = split(ct, len(parts), axis)
    return tuple(
        unbroadcast(PRIMITIVES["squeeze"](piece, axis), part)
        for piece, part in zip(pieces, parts, strict=True)
    )


def _stack_jvp(tangents, y, *parts, axis):
    """The stacked tangents, in the dtype of the result."""
    return stack(_tangents_or_zeros(tangents, parts), axis).astype(y.dtype)


stack = define(
    "stack",
    lambda xp, *parts, axis=0: xp.stack(parts, axis=axis),
    _stack_aval,
    vjp=_stack_vjp,
    jvp=_stack_jvp,
    prepare=_stack_prepare,
    numpy={np.stack: _stack_call},
    batch=joining_rule("stack"),
    source=arrays.list_call,
    never_fails="biuf",
    only_float_warnings=True,
    order="all",
    compact="array",
    cost="moderate",
    moves_elements=10_000,
)


def split_parts(n: Any, sections: Any) -> list:
    """The sizes of the parts into which an axis of size ``n`` is split."""
    if type(sections) is int:
        return [n // sections] * sections
    edges = [0, *[min(max(i + n if i < 0 else i, 0), n) for i in sections], n]
    return [max(b - a, 0) for a, b in itertools.pairwise(edges)]


def _split_aval(x, *, sections, axis):
    """The types of the parts. A number of sections must divide the size of the axis."""
    (axis,) = normalize_axes(axis, x.ndim)
    n = x.shape[axis]
    if type(sections) is int and (sections < 1 or (type(n) is int and n % sections)):
        raise ShapeError(
            f"split: {sections} equal sections do not divide an axis of {n}; see array_split\n"
            "  or pass the places at which to split"
        )
    return tuple(
        x.with_shape((*x.shape[:axis], part, *x.shape[axis + 1 :]))
        for part in split_parts(n, sections)
    )


def _split_vjp(cts, outs, x, *, sections, axis):
    """The cotangents of the parts concatenated, with zeros for missing ones."""
    if _parts_overlap(x, sections, axis):
        parts = [_part_into(ct, x, sections, axis, i) for i, ct in enumerate(cts) if ct is not None]
        return (add_terms(parts),)
    return (concatenate(_tangents_or_zeros(cts, outs), axis),)


def _parts_overlap(x: Value, sections, axis: int) -> bool:
    """Whether parts overlap or leave elements out, because the indices are not sorted."""
    if type(sections) is int:
        return False
    if x.type is None or min(sections, default=0) >= 0:
        return list(sections) != sorted(sections)
    n = x.shape[axis]
    return sum(split_parts(n, sections)) != n


def _part_into(ct, x, sections, axis, i) -> Value:
    """The cotangent of part ``i`` added to zeros of the shape of ``x``, for overlapping parts."""
    (axis,) = normalize_axes(axis, x.ndim)
    start = ([0, *sections])[i]
    place = (slice(None),) * axis + (slice(start, start + ct.shape[axis]),)
    return zeros_like(x).at[place].add(ct)


def _split_jvp(tangents, outs, x, *, sections, axis):
    """The tangent, split as the operand is."""
    return split(tangents[0], sections, axis)


def _split_part(x, place, *, sections, axis) -> tuple:
    """(op, attributes) that read part number ``place`` of a split array of type ``x``."""
    (axis,) = normalize_axes(axis, x.ndim)
    if type(sections) is int:
        edges = [x.shape[axis] // sections * i for i in range(sections + 1)]
    else:
        edges = [0, *sections, None]
    item = (*[slice(None)] * axis, slice(edges[place], edges[place + 1]))
    return PRIMITIVES["index"], {"item": item}


def _split_prepare(ary, indices_or_sections, axis=0):
    """np.split."""
    try:
        sections = tuple(as_size(i) for i in indices_or_sections)
    except TypeError:
        sections = as_size(indices_or_sections)
    axis = as_size(axis)
    if type(sections) is tuple and any(type(i) is Size for i in sections):
        raise SeveralBinds(lambda: _parts_between(ary, (0, *sections, None), axis))
    return (ary,), {"sections": sections, "axis": axis}


def _parts_between(x: Value, edges: Sequence, axis: int) -> list[Value]:
    """The parts of ``x`` between neighbouring edges, as slices."""
    (axis,) = normalize_axes(axis, x.ndim)
    front = (slice(None),) * axis
    return [x[(*front, slice(a, b))] for a, b in itertools.pairwise(edges)]


def _array_split_prepare(ary, indices_or_sections, axis=0):
    """np.array_split, whose first parts are longer by one if the number of sections does not
    divide the axis.
    """
    operands, attrs = _split_prepare(ary, indices_or_sections, axis)
    if not ary.ndim:
        raise AxisBoundsError("array_split: a number has no axes\n  pass an array")
    parts, n = attrs["sections"], ary.shape[axis]
    if type(parts) is int and parts < 1:
        raise ShapeError("array_split: number sections must be larger than 0\n  pass 1 or more")
    if type(parts) is int and type(n % parts) is Size:
        raise SeveralBinds(lambda: _uneven_parts(ary, parts, axis % ary.ndim))
    if type(parts) is int and n % parts:
        longer, size = n % parts, n // parts
        attrs["sections"] = tuple(i * size + min(i, longer) for i in range(1, parts))
    return operands, attrs


def _uneven_parts(x: Value, parts: int, axis: int) -> list[Value]:
    """The parts of np.array_split for a symbolic size n: part i has ceil((n - i) / parts) rows."""
    n = x.shape[axis]
    ends = [n]
    for i in range(parts - 1, 1, -1):  # from the end: these are certainly between 0 and n
        ends.append(ends[-1] - (n + parts - 1 - i) // parts)
    return _parts_between(x, (0, (n + parts - 1) // parts, *ends[::-1]), axis)


split = define(
    "split",
    lambda xp, x, *, sections, axis=0: tuple(
        xp.split(x, sections if type(sections) is int else list(sections), axis)
    ),
    _split_aval,
    vjp=_split_vjp,
    jvp=_split_jvp,
    results=lambda *, sections, axis: sections if type(sections) is int else len(sections) + 1,
    returned=lambda parts, **_: list(parts),
    prepare=_split_prepare,
    batch=axes_rule("split"),
    numpy={np.split: _split_prepare, np.array_split: _array_split_prepare},
    onnx="Split",
    source=arrays.split,
    never_fails="biuf",
    only_float_warnings=True,
    memory="view",
    cost="free",
    part=_split_part,
    write_through="by_place",
    moves_elements=1,
)

"""Building blocks of batching rules, and the rules that whole families of operations share.

A batching rule ``batch(args, axes, **attrs)`` gets the operands, each with its batch axis (None if
it is not mapped), and returns the result and its batch axis. ``batch_first`` makes such a rule from
a function that sees the batch as axis 0 of every mapped operand and returns it as axis 0 of the
result. ``pointwise_rule``, ``along_axis_rule`` and ``axes_rule`` make the rules of families.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import never
from letir.ast.symbolic_sizes import has_sizes, is_static_shape
from letir.ast.types import WEAK, ArrayType, Size
from letir.errors import MissingRule, ShapeError

NO_BATCHED_OPERAND = never("it has no operand that could be mapped")
NO_BATCHED_SIZE = never("a shape is the same for all examples of a batch")

# ---- the batch in front ----


def batch_first(rule: Callable) -> Callable:
    """The batching rule made from ``rule(args, mapped, **attrs)``, which sees every batch as axis
    0.

    ``mapped``: for each operand whether it has a batch axis; every result must have one.
    """

    @functools.wraps(rule)
    def batch(args, axes, /, **attrs):  # an attribute may be called axes
        operands = [
            arg if axis is None else move_to_front(arg, axis)
            for arg, axis in zip(args, axes, strict=True)
        ]
        out = rule(operands, tuple([axis is not None for axis in axes]), **attrs)
        return (out, (0,) * len(out)) if type(out) is tuple else (out, 0)

    return batch


def move_to_front(x: Value, axis: int) -> Value:
    """``x`` with ``axis`` moved to the front."""
    if axis == 0:
        return x
    axis %= rank_of(x)
    order = (axis, *[i for i in range(rank_of(x)) if i != axis])
    return emit_op("transpose", (x,), axes=order) if axis else x


def move_from_front(x: Value, axis: int) -> Value:
    """``x`` with its first axis moved to ``axis``: the inverse of ``move_to_front``."""
    if axis == 0:
        return x
    axis %= rank_of(x)
    order = list(range(1, rank_of(x)))
    order.insert(axis, 0)
    return emit_op("transpose", (x,), axes=tuple(order)) if axis else x


def emit_op(name: str, operands: Sequence, /, **attrs: Any) -> Any:
    """Record the operation called ``name`` where its operands are recorded, and return the
    result.
    """
    op = PRIMITIVES[name]
    if op.sizes_in and has_sizes(attrs, op.sizes_in):
        return LATE_BOUND["sized_call"](op, tuple(operands), op.complete(attrs))
    emitter = next(operand.emitter for operand in operands if isinstance(operand, Value))
    return emitter.apply(op, tuple(operands), op.complete(attrs))


def rank_of(arg: Any, is_mapped: bool = False) -> int:
    """The number of axes of an operand, without its batch axis. Raises MissingRule if it is
    unknown.
    """
    if not isinstance(arg, Value):
        return 0
    if arg.type is None:
        raise MissingRule(
            "batching needs the rank of every operand, and the rank of a result is unknown\n"
            "  trace with concrete arguments, or give the program types: letir.retype"
        )
    return arg.ndim - is_mapped


def shape_of(arg: Any, is_mapped: bool = False) -> tuple[int | Size, ...]:
    """The shape of an operand, without its batch axis."""
    return arg.shape[is_mapped:] if rank_of(arg) else ()


def first_mapped(args: Sequence, mapped: Sequence[bool]) -> Value:
    """The first operand with a batch axis. Raises MissingRule if its rank is unknown."""
    result = next(arg for arg, has_axis in zip(args, mapped, strict=True) if has_axis)
    rank_of(result)
    return result


# ---- ranks and sizes ----


def align_ranks(args: Sequence, mapped: Sequence[bool]) -> list:
    """The operands with axes of length 1 inserted after the batch axis, so that mapped operands
    broadcast as their slices do.
    """
    most = max(rank_of(arg, has_axis) for arg, has_axis in zip(args, mapped, strict=True))
    return [
        widen_rank(arg, most) if has_axis else arg
        for arg, has_axis in zip(args, mapped, strict=True)
    ]


def widen_rank(x: Value, to: int) -> Value:
    """A mapped operand padded with axes of length 1 after its batch axis, to rank ``to`` without
    it.
    """
    more = to - rank_of(x, True)
    return emit_op("expand_dims", (x,), axis=tuple(range(1, 1 + more))) if more > 0 else x


def broadcast_batch(arg: Any, is_mapped: bool, like: Value) -> Value:
    """An operand with the batch axis of ``like``: broadcast along it unless it is mapped."""
    if is_mapped:
        return arg
    (n, *_) = shape_of(like)
    return emit_with_shape("broadcast_to", arg, (n, *shape_of(arg)), like)


def broadcast_batches(args: Sequence, mapped: Sequence[bool]) -> list[Value]:
    """The operands, each with a batch axis."""
    like = first_mapped(args, mapped)
    return [
        broadcast_batch(arg, has_axis, like) for arg, has_axis in zip(args, mapped, strict=True)
    ]


def emit_with_shape(
    name: str, x: Any, shape: tuple, like: Value | None, emitter: Any = None, **attrs: Any
) -> Value:
    """``broadcast_to``, ``reshape`` or ``sum_to_size`` of ``x`` to ``shape``.

    A symbolic size is read from an axis of ``x`` or ``like``. Pass ``emitter`` where neither of
    them is recorded.
    """
    if isinstance(x, Value) and x.type is not None and x.shape == shape:  # most calls: no bind
        return x
    operands: tuple[Any, ...] = (x,)
    if not is_static_shape(shape):
        operands = (x, sizes_operand(shape, [v for v in (x, like) if isinstance(v, Value)]))
    op = PRIMITIVES[name]
    emitter = emitter or like.emitter
    return emitter.apply(op, operands, op.complete({"shape": shape, **attrs}))


def sizes_operand(shape: tuple, values: list[Value]) -> Value:
    """``shape`` as an integer array; symbolic sizes are read from the values that have them."""
    parts, emitter = [], values[0].emitter
    for n in shape:
        if type(n) is int:
            parts.append(integer_constant(emitter, [n]))
            continue
        # symbolic sizes with equal names are equal: any axis of that size may be used
        places = [(v, v.shape.index(n)) for v in values if v.type is not None and n in v.shape]
        if not places:
            parts.append(LATE_BOUND["number_array"]([n], values))
            continue
        value, axis = places[0]
        parts.append(emit_op("index", (emit_op("size", (value,)),), item=slice(axis, axis + 1)))
    return stack_sizes(parts)


def stack_sizes(sizes: Sequence[Value]) -> Value:
    """Join parts of a shape, copied to the device of constants, because sizes are on the host."""
    if len(sizes) == 1:
        return sizes[0]
    return emit_op("concatenate", [emit_op("copy", (part,)) for part in sizes], axis=0, dtype=None)


def integer_constant(emitter: Any, numbers: Sequence[int]) -> Value:
    """A constant array of these integers."""
    op = PRIMITIVES["constant"]
    return emitter.apply(op, (), op.complete({"value": np.array(numbers, dtype=np.int64)}))


def known_size(n: Any, purpose: str) -> int:
    """``n`` as a number. Raises ShapeError, for the operation ``purpose``, if it is symbolic."""
    if type(n) is Size:
        raise ShapeError(f"{purpose}: batching needs the size {n} as a number\n  pass axis_size")
    return n


# ---- families of operations ----


def pointwise_rule(name: str) -> Callable:
    """The batching rule of an elementwise operation with any number of operands."""

    def rule(args, mapped, **attrs):
        return emit_op(name, align_ranks(args, mapped), **attrs)

    return batch_first(rule)


def shift_axes(axis: Any, ndim: int) -> Any:
    """Axes of one example, of rank ``ndim``, as axes of the batch. None, for all axes, gives all
    but the batch axis.
    """
    if axis is None:
        return tuple(range(1, ndim + 1))  # all axes of an example
    if type(axis) is tuple:
        # negative axes count from the end, and the batch is in front
        return tuple([a + 1 if a >= 0 else a for a in axis])
    return axis + 1 if axis >= 0 else axis


def axes_rule(name: str) -> Callable:
    """The batching rule of an operation on one array whose ``axis`` is one axis, several or
    None.
    """

    def rule(args, mapped, *, axis, transform=None, **attrs):
        (x,) = args
        return emit_op(name, args, axis=shift_axes(axis, rank_of(x, True)), **attrs)

    return batch_first(rule)


def reduction_rule(name: str) -> Callable:
    """The batching rule of a reduction, which may have a mask as its second operand."""

    def rule(args, mapped, *, axis, transform=None, **attrs):
        if len(args) == 1:
            return emit_op(name, args, axis=shift_axes(axis, rank_of(args[0], True)), **attrs)
        # if only the mask is mapped, the array is reduced once for each mask
        x = broadcast_batch(args[0], mapped[0], first_mapped(args, mapped))
        ndim = rank_of(x, True)
        mask = widen_rank(args[1], ndim) if mapped[1] else args[1]
        return emit_op(name, (x, mask), axis=shift_axes(axis, ndim), **attrs)

    return batch_first(rule)


def flatten_examples(x: Value) -> Value:
    """Each example flattened to one axis."""
    shape = x.shape[1:]
    return (
        x if len(shape) == 1 else emit_with_shape("reshape", x, (x.shape[0], math.prod(shape)), x)
    )


def along_axis_rule(name: str) -> Callable:
    """The batching rule of an operation along one axis or along the flattened array, as cumsum."""

    def rule(args, mapped, *, axis, transform=None, **attrs):
        (x,) = args
        if axis is None or not rank_of(x, True):  # NumPy flattens numbers to one element, too
            return emit_op(name, (flatten_examples(x),), axis=1, **attrs)
        return emit_op(name, args, axis=shift_axes(axis, rank_of(x, True)), **attrs)

    return batch_first(rule)


def arg_reduction_rule(name: str) -> Callable:
    """The batching rule of argmax and argmin: ``along_axis_rule`` with ``keepdims``."""

    def rule(args, mapped, *, axis, keepdims):
        (x,) = args
        if axis is not None:
            return emit_op(name, args, axis=shift_axes(axis, rank_of(x, True)), keepdims=keepdims)
        out = emit_op(name, (flatten_examples(x),), axis=1, keepdims=False)
        return widen_rank(out, rank_of(x, True)) if keepdims else out

    return batch_first(rule)


def joining_rule(name: str) -> Callable:
    """The batching rule of an operation that joins arrays along ``axis``: concatenate and stack."""

    def rule(args, mapped, *, axis, **attrs):
        # arrays to be joined do not broadcast: each needs the batch
        parts = broadcast_batches(args, mapped)
        if axis is None:
            parts, axis = [flatten_examples(part) for part in parts], 0
        return emit_op(name, parts, axis=shift_axes(axis, 0), **attrs)

    return batch_first(rule)


@batch_first
def transpose_batch(
    args: Sequence, mapped: Sequence[bool], /, *, axes: tuple[int, ...] | None
) -> Value:
    """The batching rule of transpose."""
    (x,) = args
    ndim = rank_of(x, True)
    order = range(ndim)[::-1] if axes is None else [a % ndim for a in axes]
    return emit_op("transpose", args, axes=(0, *[a + 1 for a in order]))


@batch_first
def squeeze_batch(
    args: Sequence, mapped: Sequence[bool], *, axis: int | tuple[int, ...] | None
) -> Value:
    """The batching rule of squeeze, which must not drop the batch axis if its length is 1."""
    (x,) = args
    if axis is None:
        axis = tuple([i for i, n in enumerate(shape_of(x, True)) if n == 1])
    return emit_op("squeeze", args, axis=shift_axes(axis, rank_of(x, True)))


def identity_batch(args: Sequence, axes: Sequence, **_: Any) -> tuple:
    """The batching rule of an operation that returns its first operand unchanged."""
    return args[0], axes[0]


def composite_batch(stands_for: Callable, several: bool) -> Callable:
    """The batching rule of a composite: its decomposition ``stands_for(types, attrs)``, batched.

    ``several``: the composite has several results.
    """

    def batch(args, axes, /, *, transform, **attrs):
        # an operand that is None is not a parameter of the program
        given = [i for i, arg in enumerate(args) if arg is not None]
        like, axis = next((args[i], axes[i]) for i in given if axes[i] is not None)
        program = stands_for(types_without_batch(args, axes), attrs)
        program, out_axes = transform(program, [axes[i] for i in given], like.shape[axis])
        results = like.emitter.call(program, [args[i] for i in given])
        return (results, out_axes) if several else (results[0], out_axes[0])

    return batch


def types_without_batch(args: Sequence, axes: Sequence) -> tuple:
    """The type of one example of each operand; None for an operand that is None."""
    return tuple([type_without_batch(arg, axis) for arg, axis in zip(args, axes, strict=True)])


def type_without_batch(arg: Any, axis: int | None) -> ArrayType | None:
    """The type of one example of an operand whose batch axis is ``axis``."""
    if not isinstance(arg, Value):
        return None if arg is None else WEAK[type(arg)]
    aval = arg.type
    if axis is None or aval is None:
        return aval
    axis %= aval.ndim
    # with_shape makes the type strong: an element of an array is not a Python number
    return aval.with_shape(aval.shape[:axis] + aval.shape[axis + 1 :])

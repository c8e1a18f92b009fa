"""What batching rules are made of: the batch in front, ranks aligned, axes and shapes moved up.

``batch(args, axes, **attrs)`` gets the operands, each with the axis along which it is mapped or
None, and returns the result and its batch axis. ``batch_first`` makes such a rule of a function that
sees every mapped operand with the batch as axis 0 and returns its results so; ``pointwise_rule``,
``along_axis_rule`` and ``axes_rule`` make the rules of whole families.
"""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import WEAK, Size
from letir.errors import MissingRule, ShapeError

# ---- the batch in front ----


def batch_first(rule: Callable) -> Callable:
    """The batching rule of ``rule(args, mapped, **attrs)``, which has every batch as axis 0.

    ``mapped`` says which operands have one; all results have.
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
    """``x`` with ``axis`` as its first."""
    if axis == 0:
        return x
    axis %= rank_of(x)
    order = (axis, *[i for i in range(rank_of(x)) if i != axis])
    return emit_op("transpose", (x,), axes=order) if axis else x


def move_from_front(x: Value, axis: int) -> Value:
    """``x`` with its first axis at ``axis``: what ``move_to_front`` undoes."""
    if axis == 0:
        return x
    axis %= rank_of(x)
    order = list(range(1, rank_of(x)))
    order.insert(axis, 0)
    return emit_op("transpose", (x,), axes=tuple(order)) if axis else x


def emit_op(name: str, operands: Sequence, /, **attrs):
    """The operation on these operands and attributes, recorded where the operands are."""
    op = PRIMITIVES[name]
    emitter = next(operand.emitter for operand in operands if isinstance(operand, Value))
    return emitter.apply(op, tuple(operands), op.complete(attrs))


def rank_of(arg, is_mapped: bool = False) -> int:
    """The number of axes of an operand without its batch. Raises MissingRule if it is unknown."""
    if not isinstance(arg, Value):
        return 0
    if arg.type is None:
        raise MissingRule(
            "batching needs the ranks of the operands, and that of a result is not known\n"
            "  trace with concrete arguments, or retype the program first"
        )
    return arg.ndim - is_mapped


def shape_of(arg, is_mapped: bool = False) -> tuple:
    """The shape of an operand without its batch."""
    return arg.shape[is_mapped:] if rank_of(arg) else ()


def first_mapped(args: Sequence, mapped: Sequence[bool]) -> Value:
    """The first operand that has the batch. Raises MissingRule if its rank is unknown."""
    found = next(arg for arg, there in zip(args, mapped, strict=True) if there)
    rank_of(found)
    return found


# ---- ranks and sizes ----


def align_ranks(args: Sequence, mapped: Sequence[bool]) -> list:
    """The operands with axes of length 1 behind the batch, so that what is mapped broadcasts as
    its slices do.
    """
    most = max(rank_of(arg, there) for arg, there in zip(args, mapped, strict=True))
    return [
        widen_rank(arg, most) if there else arg for arg, there in zip(args, mapped, strict=True)
    ]


def widen_rank(x: Value, to: int) -> Value:
    """A mapped operand with axes of length 1 behind the batch, ``to`` axes beside the batch."""
    more = to - rank_of(x, True)
    return emit_op("expand_dims", (x,), axis=tuple(range(1, 1 + more))) if more > 0 else x


def broadcast_batch(arg, is_mapped: bool, like: Value) -> Value:
    """An operand with the batch of ``like``, by broadcasting it if it has none."""
    if is_mapped:
        return arg
    (n, *_) = shape_of(like)
    return emit_with_shape("broadcast_to", arg, (n, *shape_of(arg)), like)


def broadcast_batches(args: Sequence, mapped: Sequence[bool]) -> list[Value]:
    """The operands, each with the batch."""
    like = first_mapped(args, mapped)
    return [broadcast_batch(arg, there, like) for arg, there in zip(args, mapped, strict=True)]


def emit_with_shape(name: str, x, shape: tuple, like: Value | None, emitter=None, **attrs) -> Value:
    """``broadcast_to``, ``reshape`` or ``sum_to_size`` of ``x`` to ``shape``.

    A size that is known by name only is that of an axis of ``x`` or ``like``; ``emitter`` is needed
    where neither is recorded.
    """
    if isinstance(x, Value) and x.type is not None and x.shape == shape:  # most calls: no bind
        return x
    if is_static_shape(shape):
        operands = (x,)
    else:
        operands = (x, sizes_operand(shape, [v for v in (x, like) if isinstance(v, Value)]))
    op = PRIMITIVES[name]
    emitter = emitter or like.emitter
    return emitter.apply(op, operands, op.complete({"shape": shape, **attrs}))


def sizes_operand(shape: tuple, values: list[Value]) -> Value:
    """``shape`` as an integer array, with the named sizes taken from the values that have them."""
    parts, emitter = [], values[0].emitter
    for n in shape:
        if type(n) is int:
            parts.append(integer_constant(emitter, [n]))
            continue
        # named sizes compare by their names: any axis of that size will do
        found = [(v, v.shape.index(n)) for v in values if v.type is not None and n in v.shape]
        if not found:
            raise ShapeError(f"batching needs the size {n} as a number: pass axis_size")
        value, axis = found[0]
        parts.append(emit_op("index", (emit_op("size", (value,)),), item=slice(axis, axis + 1)))
    return stack_sizes(parts)


def stack_sizes(sizes: Sequence[Value]) -> Value:
    """Parts of a shape as one: copied to where constants are, for sizes are made on the host."""
    if len(sizes) == 1:
        return sizes[0]
    return emit_op("concatenate", [emit_op("copy", (part,)) for part in sizes], axis=0, dtype=None)


def integer_constant(emitter, numbers: Sequence[int]) -> Value:
    """A constant array of sizes."""
    op = PRIMITIVES["constant"]
    return emitter.apply(op, (), op.complete({"value": np.array(numbers, dtype=np.int64)}))


def known_size(n, what: str) -> int:
    """``n``. Raises ShapeError if it is a name."""
    if type(n) is Size:
        raise ShapeError(f"{what}: batching needs the size {n} as a number\n  pass axis_size")
    return n


# ---- families of operations ----


def pointwise_rule(name: str) -> Callable:
    """The rule of an elementwise operation of any number of operands."""

    def rule(args, mapped, **attrs):
        return emit_op(name, align_ranks(args, mapped), **attrs)

    return batch_first(rule)


def shift_axes(axis, ndim: int):
    """Axes of a slice of rank ``ndim`` as those of the batch; None stands for all of them."""
    if axis is None:
        return tuple(range(1, ndim + 1))  # each example by itself
    if type(axis) is tuple:
        # negative axes count from the end, where the batch is not
        return tuple([a + 1 if a >= 0 else a for a in axis])
    return axis + 1 if axis >= 0 else axis


def axes_rule(name: str) -> Callable:
    """The rule of an operation on one array whose ``axis`` says one axis, several or all."""

    def rule(args, mapped, *, axis, transform=None, **attrs):
        (x,) = args
        return emit_op(name, args, axis=shift_axes(axis, rank_of(x, True)), **attrs)

    return batch_first(rule)


def reduction_rule(name: str) -> Callable:
    """The rule of a reduction, which may have a mask as its second operand."""

    def rule(args, mapped, *, axis, transform=None, **attrs):
        if len(args) == 1:
            return emit_op(name, args, axis=shift_axes(axis, rank_of(args[0], True)), **attrs)
        # only the mask may be mapped: then the array is reduced once for each
        x = broadcast_batch(args[0], mapped[0], first_mapped(args, mapped))
        ndim = rank_of(x, True)
        mask = widen_rank(args[1], ndim) if mapped[1] else args[1]
        return emit_op(name, (x, mask), axis=shift_axes(axis, ndim), **attrs)

    return batch_first(rule)


def flatten_examples(x: Value) -> Value:
    """The elements of each slice in a row."""
    shape = x.shape[1:]
    return (
        x if len(shape) == 1 else emit_with_shape("reshape", x, (x.shape[0], math.prod(shape)), x)
    )


def along_axis_rule(name: str) -> Callable:
    """The rule of an operation along one axis, or along all elements in a row, such as cumsum."""

    def rule(args, mapped, *, axis, transform=None, **attrs):
        (x,) = args
        if axis is None or not rank_of(x, True):  # of numbers too: NumPy makes rows of one
            return emit_op(name, (flatten_examples(x),), axis=1, **attrs)
        return emit_op(name, args, axis=shift_axes(axis, rank_of(x, True)), **attrs)

    return batch_first(rule)


def arg_reduction_rule(name: str) -> Callable:
    """The rule of argmax and its like: as ``along_axis_rule``, with ``keepdims``."""

    def rule(args, mapped, *, axis, keepdims):
        (x,) = args
        if axis is not None:
            return emit_op(name, args, axis=shift_axes(axis, rank_of(x, True)), keepdims=keepdims)
        out = emit_op(name, (flatten_examples(x),), axis=1, keepdims=False)
        return widen_rank(out, rank_of(x, True)) if keepdims else out

    return batch_first(rule)


def joining_rule(name: str) -> Callable:
    """The rule of an operation on several arrays alike along ``axis``: concatenate and stack."""

    def rule(args, mapped, *, axis, **attrs):
        parts = broadcast_batches(
            args, mapped
        )  # joined arrays do not broadcast: each needs the batch
        if axis is None:
            parts, axis = [flatten_examples(part) for part in parts], 0
        return emit_op(name, parts, axis=shift_axes(axis, 0), **attrs)

    return batch_first(rule)


@batch_first
def transpose_batch(args, mapped, /, *, axes):
    """The rule of transpose."""
    (x,) = args
    ndim = rank_of(x, True)
    order = range(ndim)[::-1] if axes is None else [a % ndim for a in axes]
    return emit_op("transpose", args, axes=(0, *[a + 1 for a in order]))


@batch_first
def squeeze_batch(args, mapped, *, axis):
    """The rule of squeeze, which must not take the batch for an axis of length 1."""
    (x,) = args
    if axis is None:
        axis = tuple([i for i, n in enumerate(shape_of(x, True)) if n == 1])
    return emit_op("squeeze", args, axis=shift_axes(axis, rank_of(x, True)))


def identity_batch(args, axes, **_):
    """The rule of an operation that hands its operand on."""
    return args[0], axes[0]


def composite_batch(stands_for: Callable, several: bool) -> Callable:
    """The rule of a composite: what ``stands_for(types, attrs)`` on the slices, batched."""

    def batch(args, axes, /, *, transform, **attrs):
        # None is no parameter of the program
        there = [i for i, arg in enumerate(args) if arg is not None]
        like, axis = next((args[i], axes[i]) for i in there if axes[i] is not None)
        program = stands_for(types_without_batch(args, axes), attrs)
        program, out_axes = transform(program, [axes[i] for i in there], like.shape[axis])
        results = like.emitter.call(program, [args[i] for i in there])
        return (results, out_axes) if several else (results[0], out_axes[0])

    return batch


def types_without_batch(args: Sequence, axes: Sequence) -> tuple:
    """The types of the slices; None for an operand that is None."""
    return tuple([type_without_batch(arg, axis) for arg, axis in zip(args, axes, strict=True)])


def type_without_batch(arg, axis):
    """The type of the slices of one operand along ``axis``."""
    if not isinstance(arg, Value):
        return None if arg is None else WEAK[type(arg)]
    kind = arg.type
    if axis is None or kind is None:
        return kind
    axis %= kind.ndim
    # strong: an element is no Python number
    return kind.with_shape(kind.shape[:axis] + kind.shape[axis + 1 :])

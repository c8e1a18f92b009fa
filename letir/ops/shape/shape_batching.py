"""Batching rules of the operations on shapes: size, sum_to_size, broadcast_to, reshape, full.

A shape that is an operand is the same for all examples; the batch puts one size in front of it.
"""

import math
from collections.abc import Sequence
from typing import Any

from letir.ast.builder import Value
from letir.errors import MissingRule
from letir.ops.define.batch_rules import (
    NO_BATCHED_SIZE,
    batch_first,
    emit_op,
    emit_with_shape,
    integer_constant,
    rank_of,
    shape_of,
    stack_sizes,
    transpose_batch,
)


def refuse_mapped_shape(name: str, sizes: Sequence, mapped: Sequence[bool]) -> None:
    """Raise MissingRule if a shape depends on the example."""
    if any(mapped[len(mapped) - len(sizes) :]):
        raise MissingRule(
            f"{name} has no batch rule for a mapped shape: {NO_BATCHED_SIZE.reason}\n"
            "  pass shapes that all examples share"
        )


def with_batch(x: Value, sizes: Sequence, shape: tuple | None, ones: int = 0) -> tuple[list, tuple]:
    """(operands, attribute) for a shape with the batch size of ``x`` and ``ones`` axes of length 1
    in front of it.
    """
    lead = (1,) * ones
    if not sizes:
        return [], (x.shape[0], *lead, *shape)
    # a slice, so that the size is 1-d and can be concatenated
    size_of = emit_op("index", (emit_op("size", (x,)),), item=slice(0, 1))
    longer = stack_sizes([size_of, *([integer_constant(x.emitter, lead)] if ones else []), *sizes])
    return [longer], None if shape is None else (x.shape[0], *lead, *shape)


def _emit_sized(name: str, x: Value, sizes: list, shape: tuple | None, **attrs) -> Value:
    """The operation ``name`` to a shape that is an operand or an attribute."""
    if sizes:
        return emit_op(name, (x, *sizes), shape=shape, **attrs)
    return emit_with_shape(name, x, shape, x, **attrs)


def rank_of_shape(sizes: Sequence, shape: tuple | None) -> int:
    """The number of sizes in a shape. Raises MissingRule if it is unknown."""
    if shape is not None:
        return len(shape)
    rank_of(sizes[0])
    return sizes[0].shape[0]


def size_batch(args: Sequence, axes: Sequence) -> tuple[Value, None]:
    """The batching rule of size: the shape of one example, the same for all."""
    (x,), (axis,) = args, axes
    sizes = emit_op("size", args)
    axis %= rank_of(x)
    if axis == 0:
        return emit_op("index", (sizes,), item=slice(1, None)), None
    parts = [emit_op("index", (sizes,), item=part) for part in (slice(axis), slice(axis + 1, None))]
    return stack_sizes(parts), None


@batch_first
def sum_to_size_batch(args: Sequence, mapped: tuple, *, shape: tuple | None) -> Value:
    """The batching rule of sum_to_size."""
    x, *sizes = args
    refuse_mapped_shape("sum_to_size", sizes, mapped)
    if shape is not None and shape_of(x, True) == shape:
        return x
    lead = rank_of(x, True) - rank_of_shape(sizes, shape)
    # axes of length 1 after the batch axis keep leading axes of an example from aligning with it
    total = _emit_sized("sum_to_size", x, *with_batch(x, sizes, shape, lead))
    return emit_op("squeeze", (total,), axis=tuple(range(1, lead + 1))) if lead else total


@batch_first
def broadcast_to_batch(args: Sequence, mapped: tuple, *, shape: tuple | None) -> Value:
    """The batching rule of broadcast_to."""
    x, *sizes = args
    refuse_mapped_shape("broadcast_to", sizes, mapped)
    more = rank_of_shape(sizes, shape) - rank_of(x, True)
    operand = emit_op("expand_dims", (x,), axis=tuple(range(1, more + 1))) if more else x
    return _emit_sized("broadcast_to", operand, *with_batch(x, sizes, shape))


@batch_first
def reshape_batch(args: Sequence, mapped: tuple, *, shape: tuple | None, order: str) -> Value:
    """The batching rule of reshape. Fortran order is the C order of the transposes."""
    x, *sizes = args
    refuse_mapped_shape("reshape", sizes, mapped)
    if shape is not None and -1 in shape:
        rest = math.prod([n for n in shape if n != -1])
        shape = tuple([math.prod(shape_of(x, True)) // rest if n == -1 else n for n in shape])
    if order == "C" or max(rank_of(x, True), rank_of_shape(sizes, shape)) < 2:
        return _emit_sized("reshape", x, *with_batch(x, sizes, shape), order="C")
    if shape is None:
        raise MissingRule("reshape in Fortran order has no batch rule for an unknown shape")
    (turned, _) = transpose_batch((x,), (0,), axes=None)
    # transposing the examples keeps the batch in front, which reshape(order="F") would not
    turned = emit_with_shape("reshape", turned, (x.shape[0], *shape[::-1]), x, order="C")
    return transpose_batch((turned,), (0,), axes=None)[0]


@batch_first
def full_batch(args: Sequence, mapped: tuple, *, shape: tuple | None, dtype: Any) -> Value:
    """The batching rule of full, whose fill value may be mapped."""
    sizes = args[1:]
    refuse_mapped_shape("full", sizes, mapped)
    if not mapped[0]:  # only a size is mapped
        raise MissingRule(
            f"full has no batch rule for a mapped shape: {NO_BATCHED_SIZE.reason}\n"
            "  pass shapes that all examples share"
        )
    return broadcast_to_batch(args, [0, *[None] * len(sizes)], shape=shape)[0].astype(dtype)

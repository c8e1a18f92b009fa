"""Batching rules of matmul, dot and einsum: few large matrix products instead of many small ones.

An operand that all examples share is multiplied once, by the rows of all examples stacked in one
matrix: a shared matrix times a mapped vector is one product of matrices.
"""

import math
import string
from collections.abc import Callable, Sequence

from letir.ast.builder import Value
from letir.ast.symbolic_sizes import is_static_shape
from letir.ops.define.batch_rules import (
    align_ranks,
    batch_first,
    emit_op,
    emit_with_shape,
    move_to_front,
    rank_of,
    shape_of,
    widen_rank,
)


def _emit_matmul(x: Value, y: Value) -> Value:
    """Record ``x @ y``."""
    return emit_op("matmul", (x, y))


def _swap_last_axes(x: Value) -> Value:
    """``x`` with its last two axes exchanged."""
    order = list(range(rank_of(x)))
    order[-2:] = order[:-3:-1]
    return emit_op("transpose", (x,), axes=tuple(order))


# ---- matmul ----


@batch_first
def batched_matmul(args: Sequence, mapped: Sequence[bool]) -> Value:
    """The batching rule of matmul."""
    x, y = args
    ranks = rank_of(x, mapped[0]), rank_of(y, mapped[1])
    if mapped == (True, False):
        return _rows_times(x, y, ranks)
    if mapped == (False, True):
        return _times_columns(x, y, ranks)
    if ranks[0] == 1:
        x = emit_op("expand_dims", (x,), axis=-2)  # a row; the axis is squeezed at the end
    if ranks[1] == 1:
        y = emit_op("expand_dims", (y,), axis=-1)
    most = max(rank_of(x, True), rank_of(y, True))
    out = _emit_matmul(widen_rank(x, most), widen_rank(y, most))
    axes = tuple([axis for axis, n in ((-2, ranks[0]), (-1, ranks[1])) if n == 1])
    return emit_op("squeeze", (out,), axis=axes) if axes else out


def _rows_times(x: Value, y: Value, ranks: tuple[int, int]) -> Value:
    """Mapped ``x`` times shared ``y``. If ``y`` is a matrix, the rows of all examples form one
    matrix.
    """
    if ranks[1] > 2:
        if ranks[0] == 1:  # each example is a row, broadcast over the leading axes of y
            x = emit_op("expand_dims", (x,), axis=1)
            return emit_op("squeeze", (_emit_matmul(widen_rank(x, ranks[1]), y),), axis=-2)
        return _emit_matmul(widen_rank(x, ranks[1]), y)
    lead = x.shape[:-1]
    # the vectors of all examples are rows of a matrix already; a reshape would multiply symbolic
    # sizes
    if ranks[0] == 1 or not is_static_shape(lead):
        return _emit_matmul(x, y)
    below = emit_with_shape("reshape", x, (math.prod(lead), x.shape[-1]), x)
    out = _emit_matmul(below, y)
    return emit_with_shape("reshape", out, (*lead, *out.shape[1:]), x)


def _times_columns(x: Value, y: Value, ranks: tuple[int, int]) -> Value:
    """Shared ``x`` times mapped ``y``. If ``x`` is a matrix, ``_rows_times`` of the transposes."""
    if ranks[0] > 2:
        if ranks[1] == 1:
            y = emit_op("expand_dims", (y,), axis=-1)
            return emit_op("squeeze", (_emit_matmul(x, widen_rank(y, ranks[0])),), axis=-1)
        return _emit_matmul(x, widen_rank(y, ranks[0]))
    if ranks[1] == 1:
        # (x @ v).T is v.T @ x.T: one product
        return _emit_matmul(y, emit_op("transpose", (x,), axes=None))
    if ranks[0] == 2 and ranks[1] == 2 and type(y.shape[-1]) is int and y.shape[-1] <= _FEW_COLUMNS:
        return _swap_last_axes(_rows_times(_swap_last_axes(y), x.T, (2, 2)))
    return _emit_matmul(x, y)


# ---- dot and einsum ----

_LABELS = string.ascii_letters
_FEW_COLUMNS = (
    8  # up to this many, copying the operands to one product is faster than stacked products
)


@batch_first
def batched_dot(args: Sequence, mapped: Sequence[bool]) -> Value:
    """The batching rule of dot, which sums over the last axis of x and the last but one of y."""
    (x, y), (by_x, by_y) = args, mapped
    ranks = rank_of(x, by_x), rank_of(y, by_y)
    if 0 in ranks:
        x, y = align_ranks(args, mapped)
        return emit_op("mul", (x, y))
    if max(ranks) <= 2 and ranks != (1, 1):
        return batched_matmul(args, [0 if is_mapped else None for is_mapped in mapped])[0]
    if not by_y:
        return emit_op("dot", (x, y))
    if not by_x:
        if ranks[1] == 1:
            return move_to_front(emit_op("dot", (x, emit_op("transpose", (y,), axes=None))), -1)
        return move_to_front(emit_op("dot", (x, y)), ranks[0] - 1)
    return _dot_as_matmul(x, y)


def _dot_as_matmul(x: Value, y: Value) -> Value:
    """``dot`` of two mapped arrays as stacked matrix products."""
    shape, other = shape_of(x, True), shape_of(y, True)
    axis = max(len(other) - 2, 0)
    remaining = other[:axis] + other[axis + 1 :]
    order = (0, axis + 1, *[i + 1 for i in range(len(other)) if i != axis])
    y = emit_op("transpose", (y,), axes=order)
    n, inner = x.shape[0], shape[-1]
    left = emit_with_shape("reshape", x, (n, math.prod(shape[:-1]), inner), x)
    right = emit_with_shape("reshape", y, (n, inner, math.prod(remaining)), y)
    return emit_with_shape("reshape", _emit_matmul(left, right), (n, *shape[:-1], *remaining), x)


def batched_einsum(parse: Callable) -> Callable:
    """The batching rule of einsum, which adds a label for the batch. ``parse(subscripts, ranks)``
    gives the labels of the operands and of the result.
    """

    @batch_first
    def rule(args, mapped, *, subscripts, optimize):
        ranks = [rank_of(arg, is_mapped) for arg, is_mapped in zip(args, mapped, strict=True)]
        labels, out = parse(subscripts, ranks)
        # einsum has 52 letters, and parse() uses the last ones for ...
        label = next(c for c in _LABELS if c not in "".join(labels) + out)
        labels = [label * is_mapped + part for part, is_mapped in zip(labels, mapped, strict=True)]
        text = f"{','.join(labels)}->{label}{out}"
        return emit_op("einsum", args, subscripts=text, optimize=optimize or not all(mapped))

    return rule

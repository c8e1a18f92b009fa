"""Batching rules of products: as few and as large matrix products as there can be.

What all examples share is multiplied once: rows of all examples stand below each other, so that a
matrix times a mapped vector is one product of matrices, not a stack of small ones.
"""

import math
import string

from letir.ast.builder import Value
from letir.ast.symbolic_sizes import is_static_shape
from letir.ops.define.batch_rules import (
    aligned,
    emitted,
    in_front,
    rank,
    resized,
    shape_of,
    to_front,
    widened,
)


def _product(x: Value, y: Value) -> Value:
    """``x @ y``."""
    return emitted("matmul", (x, y))


def _swapped(x: Value) -> Value:
    """``x`` with its last two axes exchanged."""
    order = list(range(rank(x)))
    order[-2:] = order[:-3:-1]
    return emitted("transpose", (x,), axes=tuple(order))


# ---- matmul ----


@in_front
def batched_matmul(args, mapped):
    """The rule of matmul."""
    x, y = args
    ranks = rank(x, mapped[0]), rank(y, mapped[1])
    if mapped == (True, False):
        return _rows_times(x, y, ranks)
    if mapped == (False, True):
        return _times_columns(x, y, ranks)
    if ranks[0] == 1:
        x = emitted("expand_dims", (x,), axis=-2)  # a row, whose axis goes at the end
    if ranks[1] == 1:
        y = emitted("expand_dims", (y,), axis=-1)
    most = max(rank(x, True), rank(y, True))
    out = _product(widened(x, most), widened(y, most))
    gone = tuple([axis for axis, n in ((-2, ranks[0]), (-1, ranks[1])) if n == 1])
    return emitted("squeeze", (out,), axis=gone) if gone else out


def _rows_times(x: Value, y: Value, ranks: tuple[int, int]) -> Value:
    """Mapped ``x`` times shared ``y``: rows of all examples below each other, where ``y`` is a
    matrix.
    """
    if ranks[1] > 2:
        if ranks[0] == 1:  # a row beside which the axes of y stand
            x = emitted("expand_dims", (x,), axis=1)
            return emitted("squeeze", (_product(widened(x, ranks[1]), y),), axis=-2)
        return _product(widened(x, ranks[1]), y)
    lead = x.shape[:-1]
    # vectors of all examples are the rows of a matrix already; named sizes have no product to
    # reshape to
    if ranks[0] == 1 or not is_static_shape(lead):
        return _product(x, y)
    below = resized("reshape", x, (math.prod(lead), x.shape[-1]), x)
    out = _product(below, y)
    return resized("reshape", out, (*lead, *out.shape[1:]), x)


def _times_columns(x: Value, y: Value, ranks: tuple[int, int]) -> Value:
    """Shared ``x`` times mapped ``y``: as ``_rows_times`` of the transposes, where ``x`` is a
    matrix.
    """
    if ranks[0] > 2:
        if ranks[1] == 1:
            y = emitted("expand_dims", (y,), axis=-1)
            return emitted("squeeze", (_product(x, widened(y, ranks[0])),), axis=-1)
        return _product(x, widened(y, ranks[0]))
    if ranks[1] == 1:
        # (x @ v).T is v.T @ x.T: one product
        return _product(y, emitted("transpose", (x,), axes=None))
    if ranks[0] == 2 and ranks[1] == 2 and type(y.shape[-1]) is int and y.shape[-1] <= _FEW_COLUMNS:
        return _swapped(_rows_times(_swapped(y), x.T, (2, 2)))
    return _product(x, y)


# ---- dot and einsum ----

_LABELS = string.ascii_letters
_FEW_COLUMNS = 8  # below, a stack of products is slower than the copy that makes one of it


@in_front
def batched_dot(args, mapped):
    """The rule of dot: the last axis of ``x`` with the last but one of ``y``, all others kept."""
    (x, y), (by_x, by_y) = args, mapped
    ranks = rank(x, by_x), rank(y, by_y)
    if 0 in ranks:
        x, y = aligned(args, mapped)
        return emitted("mul", (x, y))
    if max(ranks) <= 2 and ranks != (1, 1):
        return batched_matmul(args, [0 if there else None for there in mapped])[0]
    if not by_y:
        return emitted("dot", (x, y))
    if not by_x:
        if ranks[1] == 1:
            return to_front(emitted("dot", (x, emitted("transpose", (y,), axes=None))), -1)
        return to_front(emitted("dot", (x, y)), ranks[0] - 1)
    return _contracted(x, y)


def _contracted(x: Value, y: Value) -> Value:
    """``dot`` of two mapped arrays, as a product of matrices."""
    shape, other = shape_of(x, True), shape_of(y, True)
    axis = max(len(other) - 2, 0)
    kept = other[:axis] + other[axis + 1 :]
    order = (0, axis + 1, *[i + 1 for i in range(len(other)) if i != axis])
    y = emitted("transpose", (y,), axes=order)
    n, inner = x.shape[0], shape[-1]
    left = resized("reshape", x, (n, math.prod(shape[:-1]), inner), x)
    right = resized("reshape", y, (n, inner, math.prod(kept)), y)
    return resized("reshape", _product(left, right), (n, *shape[:-1], *kept), x)


def batched_einsum(parsed):
    """The rule of einsum, with a label for the batch; ``parsed`` reads subscripts."""

    @in_front
    def rule(args, mapped, *, subscripts, optimize):
        ranks = [rank(arg, there) for arg, there in zip(args, mapped, strict=True)]
        labels, out = parsed(subscripts, ranks)
        # einsum has 52 letters; parsed() spells ... out with the last ones
        label = next(c for c in _LABELS if c not in "".join(labels) + out)
        labels = [label * there + part for part, there in zip(labels, mapped, strict=True)]
        text = f"{','.join(labels)}->{label}{out}"
        return emitted("einsum", args, subscripts=text, optimize=optimize or not all(mapped))

    return rule

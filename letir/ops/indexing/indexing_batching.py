"""Batching rules of index, index_set, index_add and assemble: one index for all examples.

If only the indexed array is mapped, its batch axis is indexed by a full slice. If index arrays are
mapped, it is indexed by ``arange(batch)`` together with them, so that each example uses its own
indices.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.attrs import Here
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import Size
from letir.ops.define.batch_rules import (
    batch_first,
    broadcast_batch,
    emit_op,
    emit_with_shape,
    first_mapped,
    flatten_examples,
    known_size,
    move_to_front,
    rank_of,
    shape_of,
    sizes_operand,
    widen_rank,
)
from letir.ops.indexing.index_expressions import expand_item, group_parts, split_sizes
from letir.ops.shape.shape_batching import rank_of_shape, refuse_mapped_shape, with_batch

_EVERY = slice(None)


@frozen
class _Layout:
    """The axes of ``x[item]`` for one example.

    It has ``kept`` axes from slices and None, and ``depth`` axes from the broadcast index arrays,
    after the first ``start`` kept axes. ``is_separated``: a slice or None stands between the index
    arrays, so that their axes come first.
    """

    start: int
    depth: int
    kept: int
    is_separated: bool

    @classmethod
    def from_entries(cls, entries: list, kinds: list[tuple[int, bool]]) -> "_Layout":
        """``entries``: one for each axis; ``kinds``: (rank, whether it is a mask) of each array."""
        # (position, number of kept axes before it) for each array and integer
        places: list[tuple[int, int]] = []
        count = 0
        for position, entry in enumerate(entries):
            if entry is None or type(entry) is slice:
                count += 1
            elif entry is not ...:
                places.append((position, count))
        # must agree with index_expressions.indexed_shape
        is_separated = any(b[0] - a[0] > 1 for a, b in itertools.pairwise(places))
        depth = max((1 if is_mask else ndim for ndim, is_mask in kinds), default=0)
        return cls(
            places[0][1] if places and not is_separated else 0,
            depth,
            count,
            is_separated and depth > 0,
        )


class BatchedIndex:
    """An index whose arrays may be mapped, on an array with the batch in front.

    Mapped masks become index arrays, and mapped arrays have shape (batch, ...).
    """

    def __init__(
        self, like: Value, shape: tuple, item: Any, arrays: Sequence, mapped: Sequence[bool]
    ):
        self.like, self.mapped = like, any(mapped)
        avals = [a.type.with_shape(shape_of(a, m)) for a, m in zip(arrays, mapped, strict=True)]
        entries = expand_item(shape, item, tuple(avals))
        masks = [(aval.ndim, aval.dtype.kind == "b") for aval in avals]
        self.layout = _Layout.from_entries(entries, masks)
        self.arrays: list[Value] = []
        self.entries: list = []
        rest = iter(zip(arrays, mapped, masks, strict=True))
        for entry in entries:
            if type(entry) is Here:
                self.add(entry, *next(rest))
            else:
                self.entries.append(entry)

    def add(self, entry: Here, array: Value, is_mapped: bool, kind: tuple[int, bool]) -> None:
        """Add the entry for one array."""
        # a 0-d mask adds an axis and indexes none: it stays a mask, the same for all examples
        if not is_mapped or kind == (0, True):
            self.entries.append(entry)
            self.arrays.append(
                array if not is_mapped else _boolean_constant(array, bool(entry.count))
            )
            return
        indices = _mask_to_indices(array, entry.count) if kind[1] else [array]
        self.entries += [Here()] * len(indices)
        self.arrays += [widen_rank(places, self.layout.depth) for places in indices]

    def with_full_slice(self) -> tuple[tuple, list]:
        """(item, arrays) with a full slice for the batch axis, for arrays that are not mapped."""
        return (_EVERY, *self.entries), self.arrays

    def with_arange(self) -> tuple[tuple, list]:
        """(item, arrays) with ``arange(batch)`` for the batch axis; the axes of the arrays then
        come first.
        """
        n = self.like.shape[0]
        steps = emit_with_shape(
            "reshape", _integers_below(self.like, n), (n, *[1] * self.layout.depth), self.like
        )
        return (Here(), *self.entries), [steps, *self.arrays]


def _integers_below(like: Value, n: int | Size) -> Value:
    """``arange(n)``, where ``n`` is a number or a symbolic size of ``like``."""
    if type(n) is Size:
        op, dtype = PRIMITIVES["ones"], np.dtype(np.int64)
        sizes = sizes_operand((n,), [like])
        ones = like.emitter.apply(op, (sizes,), op.complete({"shape": (n,), "dtype": dtype}))
        return emit_op("cumsum", (ones,), axis=0, dtype=dtype) - 1
    op = PRIMITIVES["arange"]
    attrs = {"start": 0, "stop": n, "step": 1, "dtype": np.dtype(np.int64)}
    return like.emitter.apply(op, (), op.complete(attrs))


def _boolean_constant(like: Value, value: bool) -> Value:
    """A boolean constant, the same for all examples."""
    op = PRIMITIVES["constant"]
    return like.emitter.apply(op, (), op.complete({"value": np.bool_(value)}))


def _mask_to_indices(mask: Value, count: int) -> list[Value]:
    """One index array for each axis of a mapped mask, which selects ``count`` elements in each
    example.
    """
    shape, n = shape_of(mask, True), known_size(mask.shape[0], "a mask")
    flat, size = flatten_examples(mask), math.prod(shape)
    everywhere = emit_with_shape("broadcast_to", _integers_below(mask, size), (n, size), mask)
    # each example selects `count` elements, so that the indices form a matrix
    rows = emit_op("index", (everywhere, flat), item=Here(n * count))
    rest = emit_with_shape("reshape", rows, (n, count), mask)
    axes: list[Value] = []
    for length in reversed(shape):
        axes.append(rest % length)  # as np.unravel_index, in C order
        rest = rest // length
    return axes[::-1]


# ---- reading ----


@batch_first
def batched_index(args: Sequence, mapped: Sequence[bool], *, item: Any) -> Value:
    """The batching rule of index."""
    (x, *arrays), (by_x, *by_arrays) = args, mapped
    batched = BatchedIndex(first_mapped(args, mapped), shape_of(x, by_x), item, arrays, by_arrays)
    layout = batched.layout
    if not batched.mapped:
        out = _emit_index(x, *batched.with_full_slice())
        return move_to_front(out, layout.depth if layout.is_separated else 0)
    if not by_x:
        out = _emit_index(x, tuple(batched.entries), batched.arrays)
        return move_to_front(out, layout.start)
    return _restore_axes(_emit_index(x, *batched.with_arange()), layout)


def _emit_index(x: Value, item: tuple, arrays: list) -> Value:
    """Record ``x[item]``, where ``item`` has ``Here`` in place of the arrays."""
    return emit_op("index", (x, *arrays), item=item)


def _restore_axes(out: Value, layout: _Layout) -> Value:
    """``out`` with the axes from the arrays, which come right after the batch, moved to where they
    are for one example.
    """
    if layout.start == 0 or layout.depth == 0:
        return out
    indexed = range(1, 1 + layout.depth)
    slices = range(1 + layout.depth, 1 + layout.depth + layout.kept)
    order = (0, *slices[: layout.start], *indexed, *slices[layout.start :])
    return emit_op("transpose", (out,), axes=order)


# ---- writing ----


def batched_write(name: str) -> Callable:
    """The batching rule of index_set, index_add or ufunc_at."""

    @batch_first
    def rule(args, mapped, *, item, **attrs):
        (x, new, *arrays), (by_x, by_new, *by_arrays) = args, mapped
        like = first_mapped(args, mapped)
        x = broadcast_batch(x, by_x, like)
        batched = BatchedIndex(like, shape_of(x, True), item, arrays, by_arrays)
        layout = batched.layout
        new = _align_written(new, by_new, layout.depth + layout.kept)
        # if separated: with a slice the batch axis would come after the axes from the arrays
        if not batched.mapped and not layout.is_separated:
            item, arrays = batched.with_full_slice()
        else:
            item, arrays = batched.with_arange()
            new = _array_axes_first(new, by_new, layout)
        return emit_op(name, (x, new, *arrays), item=item, **attrs)

    return rule


def _align_written(new, is_mapped: bool, ndim: int):
    """The written operand aligned with a part of rank ``ndim``: superfluous leading axes of length
    1 are dropped.
    """
    more = rank_of(new, is_mapped) - ndim
    ahead = range(is_mapped, is_mapped + max(more, 0))
    if any(new.shape[i] != 1 for i in ahead):  # allowed only where the part is empty
        shape = (*new.shape[:is_mapped], *new.shape[is_mapped + more :])
        new = emit_op("reshape", (new,), shape=shape, order="C")
    elif more > 0:
        new = emit_op("squeeze", (new,), axis=tuple(ahead))
    return widen_rank(new, ndim) if is_mapped else new


def _array_axes_first(new, is_mapped: bool, layout: _Layout):
    """The written operand with the axes from the arrays moved in front of the kept axes."""
    start, depth, ndim = layout.start, layout.depth, layout.depth + layout.kept
    if start == 0 or depth == 0 or rank_of(new, is_mapped) <= layout.kept - start:
        return new
    missing = ndim - rank_of(new, is_mapped)
    if missing:
        new = emit_op("expand_dims", (new,), axis=tuple(range(is_mapped, is_mapped + missing)))
    order = (*range(start, start + depth), *range(start), *range(start + depth, ndim))
    axes = (0, *[i + 1 for i in order]) if is_mapped else order
    return emit_op("transpose", (new,), axes=axes)


# ---- assemble ----


@batch_first
def batched_assemble(args: Sequence, mapped: tuple, *, items: tuple, shape: tuple | None) -> Value:
    """The batching rule of assemble."""
    like = first_mapped(args, mapped)
    (sizes, rest), (_, rest_mapped) = split_sizes(args, shape), split_sizes(mapped, shape)
    refuse_mapped_shape("assemble", sizes, mapped[: len(sizes)])
    places = shape or (1,) * rank_of_shape(sizes, shape)
    operands, items_of_parts = [], []
    for part, flags in zip(group_parts(items, rest), group_parts(items, rest_mapped), strict=True):
        item, operand, arrays = _batched_part(part, flags, places, like)
        items_of_parts.append(item)
        operands += [operand, *arrays]
    batch_sizes, shape = with_batch(like, sizes, shape)
    if not batch_sizes and not is_static_shape(shape):
        batch_sizes = [sizes_operand(shape, [like])]
    return emit_op("assemble", (*batch_sizes, *operands), items=tuple(items_of_parts), shape=shape)


def _batched_part(part: tuple, flags: tuple, shape: tuple, like: Value) -> tuple:
    """(item, part, arrays) of one part, for a result with the batch in front."""
    (item, operand, arrays), (_, is_mapped, by_arrays) = part, flags
    batched = BatchedIndex(like, shape, item, arrays, by_arrays)
    operand = broadcast_batch(operand, is_mapped, like)
    if not batched.mapped and not batched.layout.is_separated:
        new_item, arrays = batched.with_full_slice()
        return new_item, operand, arrays
    new_item, arrays = batched.with_arange()
    return new_item, _array_axes_first(operand, True, batched.layout), arrays

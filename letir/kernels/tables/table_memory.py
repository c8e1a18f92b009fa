"""The memory of a table of instructions: the places of values, and the reuse of dead memory."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from attrs import define, field, frozen

from letir.ast.terms import Bind
from letir.kernels.flat_arrays.array_moves import view_layout
from letir.kernels.flat_arrays.flat_memory import c_strides
from letir.kernels.scalar_lowering import NoKernel

CONSTANTS = 1 << 29  # the first address of constants, until their final addresses are known
_MAX_MEMORY = 1 << 19  # the most elements of the memory


@define(eq=False)
class Root:
    """The memory of a value. ``uses``: how often later instructions use the value or its views."""

    start: int
    size: int
    uses: int = 0


@frozen(eq=False)
class TablePlace:
    """Elements in memory from ``start`` on, with ``strides`` in elements."""

    root: Root
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def broadcast_strides(place: TablePlace, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a value that is broadcast to ``shape``."""
    lead = len(shape) - len(place.shape)
    if lead < 0:
        raise NoKernel
    result = [0] * lead
    for n, step, length in zip(place.shape, place.strides, shape[lead:], strict=True):
        if n != length and n != 1:
            raise NoKernel
        result.append(0 if n == 1 else step)
    return tuple(result)


def merged_loops(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]:
    """The lengths of as few loops as possible over a shape, and the steps of each value in them."""
    lengths: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        own = [strides_of[axis] for strides_of in strides]
        if lengths and all(merged[-1] == n * step for merged, step in zip(steps, own, strict=True)):
            lengths[-1] *= n
            for merged, step in zip(steps, own, strict=True):
                merged[-1] = step
            continue
        lengths.append(n)
        for merged, step in zip(steps, own, strict=True):
            merged.append(step)
    return lengths, steps


@define(eq=False)
class TableMemory:
    """Allocates memory. ``end``: the first unused address; ``free``: {size: addresses to reuse},
    by ``_reserved`` sizes.
    """

    end: int
    free: dict[int, list[int]] = field(factory=dict)

    def new(self, shape: tuple[int, ...]) -> TablePlace:
        """Memory for a value."""
        size = math.prod(shape)
        reserved = _reserved(size)
        starts = self.free.get(reserved)
        if starts:
            start = starts.pop()
        else:
            start, self.end = self.end, self.end + reserved
            if self.end > _MAX_MEMORY:
                raise NoKernel
        return TablePlace(Root(start, size), start, shape, c_strides(shape))

    def release(self, root: Root) -> None:
        """Note that the memory of a value may be used again."""
        if root.start < CONSTANTS:
            self.free.setdefault(_reserved(root.size), []).append(root.start)


def _reserved(size: int) -> int:
    """The number of elements reserved for a value: at most an eighth more than its size.

    In a loop over parts of growing or shrinking size, each then finds memory of an earlier one.
    """
    step = 1 << max(size.bit_length() - 4, 0)  # an eighth of the largest power of two below
    return -(-size // step) * step


def has_descending_strides(x: TablePlace) -> bool:
    """Whether the strides of a value decrease from axis to axis, as in C order."""
    steps = [step for n, step in zip(x.shape, x.strides, strict=True) if n != 1]
    return all(a >= b > 0 for a, b in pairwise(steps))


def index_place(x: TablePlace, item: Any) -> TablePlace:
    """The place of a part of a value."""
    entries = list(item) if type(item) is tuple else [item]
    if ... in entries:
        at = next(n for n, entry in enumerate(entries) if entry is ...)
        missing = len(x.shape) - len(entries) + 1
        entries[at : at + 1] = [slice(None)] * missing
    entries += [slice(None)] * (len(x.shape) - len(entries))
    start, shape, strides = x.start, [], []
    for entry, n, step in zip(entries, x.shape, x.strides, strict=True):
        if type(entry) is int:
            start += (entry + n if entry < 0 else entry) * step
            continue
        first, stop, stride = entry.indices(n)
        length = len(range(first, stop, stride))
        start += first * step if length else 0
        shape.append(length)
        strides.append(step * stride)
    return TablePlace(x.root, start, tuple(shape), tuple(strides))


def is_flat(x: TablePlace) -> bool:
    """Whether a value is contiguous in C order."""
    own = zip(x.shape, x.strides, c_strides(x.shape), strict=True)
    return all(n == 1 or step == dense for n, step, dense in own)


def view_places(bind: Bind, x: TablePlace) -> list[TablePlace] | None:
    """The places of the results of a view of ``x``; None if one is not a view in NumPy."""
    views = None if 0 in x.shape else view_layout(bind, x.shape, x.strides)
    if views is None:
        return None
    return [TablePlace(x.root, x.start + offset, *layout) for offset, *layout in views]

"""Values of a kernel in flat arrays: where each lies, and loops over its elements."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Operand
from letir.kernels.scalar_lowering import NoKernel

MAX_ELEMENTS = 1 << 13  # the most elements of a value: beyond, arithmetic takes longer than calls
_INDEX = np.dtype("int64")


@frozen(eq=False)
class FlatPlace:
    """Elements of a flat array from ``start`` on, with ``strides`` in elements.

    ``root``: the place of which this one is a view.
    """

    array: Array
    start: Operand
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    root: "FlatPlace | None" = None

    @property
    def owner(self) -> "FlatPlace":
        return self if self.root is None else self.root

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_flat(self) -> bool:
        """Whether the elements lie one after the other in the order of C."""
        return all(
            n == 1 or step == own
            for n, step, own in zip(self.shape, self.strides, c_strides(self.shape), strict=True)
        )

    @property
    def is_in_order(self) -> bool:
        """Whether the elements lie in the order of C, with or without gaps between rows."""
        steps = [step for n, step in zip(self.shape, self.strides, strict=True) if n > 1]
        return all(a > b > 0 for a, b in zip(steps, [*steps[1:], 0.5], strict=True))


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array in the order of C, in elements."""
    return tuple([math.prod(shape[n + 1 :]) for n in range(len(shape))])


def flatten_group(shape: tuple, places: dict[Any, FlatPlace]) -> tuple[tuple, dict[Any, FlatPlace]]:
    """The shape of a group's loops, and its operands; a single loop if all are in C order."""
    simple = all(p.size == 1 or (p.shape == shape and p.is_flat) for p in places.values())
    if not simple or len(shape) < 2:
        return shape, places
    size = math.prod(shape)
    return (size,), {
        arg: FlatPlace(p.array, p.start, (), ())
        if p.size == 1
        else FlatPlace(p.array, p.start, (size,), (1,))
        for arg, p in places.items()
    }


@define(eq=False)
class Memory:
    """Allocates places of values; ``sizes``: the elements of scratch memory so far, by dtype."""

    builder: Builder = field(factory=Builder)
    scratch: dict[np.dtype, Array] = field(factory=dict)
    sizes: dict[np.dtype, int] = field(factory=dict)

    def flat_array(self, name: str, aval: Any) -> Array:
        return Array(name, aval.dtype, ("", f"{name}_0"))

    def flat_place(self, array: Array, shape: tuple[int, ...]) -> FlatPlace:
        return FlatPlace(array, self.builder.number(0, _INDEX), shape, c_strides(shape))

    def new(self, aval: Any) -> FlatPlace:
        """Memory for a value of this type."""
        return self.scratch_place(aval.dtype, aval.shape)

    def scratch_place(self, dtype: np.dtype, shape: tuple[int, ...]) -> FlatPlace:
        size = math.prod(shape)
        if not 0 < size <= MAX_ELEMENTS:
            raise NoKernel
        if dtype not in self.scratch:
            name = f"z{len(self.scratch)}"
            self.scratch[dtype] = Array(name, dtype, ("", f"{name}_0"))
            self.sizes[dtype] = 0
        start = self.sizes[dtype]
        self.sizes[dtype] += -(-size // 8) * 8  # rows of vectors
        return FlatPlace(
            self.scratch[dtype], self.builder.number(start, _INDEX), shape, c_strides(shape)
        )

    def row(self, whole: FlatPlace, index: Operand) -> FlatPlace:
        """An element along the first axis."""
        b, step = self.builder, whole.strides[0]
        start = b.add(whole.start, b.let("mul", index, b.number(step, _INDEX)))
        return FlatPlace(whole.array, start, whole.shape[1:], whole.strides[1:])

    def index_of(self, place: FlatPlace, index: Sequence[Operand]) -> tuple[Operand, Operand]:
        """The position of an element in a value's flat array; ``index`` is broadcast."""
        b, result = self.builder, place.start
        for i, step, n in zip(
            index[len(index) - len(place.shape) :], place.strides, place.shape, strict=True
        ):
            if n == 1 or step == 0:
                continue
            result = b.add(result, i if step == 1 else b.let("mul", i, b.number(step, _INDEX)))
        return b.number(0, _INDEX), result

    def get(self, place: FlatPlace, index: Sequence[Operand]) -> Operand:
        return self.builder.load(place.array, self.index_of(place, index))

    def loaded(self, place: FlatPlace) -> Operand:
        """The only element of a value."""
        return self.get(place, [self.builder.number(0, _INDEX)] * len(place.shape))

    def put(self, place: FlatPlace, index: Sequence[Operand], value: Operand) -> None:
        self.builder.store(place.array, self.index_of(place, index), value)

    def loop_over(self, shape: tuple[int, ...], body: Callable[[list[Operand]], None]) -> None:
        """Write loops over the indices of a shape around ``body(index)``."""
        self.nested_loops(shape, [], body)

    def nested_loops(self, shape: tuple, index: list[Operand], body: Callable) -> None:
        b = self.builder
        if not shape:
            body(index)
        elif shape[0] == 1:
            self.nested_loops(shape[1:], [*index, b.number(0, _INDEX)], body)
        else:
            with b.loop(b.number(shape[0], _INDEX)) as i:
                self.nested_loops(shape[1:], [*index, i], body)

    def copy(self, source: FlatPlace, target: FlatPlace) -> None:
        """Copy a value, which may broadcast."""
        if source.is_flat and target.is_flat and source.size == target.size:
            flat = (target.size,)
            source = FlatPlace(source.array, source.start, flat, (1,))
            target = FlatPlace(target.array, target.start, flat, (1,))
        self.loop_over(target.shape, lambda index: self.put(target, index, self.get(source, index)))

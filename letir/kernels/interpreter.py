"""Kernels on NumPy arrays: the meaning of the loop language, to which tests hold machine code."""

from typing import Any

import numpy as np
from attrs import define

from letir.kernels.instructions import INSTRUCTIONS
from letir.kernels.loop_language import (
    Call,
    Kernel,
    Let,
    Load,
    Loop,
    Number,
    Operand,
    Scalar,
    Statement,
    Store,
    While,
)


def run_kernel(kernel: Kernel, *arrays: np.ndarray, **extents: int) -> None:
    """Run a kernel on ``arrays``, in the order of ``kernel.arrays``; those written are changed.

    ``extents``: the numbers of steps by name. An array has as many axes as the kernel's; broadcast
    ones have the length 1. Steps are computed one after the other, those of innermost parallel
    loops at once. Floating-point flags are ignored.
    """
    by_name = dict(zip([a.name for a in kernel.arrays], arrays, strict=True))
    values: dict[Any, Any] = {one: np.int64(extents[one.name]) for one in kernel.extents}
    with np.errstate(all="ignore"):
        _Run(by_name, values).run(kernel.body)


def run_lets(lets: tuple[Let, ...], values: dict[Scalar, np.ndarray]) -> dict[Scalar, np.ndarray]:
    """``values`` and those of all results of ``lets``, computed for all elements at once."""
    run = _Run({}, dict(values))
    with np.errstate(all="ignore"):
        run.run(lets)
    return run.values


@define
class _Run:
    """A run of a kernel: its arrays by name, and the values of scalars so far."""

    arrays: dict[str, np.ndarray]
    values: dict[Scalar, Any]

    def run(self, body: tuple[Statement, ...]) -> None:
        for one in body:
            match one:
                case Let():
                    self.values[one.result] = self.computed(one)
                case Load():
                    self.values[one.result] = self.arrays[one.array.name][self.place(one)]
                case Store():
                    self.arrays[one.array.name][self.place(one)] = self.value(one.value)
                case Loop():
                    self.loop(one)
                case While():
                    self.repeat(one)
                case Call():
                    self.values[one.result] = self.called(one)

    def value(self, x: Operand) -> Any:
        return x.value if isinstance(x, Number) else self.values[x]

    def place(self, one: Load | Store) -> tuple:
        """The index of an element; 0 along broadcast axes."""
        named = zip(one.indices, one.array.extents, strict=True)
        return tuple([self.value(index) if name else 0 for index, name in named])

    def computed(self, let: Let) -> np.ndarray:
        operands = [self.value(x) for x in let.operands]
        compute, dtype = INSTRUCTIONS[let.name].compute, let.result.dtype
        if INSTRUCTIONS[let.name].result == "given":
            return compute(*operands, dtype)
        return np.asarray(compute(*operands), dtype)

    def loop(self, loop: Loop) -> None:
        extent = int(self.value(loop.extent))
        is_inner = not any(type(one) is Loop for one in loop.body)
        if is_inner and loop.is_parallel and not loop.carried:
            self.values[loop.index] = np.arange(extent)
            self.run(loop.body)
            return
        carried = [self.value(first) for _, first, _, _ in loop.carried]
        for step in range(extent):
            self.values[loop.index] = np.int64(step)
            self.carry(loop, carried)
            self.run(loop.body)
            carried = [self.value(then) for _, _, then, _ in loop.carried]
        for (*_, result), value in zip(loop.carried, carried, strict=True):
            self.values[result] = value

    def repeat(self, loop: While) -> None:
        carried = [self.value(first) for _, first, _, _ in loop.carried]
        while True:
            self.carry(loop, carried)
            self.run(loop.test)
            if not self.value(loop.condition):
                break
            self.run(loop.body)
            carried = [self.value(then) for _, _, then, _ in loop.carried]
        for (*_, result), value in zip(loop.carried, carried, strict=True):
            self.values[result] = value

    def carry(self, loop: Loop | While, carried: list) -> None:
        """Give the carried scalars of a step their values."""
        for (scalar, *_), value in zip(loop.carried, carried, strict=True):
            self.values[scalar] = value

    def called(self, one: Call) -> Any:
        """The result of a function, whose scalars belong to this kernel alone."""
        given = [self.value(x) for x in one.operands]
        self.values.update(zip(one.function.params, given, strict=True))
        self.run(one.function.body)
        return self.value(one.function.result)

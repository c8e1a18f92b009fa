"""An interpreter of the loop language on NumPy arrays: tests compare machine code with it.

It tests every index: an index below 0, or beyond the end of its axis, raises InternalError.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define

from letir.ast.process_state import float_errors
from letir.errors import InternalError
from letir.kernels.loop_language import (
    FunctionCall,
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
from letir.kernels.scalar_instructions import INSTRUCTIONS


def run_kernel(kernel: Kernel, *arrays: np.ndarray, **extents: int) -> None:
    """Run a kernel on ``arrays``, in the order of ``kernel.arrays``; it writes into its outputs.

    ``extents``: the numbers of steps by name. Each array has as many axes as its parameter; a
    broadcast axis has length 1, or full length where NumPy has copied the array to a buffer. Steps
    are computed one after the other, but all steps of a parallel loop at once if it is innermost or
    computes vectors. Floating-point flags are ignored.
    """
    with float_errors(all="ignore"):
        interpret(kernel, arrays, extents)


def interpret(kernel: Kernel, arrays: Sequence[np.ndarray], extents: dict[str, int]) -> None:
    """Run a kernel, with floating-point errors handled as in ``np.errstate``."""
    by_name = dict(zip([a.name for a in kernel.arrays], arrays, strict=True))
    for buffer in kernel.buffers:
        by_name[buffer.name] = np.empty(tuple(map(int, buffer.extents)), buffer.dtype)
    values: dict[Any, Any] = {extent: np.int64(extents[extent.name]) for extent in kernel.extents}
    most = max([1, *[extents[extent.name] for extent in kernel.extents]])
    _Run(by_name, values, most).run(kernel.body)


def run_lets(lets: tuple[Let, ...], values: dict[Scalar, np.ndarray]) -> dict[Scalar, np.ndarray]:
    """``values`` together with the results of ``lets``, for all elements at once."""
    run = _Run({}, dict(values), 1)
    with float_errors(all="ignore"):
        run.run(lets)
    return run.values


@define
class _Run:
    """One run of a kernel: its arrays by name, and the values of the scalars computed so far.

    ``max_extent``: the largest extent; an index along a broadcast axis must be smaller.
    """

    arrays: dict[str, np.ndarray]
    values: dict[Scalar, Any]
    max_extent: int

    def run(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Let():
                    self.values[statement.result] = self.compute_let(statement)
                case Load():
                    self.values[statement.result] = self.array_of(statement)[self.place(statement)]
                case Store():
                    self.array_of(statement)[self.place(statement)] = self.value(statement.value)
                case Loop():
                    self.loop(statement)
                case While():
                    self.repeat(statement)
                case FunctionCall():
                    self.values[statement.result] = self.run_call(statement)

    def value(self, x: Operand) -> Any:
        return x.value if isinstance(x, Number) else self.values[x]

    def array_of(self, access: Load | Store) -> np.ndarray:
        """The array of a statement, or the real or imaginary parts of its elements."""
        array = self.arrays[access.array.name]
        return getattr(array, access.part) if access.part else array

    def place(self, access: Load | Store) -> tuple:
        """The index of an element; 0 along broadcast axes. Raises InternalError beyond the end."""
        shape, result = self.arrays[access.array.name].shape, []
        for axis, (index, name) in enumerate(
            zip(access.indices, access.array.extents, strict=True)
        ):
            is_one = not name and shape[axis] == 1
            at, length = self.value(index), self.max_extent if is_one else shape[axis]
            is_outside = (at < 0) | (at >= length)
            if is_outside.any():
                raise InternalError(
                    f"the kernel's statement {access} is outside of the array\n"
                    f"  index {at[is_outside].flat[0]} along axis {axis} of {length} elements\n"
                    '  please report it with the program, and use kernels="off" until then'
                )
            result.append(0 if is_one else at)
        return tuple(result)

    def compute_let(self, let: Let) -> np.ndarray:
        operands = [self.value(x) for x in let.operands]
        compute, dtype = INSTRUCTIONS[let.name].compute, let.result.dtype
        if INSTRUCTIONS[let.name].result == "given":
            return compute(*operands, dtype)
        return np.asarray(compute(*operands), dtype)

    def loop(self, loop: Loop) -> None:
        extent = int(self.value(loop.extent))
        is_inner = not any(type(statement) is Loop for statement in loop.body)
        if (is_inner or loop.lanes) and loop.is_parallel and not loop.carried:
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
        """Bind the carried scalars for the next step."""
        for (scalar, *_), value in zip(loop.carried, carried, strict=True):
            self.values[scalar] = value

    def run_call(self, call: FunctionCall) -> Any:
        """The result of a call of a kernel's function."""
        values = [self.value(x) for x in call.operands]
        self.values.update(zip(call.function.params, values, strict=True))
        function = call.function
        self.run(function.test)
        if function.condition is None:
            self.run(function.body)
            return self.value(function.result)
        is_rare = self.value(function.condition)
        if not np.any(is_rare):
            return values[0]
        self.run(function.body)
        return np.where(is_rare, self.value(function.result), values[0])

"""Calls of kernels on stacks of matrices with CuPy's arrays: parts of a stack for warps."""

from functools import cached_property
from typing import Any

import numpy as np
from attrs import define

from letir.eval.float_warnings import KernelError
from letir.kernels.device.lanes import has_enough_steps
from letir.kernels.device.launches import Argument, Launcher, device_values, in_shape
from letir.kernels.row_interface import RowKernel
from letir.kernels.scalar_lowering import has_c_order

_MOST_MATRICES = 64  # the most matrices of one part
_ENOUGH_PARTS = 1024  # the number of parts that keep a device busy


@define(eq=False)
class StackCall:
    """Calls a kernel with reductions along a stack of matrices: a warp takes a part of the stack.

    CuPy reduces the results of all parts again. ``shapes``: the shapes of the results.
    """

    lowered: RowKernel
    shapes: list[tuple[int, ...]]

    @cached_property
    def launcher(self) -> Launcher:
        kernel, sizes = self.lowered.kernel, {**self.lowered.space.sizes, "l": self.part}
        return Launcher(kernel, has_enough_steps(kernel, sizes))

    @cached_property
    def part(self) -> int:
        """The number of matrices of one part, a divisor of the number of all matrices."""
        stack = self.lowered.space.stack
        most = max(1, min(_MOST_MATRICES, stack // _ENOUGH_PARTS))
        return max([n for n in range(1, most + 1) if stack % n == 0], default=1)

    def __call__(self, xp: Any, *operands: Any) -> Any:
        if any(len(shape) > 1 for shape in self.shapes) and not all(map(has_c_order, operands)):
            raise KernelError("results in another memory order")
        lowered, space, arrays = self.lowered, self.lowered.space, self.lowered.kernel.arrays
        parts = space.stack // self.part
        arguments = []
        values = device_values(xp, [operands[n] for n, _, _ in lowered.operands], arrays)
        for x, (_, kind, shape) in zip(values, lowered.operands, strict=True):
            arguments.append(self.argument(in_shape(x, shape), kind))
        arguments += [
            _part_argument(xp.empty((parts, space.columns), dtype)) for dtype in lowered.scratch
        ]
        results = []
        for array, kind, name in zip(
            arrays[len(arguments) :], lowered.results, lowered.combines, strict=True
        ):
            shape = lowered.shape_of(kind)
            results.append(xp.empty((parts, *shape) if name else shape, array.dtype))
            arguments.append(
                _part_argument(results[-1]) if name else self.argument(results[-1], kind)
            )
        self.launcher.launch(xp, (parts,), arguments, {**space.sizes, "l": self.part})
        result = []
        for x, name, shape in zip(results, lowered.combines, self.shapes, strict=True):
            total = getattr(xp, name)(x, axis=0).astype(x.dtype, copy=False) if name else x
            result.append(total.reshape(shape))
        return result[0] if len(result) == 1 else tuple(result)

    def argument(self, x: Any, kind: str) -> Argument:
        """The argument for an operand, or for a result with an entry for each matrix."""
        if isinstance(x, np.generic):
            return Argument(x)
        is_stack = self.lowered.space.axes_of(kind).startswith("l")
        return Argument(x, (x.strides[0] * self.part if is_stack else 0,), x.strides)


def _part_argument(x: Any) -> Argument:
    """The argument for an array with an entry for each part."""
    return Argument(x, x.strides[:1], x.strides[1:])

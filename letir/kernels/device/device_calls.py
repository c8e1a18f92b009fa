"""Calls of kernels with CuPy's arrays: the results of each kind of kernel.

Each call takes the array module and the operands, and raises KernelError where CuPy has to compute
the operations one by one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.bounded_cache import BoundedCache
from letir.ast.types import ArrayType
from letir.eval.float_warnings import KernelError
from letir.kernels.device.launches import (
    Argument,
    Launcher,
    PreparedLaunch,
    device_values,
    layout_of,
    strides_in_order,
)
from letir.kernels.loop_language import Array, Kernel


@define(eq=False)
class ElementwiseCall:
    """Calls a kernel on each element of operands that are broadcast."""

    kernel: Kernel
    launcher: Launcher = field(init=False)
    # layout of the operands -> (shape and memory order of the results, launch)
    prepared: BoundedCache = field(factory=lambda: BoundedCache(1 << 8))

    def __attrs_post_init__(self):
        self.launcher = Launcher(self.kernel)

    def __call__(self, xp: Any, *operands: Any) -> Any:
        arrays = self.kernel.arrays
        values = device_values(xp, operands, arrays)
        layout = layout_of(values)
        prepared = self.prepared.get(layout)
        if prepared is None:
            prepared = self.prepared[layout] = self.prepare(values)
        shape, order, launch = prepared
        results = [xp.empty(shape, array.dtype, order) for array in arrays[len(values) :]]
        if launch is not None:
            launch(xp, (*values, *results))
        return results[0] if len(results) == 1 else tuple(results)

    def prepare(self, values: Sequence) -> tuple[tuple[int, ...], str, PreparedLaunch | None]:
        """(the shape of the results, their memory order, the launch), None for empty results."""
        shape = np.broadcast_shapes(*[x.shape for x in values])
        order = _order_of([x for x in values if x.ndim])
        arguments = [Argument(x, _broadcast_strides(x, shape)) for x in values]
        for array in self.kernel.arrays[len(values) :]:
            arguments.append(Argument(None, strides_in_order(shape, array.dtype.itemsize, order)))
        is_empty = 0 in shape
        return shape, order, None if is_empty else self.launcher.prepare(shape, arguments)


def _order_of(arrays: list) -> str:
    """The memory order that NumPy and CuPy choose for a result of these operands."""
    is_columns = arrays and all(x.flags.f_contiguous for x in arrays)
    return "F" if is_columns and not all(x.flags.c_contiguous for x in arrays) else "C"


def _broadcast_strides(x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array, or a NumPy number, that is broadcast to ``shape``."""
    own = [0 if n == 1 else step for n, step in zip(x.shape, x.strides, strict=True)]
    return (*[0] * (len(shape) - len(own)), *own)


@define(eq=False)
class ChainCall:
    """Calls a kernel on few numbers, with or without loops, which runs in one thread.

    The lengths of axes are named as in the signature of a generalized ufunc.
    """

    kernel: Kernel
    launcher: Launcher = field(init=False)

    def __attrs_post_init__(self):
        self.launcher = Launcher(self.kernel)

    def __call__(self, xp: Any, *operands: Any, out: Sequence = ()) -> Any:
        """The results; ``out``: an array for each result, None for a new array."""
        arrays = self.kernel.arrays
        values = device_values(xp, operands, arrays)
        results = arrays[len(values) :]
        pairs = zip(results, out or [None] * len(results), strict=True)
        sizes = _axis_lengths(zip(arrays, values, strict=False))
        sizes |= _axis_lengths([pair for pair in pairs if pair[1] is not None])
        result = list(out) or [None] * len(results)
        for n, array in enumerate(results):
            if result[n] is None:
                shape = tuple([_axis_length(name, sizes) for name in array.extents[1:]])
                result[n] = xp.empty(shape, array.dtype)
        arguments = [Argument(x, (0,), x.strides) for x in (*values, *result)]
        extents = {
            extent.name: _axis_length(extent.name, sizes) for extent in self.kernel.extents[1:]
        }
        self.launcher.launch(xp, (1,), arguments, extents)
        return result[0] if len(result) == 1 else tuple(result)


@define(eq=False)
class ArrayLoopCall:
    """Calls a kernel on flat arrays, which one warp computes.

    ``scratch`` and ``results``: the shapes and dtypes of the arrays that the kernel writes.
    ``avals``: the types of the operands.
    """

    kernel: Kernel
    scratch: Sequence[tuple[Any, np.dtype]]
    results: Sequence[tuple[Any, np.dtype]]
    avals: Sequence[ArrayType]
    call: ChainCall = field(init=False)

    def __attrs_post_init__(self):
        self.call = ChainCall(self.kernel)

    def __call__(self, xp: Any, *operands: Any) -> Any:
        arguments = []
        values = device_values(xp, operands, self.kernel.arrays)
        for value, aval in zip(values, self.avals, strict=True):
            if value.shape != aval.shape:
                raise KernelError("operands of other sizes")
            is_number = isinstance(value, np.generic)
            arguments.append(value if is_number else xp.ascontiguousarray(value).reshape(-1))
        arguments += [xp.empty(size, dtype) for size, dtype in self.scratch]
        result = [xp.empty(shape, dtype) for shape, dtype in self.results]
        self.call(xp, *arguments, out=[y.reshape(-1) for y in result])
        return result[0] if len(result) == 1 else tuple(result)


def _axis_lengths(pairs: Iterable[tuple[Array, Any]]) -> dict[str, int]:
    """The lengths of the axes of arrays by name. Raises KernelError if two differ."""
    result: dict[str, int] = {}
    for array, x in pairs:
        shape = [1] * (len(array.extents) - 1) if isinstance(x, np.generic) else x.shape
        for name, size in zip(array.extents[1:], shape, strict=True):
            if result.setdefault(name, size) != size:
                raise KernelError("operands of other sizes")
    return result


def _axis_length(name: str, sizes: dict[str, int]) -> int:
    """The length of an axis, by its name: among ``sizes``, or the name itself if it is a number."""
    return sizes[name] if name in sizes else int(name)

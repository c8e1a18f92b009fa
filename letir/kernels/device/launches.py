"""Launches of kernels on a device of CuPy: the arguments and the grid for the text of ``ptx``."""

import logging
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.ast.bounded_cache import BoundedCache
from letir.eval.float_warnings import KernelError
from letir.kernels.device.lanes import LANES, shared_loops
from letir.kernels.device.ptx import ENTRY, LaunchForm, entry_parameters, ptx_text
from letir.kernels.loop_language import Array, Kernel

_LOG = logging.getLogger("letir")
_WIDTH = 256  # threads of a block
_MOST_BLOCKS = 1 << 16  # of a launch; with more steps than threads, each thread takes several steps
_MOST_DIVIDED = 1 << 31  # the most steps along several axes: their index has 32 bits
_MOST_BYTES = 4096  # the most bytes of all parameters of a launch


@frozen
class Argument:
    """The argument of a launch for an array of the kernel: a device array, or a NumPy number.

    ``spread``: the strides in bytes along the axes of the spread loop; ``inner``: the strides along
    the array's other axes.
    """

    value: Any
    spread: tuple[int, ...] = ()
    inner: tuple[int, ...] = ()

    @property
    def is_number(self) -> bool:
        return isinstance(self.value, np.generic)


@define(eq=False)
class Launcher:
    """Launches one kernel; the text is loaded once for each device and form.

    ``shares``: whether the lanes of a warp share the steps of inner loops, where they can.
    """

    kernel: Kernel
    shares: bool = True
    functions: dict[tuple, Any] = field(factory=dict)
    prepared: BoundedCache = field(factory=lambda: BoundedCache(1 << 8))
    lanes: int = field(init=False)  # threads that take a step together

    @lanes.default
    def _lanes(self) -> int:
        return LANES if self.shares and shared_loops(self.kernel) else 1

    def launch(
        self,
        xp: Any,
        axes: tuple[int, ...],
        arguments: Sequence[Argument],
        extents: Mapping[str, int] | None = None,
    ) -> None:
        """Run the kernel for each index below ``axes``, the last one fastest.

        ``extents``: the numbers of steps of the kernel's inner loops, by name. Raises KernelError
        where CuPy has to compute.
        """
        if 0 in axes:
            return
        self.prepare(axes, arguments, extents)(xp, [x.value for x in arguments])

    def prepare(
        self,
        axes: tuple[int, ...],
        arguments: Sequence[Argument],
        extents: Mapping[str, int] | None = None,
    ) -> "PreparedLaunch":
        """The launch for arguments with the strides of these, whose values it does not keep.

        Raises KernelError.
        """
        layout = tuple([None if x.is_number else (x.spread, x.inner) for x in arguments])
        sizes = tuple([(extents or {})[extent.name] for extent in self.kernel.extents[1:]])
        key = (axes, layout, sizes)
        result = self.prepared.get(key)
        if result is None:
            result = self.prepared[key] = self.prepare_layout(*key)
        return result

    def prepare_layout(
        self, axes: tuple[int, ...], layout: tuple[tuple | None, ...], sizes: tuple[int, ...]
    ) -> "PreparedLaunch":
        """``prepare`` for the strides of each array, None for a number."""
        names = [array.name for array in self.kernel.arrays]
        numbers = [name for name, own in zip(names, layout, strict=True) if own is None]
        arrays = [own for own in layout if own is not None]
        axes, spread = merge_axes(axes, [along for along, _ in arrays])
        total = math.prod(axes)
        if len(axes) > 1 and total >= _MOST_DIVIDED:
            raise KernelError("too many steps")
        rest = [np.int64(total), *map(np.int32, axes[1:]), *map(np.int64, sizes)]
        for along, (_, inner) in zip(spread, arrays, strict=True):
            rest += map(np.int64, (*along, *inner))
        form = LaunchForm(len(axes), frozenset(numbers), self.shares)
        return PreparedLaunch(self, form, *self.grid(total), tuple(rest))

    def grid(self, total: int) -> tuple[tuple[int], tuple[int]]:
        """The numbers of blocks and of threads of a block for this number of steps."""
        threads = total * self.lanes
        width = min(_WIDTH, -(-threads // LANES) * LANES) if threads > 1 else 1
        return (min(_MOST_BLOCKS, -(-threads // width)),), (width,)

    def function(self, xp: Any, form: LaunchForm) -> Any:
        """The entry on the current device. Raises KernelError if it cannot be loaded."""
        key = (xp.cuda.get_device_id(), form)
        result = self.functions.get(key)
        if result is None:
            result = self.functions[key] = self.load_function(xp, form)
        if isinstance(result, Exception):
            raise KernelError("not loaded") from result
        return result

    def load_function(self, xp: Any, form: LaunchForm) -> Any:
        """The entry, or the error of the driver, which is logged."""
        if len(entry_parameters(self.kernel, form)) * 8 > _MOST_BYTES:
            return KernelError("too many parameters")
        module = xp.cuda.function.Module()
        try:
            module.load(ptx_text(self.kernel, form).encode())
        except Exception as error:
            _LOG.warning("CuPy computes %s, which cannot be loaded: %s", self.kernel.name, error)
            return error
        return module.get_function(ENTRY)


@define(eq=False)
class PreparedLaunch:
    """A launch but for the arrays and numbers: the entry's form, the grid, the block, and the
    parameters after the arrays.
    """

    launcher: Launcher
    form: LaunchForm
    grid: tuple[int]
    block: tuple[int]
    rest: tuple

    def __call__(self, xp: Any, values: Sequence) -> None:
        """Launch the kernel on arrays and numbers with the prepared strides. Raises KernelError."""
        function = self.launcher.function(xp, self.form)
        function(self.grid, self.block, (*values, *self.rest))


def merge_axes(
    axes: tuple[int, ...], strides: Sequence[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """``axes`` merged to as few axes as possible, and the strides of the arrays along them.

    Indices are in the order of the last array, so that neighbouring threads write neighbouring
    elements.

    >>> merge_axes((4, 1, 6), [(48, 0, 8), (48, 0, 8)])
    ((24,), [(8,), (8,)])
    >>> merge_axes((4, 6), [(0, 8), (48, 8)])
    ((4, 6), [(0, 8), (48, 8)])
    """
    order = [n for n, size in enumerate(axes) if size != 1]
    if strides:
        order.sort(key=lambda n: -abs(strides[-1][n]))
    runs: list[list[int]] = []
    for n in order:
        if runs and all(own[runs[-1][-1]] == own[n] * axes[n] for own in strides):
            runs[-1].append(n)
        else:
            runs.append([n])
    if not runs:
        return (1,), [(0,) for _ in strides]
    sizes = tuple([math.prod([axes[n] for n in run]) for run in runs])
    return sizes, [tuple([own[run[-1]] for run in runs]) for own in strides]


def device_values(xp: Any, operands: Sequence, arrays: Sequence[Array]) -> list:
    """The operands as a launch takes them: device arrays, and NumPy numbers of the arrays' dtypes.

    Raises KernelError for other operands.
    """
    ndarray, device, result = xp.ndarray, None, []
    for x, array in zip(operands, arrays, strict=False):
        if not isinstance(x, ndarray):
            result.append(_number_of(x, array))
            continue
        if x.dtype != array.dtype:
            raise KernelError("an operand of another dtype")
        if device is None:
            device = xp.cuda.get_device_id()
        if x.device.id != device:
            raise KernelError("an operand on another device")
        result.append(x)
    return result


def layout_of(values: Sequence) -> tuple:
    """The shapes and strides of arrays; None for a number."""
    return tuple([None if isinstance(x, np.generic) else (x.shape, x.strides) for x in values])


def in_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """An array in another shape; a number itself."""
    return x if isinstance(x, np.generic) else x.reshape(shape)


def strides_in_order(shape: Sequence[int], itemsize: int, order: str = "C") -> tuple[int, ...]:
    """The strides in bytes of a new array in the memory order "C" or "F".

    >>> strides_in_order((2, 3), 8), strides_in_order((2, 3), 8, "F")
    ((24, 8), (8, 16))
    """
    sizes = shape if order == "F" else shape[::-1]
    steps = list(accumulate(sizes[:-1], mul, initial=itemsize)) if sizes else []
    return tuple(steps if order == "F" else steps[::-1])


def _number_of(x: Any, array: Array) -> np.generic:
    """A number of the host in the array's dtype. Raises KernelError for other operands."""
    if isinstance(x, np.ndarray) and not x.ndim:
        x = x[()]
    if isinstance(x, np.generic) and x.dtype == array.dtype:
        return x
    if type(x) not in (bool, int, float):
        raise KernelError("an operand on the host")
    try:
        return array.dtype.type(x)
    except OverflowError as error:
        raise KernelError("a large Python integer") from error

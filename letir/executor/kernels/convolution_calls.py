"""Convolutions over one or two axes as calls of compiled kernels.

BLAS multiplies matrices of windows, which take nine times the memory of the input for windows of
3 x 3. These kernels read the input itself, padded.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.bodies import map_bodies
from letir.ast.record_fields import PRODUCTS_OF_WINDOWS
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Lambda
from letir.ast.types import ArrayType
from letir.executor.kernels.arena import new_array
from letir.executor.kernels.matrix_calls import body_of_one
from letir.executor.kernels.threaded_calls import chunk_count, places_of, run_in_chunks
from letir.kernels.convolutions.convolution_kernels import (
    convolution_kernel,
    signature,
    weight_kernel,
)
from letir.kernels.convolutions.window_layout import Convolution, WindowLayout
from letir.kernels.llvm.machine_code import begin_ufunc, host_vectors
from letir.kernels.loop_language import Kernel
from letir.kernels.threads import threads_of_call

__warningregistry__ = "see kernel_binds"  # not a dict: warnings.warn fails
_MIN_WORK = 1 << 17  # the fewest multiplications for which machine code pays
_MIN_THREAD_WORK = 1 << 24  # the fewest multiplications for which threads pay
_MAX_WINDOW = 64  # elements of a window: the code is repeated for each of them
_MIN_USE = 0.4  # the smallest fraction of the lanes of vectors that hold results
_MAX_PARTS = 8  # of the input's channels, for which threads compute weights
_LINE = 64  # bytes of a line of the cache, to which large vectors are aligned


def with_convolution_kernels(fn: Lambda, is_exact: bool = False) -> Lambda:
    """``fn``, also in bodies, with large convolutions as kernels, which add in another order."""
    return fn if is_exact else map_bodies(fn, _convolution_level)


def _convolution_level(fn: Lambda) -> Lambda:
    """``fn`` with its own convolutions replaced by calls of kernels, which are compiled here."""
    calls = {n: call for n, bind in enumerate(fn.binds) if (call := _call_of(bind)) is not None}
    if not calls:
        return fn
    for call in calls.values():
        call.begin()
    binds = list(fn.binds)
    for n, call in calls.items():
        bind = binds[n]
        call.finish()
        binds[n] = LATE_BOUND["kernel_bind"](
            bind.binders, tuple(bind.locals()), body_of_one(bind), call, bind.source
        )
    return fn.with_binds(binds)


def _call_of(bind: Bind) -> "ConvolutionCall | InterleavedCall | None":
    """The call of the kernel for a convolution; None for other binds, and if BLAS is faster."""
    make = _CALLS.get(bind.op.product or "")
    if make is None or len({*bind.locals()}) != 2:
        return None
    avals = [arg.type for arg in (*bind.args, *bind.binders)]
    if not all(type(aval) is ArrayType and has_static_shape(aval) for aval in avals):
        return None
    dtype = avals[0].dtype
    is_plain = all(aval.dtype == dtype and not aval.weak and aval.size for aval in avals)
    if not is_plain or dtype.char not in "fd" or avals[0].ndim not in (3, 4):
        return None
    call = make(*[aval.shape for aval in avals], dtype, _WindowAttrs.from_bind(bind))
    return call if call is not None and all(map(_is_faster, call.convolutions)) else None


@frozen
class _WindowAttrs:
    """The attributes of a convolution over two axes; ``padding``: that before each axis."""

    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    @classmethod
    def from_bind(cls, bind: Bind) -> "_WindowAttrs":
        """The attributes of a bind; the first axis has the size 1 if it has one axis only."""
        stride, dilation = bind.attrs["stride"], bind.attrs["dilation"]
        before = [pair[0] for pair in bind.attrs["padding"]]
        if len(stride) == 1:
            stride, dilation, before = (1, *stride), (1, *dilation), [0, *before]
        return cls(stride, (before[0], before[1]), dilation, bind.attrs["groups"])


def _sizes_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """The rows and columns of an array of this shape; one row if one axis is convolved."""
    return (1, shape[2]) if len(shape) == 3 else (shape[2], shape[3])


def _convolution_of(
    x: tuple, w: tuple, y: tuple, dtype: np.dtype, attrs: _WindowAttrs
) -> Convolution:
    """The convolution whose input, weight and result have the shapes ``x``, ``w`` and ``y``."""
    sizes, window, output_sizes = map(_sizes_of, (x, w, y))
    layout = WindowLayout(sizes, window, output_sizes, attrs.padding, attrs.stride, attrs.dilation)
    return Convolution(layout, dtype, x[0], attrs.groups, w[1], w[0] // attrs.groups)


def _call_of_windows(x: tuple, w: tuple, y: tuple, *rest: Any) -> "ResultCall":
    """The call for a convolution."""
    return ResultCall(_convolution_of(x, w, y, *rest), y)


def _call_of_weights(x: tuple, y: tuple, w: tuple, *rest: Any) -> "WeightCall":
    """The call for the cotangent of the weight of a convolution."""
    return WeightCall(_convolution_of(x, w, y, *rest), w)


def _call_of_transposed(
    y: tuple, w: tuple, x: tuple, dtype: np.dtype, attrs: _WindowAttrs
) -> "ConvolutionCall | InterleavedCall | None":
    """The call for a transposed convolution: convolutions by reversed windows."""
    if attrs.stride != (1, 1) and attrs.dilation != (1, 1):
        return None
    axes = zip(_sizes_of(w), _sizes_of(x), attrs.stride, attrs.dilation, attrs.padding, strict=True)
    parts = {}
    for rows, columns in product(*[_phases(*axis) for axis in axes]):
        phase, first, window, output_sizes, padding = zip(rows, columns, strict=True)
        if not all(window):
            return None  # no element of the window is added to these rows or columns
        layout = WindowLayout(_sizes_of(y), window, output_sizes, padding, (1, 1), attrs.dilation)
        part = Convolution(layout, dtype, y[0], attrs.groups, w[0] // attrs.groups, w[1])
        if attrs.stride == (1, 1):
            return ResultCall(part, x, is_reversed=True)
        shape = (y[0], attrs.groups * w[1], *output_sizes)
        parts[phase] = first, ResultCall(part, shape, is_reversed=True)
    return InterleavedCall(parts, attrs.stride, x)


def _phases(window: int, size: int, stride: int, dilation: int, padding: int) -> list[tuple]:
    """The convolutions along an axis that give every ``stride``th element of a transposed one.

    For each remainder by the stride: (the first result, the first element of the window that is
    used, the number of elements used, the number of results, the padding before the axis).
    """
    result = []
    for phase in range(min(stride, size)):
        whole, first = divmod(phase + padding, stride)
        used, n_results = -(-(window - first) // stride), -(-(size - phase) // stride)
        result.append((phase, first, max(used, 0), n_results, (used - 1) * dilation - whole))
    return result


_MAKERS = (_call_of_windows, _call_of_transposed, _call_of_weights)
_CALLS: dict[str, Callable] = dict(zip(PRODUCTS_OF_WINDOWS, _MAKERS, strict=True))


def _is_faster(convolution: Convolution) -> bool:
    """Whether a kernel is faster than a product of matrices of windows."""
    vectors, columns = host_vectors(), convolution.layout.output_sizes[1]
    lanes = vectors.lanes_of(convolution.dtype)
    is_wide = vectors.has_fma and columns >= _MIN_USE * lanes * -(-columns // lanes)
    is_large = convolution.multiplications >= _MIN_WORK
    return is_wide and is_large and convolution.layout.window_size <= _MAX_WINDOW


def _aligned_array(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """``np.empty(shape, dtype)`` that begins at the start of a line of the cache."""
    size = math.prod(shape) * dtype.itemsize
    memory = new_array((size + _LINE,), np.dtype("u1"))
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size].view(dtype).reshape(shape)


class ConvolutionCall:
    """The call of the kernel of a convolution; calls are allowed after ``finish``.

    ``shape``: the shape of the result.
    """

    new_array: Callable = staticmethod(np.empty)  # makes the array of the result
    ufunc: Any

    def __init__(self, convolution: Convolution, shape: tuple[int, ...]):
        self.convolution, self.shape = convolution, shape
        self.begun: Callable | None = None

    @property
    def convolutions(self) -> list[Convolution]:
        """The convolutions that kernels compute."""
        return [self.convolution]

    def begin(self) -> None:
        """Let another thread compile the kernel."""
        kernel = self.make_kernel()
        self.begun = begin_ufunc(kernel, signature(kernel))

    def finish(self) -> None:
        """Wait for the machine code."""
        if self.begun is not None:
            self.ufunc, self.begun = self.begun(), None

    def make_kernel(self) -> Kernel:
        """The kernel for these sizes."""
        raise NotImplementedError

    def run(self, x: np.ndarray, other: np.ndarray, shape: tuple[int, ...], axis: int) -> Any:
        """The result of the kernel, of this shape.

        ``axis``: of ``x`` and the result, along which threads cut them.
        """
        if not isinstance(self.ufunc, np.ufunc):
            return self.ufunc(x, other)  # interpreted
        out = self.new_array(shape, self.convolution.dtype)
        work = self.convolution.multiplications
        threads = threads_of_call() if work >= _MIN_THREAD_WORK else 1
        if threads == 1:
            self.ufunc(x, other, out=out)
        else:
            length = x.shape[axis]
            places = places_of(length, chunk_count(length, work, threads))
            run_in_chunks(self.ufunc, (x, other), (out,), (axis, None, axis), places, threads)
        return out

    def channels_of(self, x: np.ndarray) -> np.ndarray:
        """The input with axes for examples, channels, rows and columns."""
        n = self.convolution
        return x.reshape(n.examples, n.groups * n.in_channels, *n.layout.input_sizes)

    def planes_of(self, x: np.ndarray) -> np.ndarray:
        """The planes of an input, flat for each index of its two leading axes."""
        layout = self.convolution.layout
        if layout.is_plain and x.flags.c_contiguous:
            return x
        planes = _aligned_array((*x.shape[:2], layout.channel_size), self.convolution.dtype)
        layout.copy_planes(x, planes)
        return planes


class ResultCall(ConvolutionCall):
    """The call of a convolution.

    ``is_reversed``: it takes the weight of a transposed convolution, and reverses its windows.
    """

    def __init__(
        self, convolution: Convolution, shape: tuple[int, ...], *, is_reversed: bool = False
    ):
        super().__init__(convolution, shape)
        self.is_reversed = is_reversed

    def make_kernel(self) -> Kernel:
        return convolution_kernel(self.convolution, host_vectors())

    def __call__(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        n = self.convolution
        planes = self.planes_of(self.channels_of(x)).reshape(n.examples, n.groups, -1)
        if self.is_reversed:
            w = w.reshape(n.groups, n.in_channels, n.out_channels, *n.layout.window)
            w = w[..., ::-1, ::-1].swapaxes(1, 2)
        weights = np.ascontiguousarray(w).reshape(n.groups, -1)
        result = self.run(
            planes, weights, (n.examples, n.groups, n.out_channels * n.output_size), -3
        )
        return result.reshape(self.shape)


class InterleavedCall:
    """The call of a transposed convolution with a ``stride``, as several convolutions.

    Each part computes every ``stride``th row and column of the result from every ``stride``th
    element of the window. ``parts``: {first row and column: (first element of the window, call)}.
    """

    new_array: Callable = staticmethod(np.empty)  # makes the array of the result

    def __init__(
        self, parts: dict[tuple, tuple[tuple, ResultCall]], stride: tuple[int, int], shape: tuple
    ):
        self.parts, self.stride, self.shape = parts, stride, shape
        self.calls = [call for _, call in parts.values()]

    @property
    def convolutions(self) -> list[Convolution]:
        """The convolutions that kernels compute."""
        return [call.convolution for call in self.calls]

    @property
    def ufunc(self) -> Any:
        """The kernel of the first part."""
        return self.calls[0].ufunc

    def begin(self) -> None:
        """Let other threads compile the kernels."""
        for call in self.calls:
            call.new_array = new_array  # for a temporary
            call.begin()

    def finish(self) -> None:
        """Wait for the machine code."""
        for call in self.calls:
            call.finish()

    def __call__(self, y: np.ndarray, w: np.ndarray) -> np.ndarray:
        rows, columns = self.stride
        result = self.new_array(self.shape, y.dtype)
        x = result.reshape(*self.shape[:2], *_sizes_of(self.shape))
        windows = w.reshape(*w.shape[:2], *_sizes_of(w.shape))
        for (row, column), ((i, j), call) in self.parts.items():
            x[:, :, row::rows, column::columns] = call(y, windows[:, :, i::rows, j::columns])
        return result


class WeightCall(ConvolutionCall):
    """The call of the cotangent of a convolution's weight."""

    @property
    def parts(self) -> int:
        """The number of parts of the channels, which threads compute."""
        channels = self.convolution.in_channels
        return next(n for n in range(min(_MAX_PARTS, channels), 0, -1) if channels % n == 0)

    def make_kernel(self) -> Kernel:
        return weight_kernel(self.convolution, self.parts, host_vectors())

    def __call__(self, x: np.ndarray, ct: np.ndarray) -> np.ndarray:
        n, window_size = self.convolution, self.convolution.layout.window_size
        planes = self.planes_of(self.channels_of(x).swapaxes(0, 1))
        by_output = ct.reshape(n.examples, n.groups, n.out_channels, n.output_size).swapaxes(0, 1)
        cts = _aligned_array(by_output.shape, n.dtype)
        cts[...] = by_output
        out = self.run(
            planes.reshape(n.groups, self.parts, -1),
            cts.reshape(n.groups, 1, -1),
            (n.groups, self.parts, n.in_channels // self.parts * n.out_channels * window_size),
            -2,
        )
        w = out.reshape(n.groups, n.in_channels, n.out_channels, *n.layout.window).swapaxes(1, 2)
        return np.ascontiguousarray(w).reshape(self.shape)


LATE_BOUND["with_convolution_kernels"] = with_convolution_kernels

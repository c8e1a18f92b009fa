"""Functions of numpy.fft and numpy.linalg in terms of others, and np.einsum_path.

They call NumPy's other functions on the traced values.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.errors import ShapeError
from letir.tracing.operands import traced_or_array
from letir.tracing.source_locations import at_user


def _other_norm(norm):
    """The norm argument with which the inverse transform scales like this one."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def hfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """np.fft.hfft, as NumPy computes it."""
    n = 2 * (a.shape[axis] - 1) if n is None else n
    return np.fft.irfft(np.conjugate(a), n, axis, _other_norm(norm), out=out)


def ihfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """np.fft.ihfft, as NumPy computes it."""
    result = np.conjugate(np.fft.rfft(a, n, axis, _other_norm(norm)))
    return result if out is None else out.assign(result)


def _shift_spectrum(sign: int):
    """np.fft.fftshift (1), or ifftshift (-1)."""

    def shift(x, axes=None):
        axes = tuple(range(x.ndim)) if axes is None else axes
        axes = (axes,) if np.ndim(axes) == 0 else tuple(axes)
        halves = [x.shape[a] // 2 if sign > 0 else -(x.shape[a] // 2) for a in axes]
        return np.roll(x, halves, axes)

    return shift


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.fft.hfft: hfft,
    np.fft.ihfft: ihfft,
    np.fft.fftshift: _shift_spectrum(1),
    np.fft.ifftshift: _shift_spectrum(-1),
}


def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """np.einsum_path, computed from shapes."""
    return np.einsum_path(*map(_array_of_shape, operands), optimize=optimize)


def _array_of_shape(x):
    """An ordinary array of this shape, with one element in memory, as a stand-in."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, Value) else x


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """np.linalg.vecdot: the ufunc along one axis."""
    x1, x2 = traced_or_array(x1), traced_or_array(x2)
    if axis != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    return np.vecdot(x1, x2)


def outer(x1: Any, x2: Any, /) -> Any:
    """np.linalg.outer, which accepts only vectors."""
    x1, x2 = traced_or_array(x1), traced_or_array(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(
            f"numpy.linalg.outer takes two vectors, found shapes {x1.shape} and {x2.shape}"
            f"{at_user()}\n  numpy.outer flattens its operands"
        )
    return np.outer(x1, x2)


FUNCTIONS |= {
    np.einsum_path: einsum_path,
    np.linalg.vecdot: vecdot,
    np.linalg.outer: outer,
    np.linalg.matmul: lambda x1, x2, /: np.matmul(x1, x2),
    np.linalg.tensordot: lambda x1, x2, /, *, axes=2: np.tensordot(x1, x2, axes=axes),
    np.linalg.diagonal: lambda x, /, *, offset=0: np.diagonal(x, offset, -2, -1),
    np.linalg.trace: lambda x, /, *, offset=0, dtype=None: np.trace(x, offset, -2, -1, dtype),
}

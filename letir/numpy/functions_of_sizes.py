"""NumPy functions of a number of elements, for a number that is a symbolic size.

NumPy's own functions compare the number, or make a Python list of this length; the functions here
are written with ``arange``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.errors import ShapeError
from letir.numpy.array_creation import arange


def _tri(N: Any, M: Any = None, k: int = 0, dtype: Any = float) -> Any:
    """np.tri."""
    columns = N if M is None else M
    return (arange(N)[:, None] >= arange(columns) - k).astype(dtype)


def _indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """np.indices."""
    grids = [
        arange(n, dtype=dtype).reshape((1,) * i + (-1,) + (1,) * (len(dimensions) - 1 - i))
        for i, n in enumerate(dimensions)
    ]
    if sparse:
        return tuple(grids)
    return np.stack([np.broadcast_to(grid, dimensions) for grid in grids])


def _fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """np.fromfunction."""
    return function(*_indices(shape, dtype), **kwargs)


def _triangle_places(n: Any, m: Any, mask: Any, count: Any) -> tuple:
    """The row and column indices of the ``count`` true elements of an n x n mask."""
    if m is not None and m is not n:
        raise ShapeError(
            f"the indices of a triangle of {n} x {m} elements are found for known sizes only\n"
            "  pass numbers"
        )
    places = np.argsort(np.logical_not(mask).ravel(), kind="stable")[:count]
    return places // n, places % n


def _count_below(n: Any, k: int) -> Any:
    """The number of elements of an n x n matrix up to its diagonal ``k``."""
    if k < 0:
        return (n + k) * (n + k + 1) // 2 if n + k >= 0 else 0
    return n * n - (n - k - 1) * (n - k) // 2 if n - k >= 0 else n * n


def _tril_indices(n: Any, k: int = 0, m: Any = None) -> tuple:
    """np.tril_indices."""
    return _triangle_places(n, m, _tri(n, k=k, dtype=bool), _count_below(n, k))


def _triu_indices(n: Any, k: int = 0, m: Any = None) -> tuple:
    """np.triu_indices."""
    below = _tri(n, k=k - 1, dtype=bool)
    return _triangle_places(n, m, np.logical_not(below), n * n - _count_below(n, k - 1))


def _window_positions(M: Any) -> Any:
    """``np.arange(1 - M, M, 2)``, the positions at which a window is computed."""
    return 2 * arange(M) - (M - 1)


def _window_angles(M: Any) -> Any:
    """The angles from -pi to pi at which the windows of cosines are computed."""
    return np.pi * _window_positions(M) / (M - 1)


def _bartlett(M: Any) -> Any:
    """np.bartlett."""
    n = _window_positions(M)
    return np.where(n <= 0, 1 + n / (M - 1), 1 - n / (M - 1))


def _blackman(M: Any) -> Any:
    """np.blackman."""
    angles = _window_angles(M)
    return 0.42 + 0.5 * np.cos(angles) + 0.08 * np.cos(2.0 * angles)


def _kaiser(M: Any, beta: Any) -> Any:
    """np.kaiser, also of a traced ``beta``."""
    if type(M) is int and M == 1:
        return np.ones(1)
    places = _window_positions(M) / (M - 1)
    return np.i0(beta * np.sqrt(1 - places**2.0)) / np.i0(beta)


def _fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """np.fft.fftfreq."""
    places = arange(n)
    return np.where(places < (n - 1) // 2 + 1, places, places - n) * (1.0 / (n * d))


SIZED = {
    "tri": _tri,
    "tril_indices": _tril_indices,
    "triu_indices": _triu_indices,
    "diag_indices": lambda n, ndim=2: (arange(n),) * ndim,
    "indices": _indices,
    "fromfunction": _fromfunction,
    "bartlett": _bartlett,
    "blackman": _blackman,
    "kaiser": _kaiser,
    "hamming": lambda M: 0.54 + 0.46 * np.cos(_window_angles(M)),
    "hanning": lambda M: 0.5 + 0.5 * np.cos(_window_angles(M)),
    "fftfreq": _fftfreq,
    "rfftfreq": lambda n, d=1.0, device=None: arange(n // 2 + 1) * (1.0 / (n * d)),
}


def sized_function(name: str) -> Any:
    """The NumPy function with this name, for symbolic sizes and traced settings."""
    return SIZED[name]


LATE_BOUND["sized_function"] = sized_function

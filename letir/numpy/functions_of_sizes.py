"""NumPy functions of a number of elements, for a number that is a symbolic size.

NumPy's own functions compare the number, or make a Python list of this length; the functions here
are written with ``arange``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.symbolic_sizes import has_size
from letir.errors import ShapeError
from letir.numpy.array_creation import arange, array


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
    """The positions at which a window of ``M`` points is computed, from 1 - M to M - 1."""
    return 2 * arange(M) - (M - 1)


def _window(values: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """NumPy's function of the window that is ``values(n, M - 1)`` at the positions ``n``."""

    def window(M: Any) -> Any:
        if has_size(M):
            return values(_window_positions(M), M - 1)
        M = array([0.0, M])[1]  # a traced number, perhaps not an integer
        if M < 1:
            return np.zeros(0)
        return np.ones(1) if M == 1 else values(arange(1 - M, M, 2), M - 1)

    return window


def _bartlett_values(n: Any, last: Any) -> Any:
    """The Bartlett window at the positions ``n``, up to the position ``last``."""
    return np.where(n <= 0, 1 + n / last, 1 - n / last)


def _blackman_values(n: Any, last: Any) -> Any:
    """The Blackman window at the positions ``n``, up to the position ``last``."""
    angles = np.pi * n / last
    return 0.42 + 0.5 * np.cos(angles) + 0.08 * np.cos(2.0 * angles)


def _kaiser(M: Any, beta: Any) -> Any:
    """np.kaiser, also of a traced ``beta``."""
    if not has_size(M) and M == 1:
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
    "bartlett": _window(_bartlett_values),
    "blackman": _window(_blackman_values),
    "kaiser": _kaiser,
    "hamming": _window(lambda n, last: 0.54 + 0.46 * np.cos(np.pi * n / last)),
    "hanning": _window(lambda n, last: 0.5 + 0.5 * np.cos(np.pi * n / last)),
    "fftfreq": _fftfreq,
    "rfftfreq": lambda n, d=1.0, device=None: arange(n // 2 + 1) * (1.0 / (n * d)),
}


def sized_function(name: str) -> Any:
    """The NumPy function with this name, for symbolic sizes and traced settings."""
    return SIZED[name]


LATE_BOUND["sized_function"] = sized_function

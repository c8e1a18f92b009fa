"""NumPy's functions of a count that is a symbolic size: they compare the count or make a list of it
in Python, so that they are written here in terms of ``arange``.
"""

from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.numpy.making import arange


def _tri(N: Any, M: Any = None, k: int = 0, dtype: Any = float) -> Any:
    """np.tri."""
    columns = N if M is None else M
    return (arange(N)[:, None] >= arange(columns) - k).astype(dtype)


def _places(M: Any) -> Any:
    """``np.arange(1 - M, M, 2)``, the places of a window."""
    return 2 * arange(M) - (M - 1)


def _angles(M: Any) -> Any:
    """The angles from -pi to pi at which the windows of cosines are computed."""
    return np.pi * _places(M) / (M - 1)


def _bartlett(M: Any) -> Any:
    """np.bartlett."""
    n = _places(M)
    return np.where(n <= 0, 1 + n / (M - 1), 1 - n / (M - 1))


def _blackman(M: Any) -> Any:
    """np.blackman."""
    angles = _angles(M)
    return 0.42 + 0.5 * np.cos(angles) + 0.08 * np.cos(2.0 * angles)


def _fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """np.fft.fftfreq."""
    places = arange(n)
    return np.where(places < (n - 1) // 2 + 1, places, places - n) * (1.0 / (n * d))


SIZED = {
    "tri": _tri,
    "bartlett": _bartlett,
    "blackman": _blackman,
    "hamming": lambda M: 0.54 + 0.46 * np.cos(_angles(M)),
    "hanning": lambda M: 0.5 + 0.5 * np.cos(_angles(M)),
    "fftfreq": _fftfreq,
    "rfftfreq": lambda n, d=1.0, device=None: arange(n // 2 + 1) * (1.0 / (n * d)),
}


def sized_function(name: str) -> Any:
    """The function with this name of NumPy, of symbolic sizes."""
    return SIZED[name]


LATE_BOUND["sized_function"] = sized_function

"""The measured programs, written once for NumPy and every peer with the same names."""

import numpy as np


def chain(xp, n: int, x, y):
    """``n`` small operations of five kinds, one after the other (``n`` is a multiple of 5)."""
    for _ in range(n // 5):
        x = xp.tanh(x)
        x = x * y
        x = xp.sin(x)
        x = x + 0.5
        x = x - y
    return x


def chain_sum(xp, n: int, x, y):
    """The sum of ``chain``, for gradients."""
    return chain(xp, n, x, y).sum()


def long_chain(xp, x):
    """200 operations on one array."""
    for _ in range(50):
        x = xp.tanh(x)
        x = x * 0.5
        x = xp.exp(x)
        x = x - 0.25
    return x


def arrays(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of ``size`` elements."""
    return np.full(size, 0.3), np.full(size, 0.7)


def plain(n: int, size: int) -> np.ndarray:
    """``chain`` in NumPy, the least work of any evaluator."""
    return chain(np, n, *arrays(size))

"""First values of weights, each by a key of its own: ``normal(key, shape)`` and its like.

What a weight of shape (outputs, inputs, *kernel) reads and writes says its scale; the functions
that need no key, ``zeros``, ``ones`` and ``constant``, take one all the same, so that any of them
can stand for any other.

>>> from letir.random import key, split
>>> k1, k2 = split(key(0))
>>> glorot_uniform(k1, (4, 3)).shape, orthogonal(k2, (2, 5)).shape
((4, 3), (2, 5))
"""

import math
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.errors import ShapeError

GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 0.75,
    "leaky_relu": math.sqrt(2 / (1 + 0.01**2)),
}

# ---- given numbers ----


def zeros(key: Any, shape: tuple, dtype: Any = np.float64) -> np.ndarray:
    """Zeros."""
    return np.zeros(shape, dtype)


def ones(key: Any, shape: tuple, dtype: Any = np.float64) -> np.ndarray:
    """Ones."""
    return np.ones(shape, dtype)


def constant(key: Any, shape: tuple, value: Any, dtype: Any = np.float64) -> np.ndarray:
    """``value`` everywhere."""
    return np.full(shape, value, dtype)


# ---- random numbers ----


def uniform(
    key: Any, shape: tuple, low: float = 0.0, high: float = 1.0, dtype: Any = np.float64
) -> Any:
    """Evenly distributed numbers in [low, high)."""
    return PRIMITIVES["random_uniform"](key, shape, low, high, dtype)


def normal(
    key: Any, shape: tuple, mean: float = 0.0, std: float = 1.0, dtype: Any = np.float64
) -> Any:
    """Normal numbers."""
    return PRIMITIVES["random_normal"](key, shape, mean, std, dtype)


def truncated_normal(
    key: Any,
    shape: tuple,
    mean: float = 0.0,
    std: float = 1.0,
    bound: float = 2.0,
    dtype: Any = np.float64,
) -> Any:
    """Normal numbers no farther from ``mean`` than ``bound`` times ``std``. Needs SciPy."""
    drawn = PRIMITIVES["random_truncated_normal"](key, -bound, bound, shape, dtype)
    return drawn * std + mean


def fan_in_and_out(shape: tuple) -> tuple[int, int]:
    """How many numbers one output reads, and how many one input writes."""
    if len(shape) < 2:
        raise ShapeError(f"a weight has the shape (outputs, inputs, *kernel), found {shape}")
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def glorot_uniform(key: Any, shape: tuple, gain: float = 1.0, dtype: Any = np.float64) -> Any:
    """Evenly distributed, of variance 2 / (inputs + outputs).

    Glorot and Bengio, Understanding the difficulty of training deep feedforward networks, 2010.
    """
    bound = gain * math.sqrt(6 / sum(fan_in_and_out(shape)))
    return uniform(key, shape, -bound, bound, dtype)


def glorot_normal(key: Any, shape: tuple, gain: float = 1.0, dtype: Any = np.float64) -> Any:
    """Normal, of variance 2 / (inputs + outputs)."""
    return normal(key, shape, 0.0, gain * math.sqrt(2 / sum(fan_in_and_out(shape))), dtype)


def he_uniform(key: Any, shape: tuple, nonlinearity: str = "relu", dtype: Any = np.float64) -> Any:
    """Evenly distributed, so that variances stay through layers of this nonlinearity.

    He, Zhang, Ren and Sun, Delving deep into rectifiers, ICCV 2015.
    """
    bound = GAINS[nonlinearity] * math.sqrt(3 / fan_in_and_out(shape)[0])
    return uniform(key, shape, -bound, bound, dtype)


def he_normal(key: Any, shape: tuple, nonlinearity: str = "relu", dtype: Any = np.float64) -> Any:
    """Normal, so that variances stay through layers of this nonlinearity."""
    return normal(key, shape, 0.0, GAINS[nonlinearity] / math.sqrt(fan_in_and_out(shape)[0]), dtype)


def orthogonal(key: Any, shape: tuple, gain: float = 1.0, dtype: Any = np.float64) -> np.ndarray:
    """Rows (or columns, if there are more rows) that are orthonormal, times ``gain``.

    Saxe, McClelland and Ganguli, Exact solutions to the nonlinear dynamics of learning in deep
    linear neural networks, ICLR 2014.
    """
    fan_in_and_out(shape)  # at least two axes
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = normal(key, (max(rows, columns), min(rows, columns)))
    if isinstance(drawn, Value):
        raise ShapeError("orthogonal: call it outside of a trace, it is not recorded")
    q, r = np.linalg.qr(drawn)
    q = q * np.sign(np.diagonal(r))  # evenly distributed among the orthogonal matrices
    return (gain * (q if rows >= columns else q.T)).reshape(shape).astype(dtype)

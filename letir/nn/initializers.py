"""Initial values of weights, each drawn with its own key: ``normal(key, shape)`` and others.

A weight has shape (outputs, inputs, *kernel); its fan-in and fan-out determine the scale of some
initialisers. ``zeros``, ``ones`` and ``constant`` take a key too, which they ignore, so that all
initialisers are called alike.

>>> from letir.random import key, split
>>> k1, k2 = split(key(0))
>>> glorot_uniform(k1, (4, 3)).shape, orthogonal(k2, (2, 5)).shape
((4, 3), (2, 5))
"""

import math
from typing import Any

import numpy as np

from letir.ast import entry_point
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

# ---- constants ----


@entry_point
def zeros(key: Any, shape: tuple, dtype: Any = np.float64) -> np.ndarray:
    """Zeros."""
    return np.zeros(shape, dtype)


@entry_point
def ones(key: Any, shape: tuple, dtype: Any = np.float64) -> np.ndarray:
    """Ones."""
    return np.ones(shape, dtype)


@entry_point
def constant(key: Any, shape: tuple, value: Any, dtype: Any = np.float64) -> np.ndarray:
    """``value`` everywhere."""
    return np.full(shape, value, dtype)


# ---- random numbers ----


@entry_point
def uniform(
    key: Any, shape: tuple, low: float = 0.0, high: float = 1.0, dtype: Any = np.float64
) -> Any:
    """Uniform numbers in [low, high)."""
    return PRIMITIVES["random_uniform"](key, shape, low, high, dtype)


@entry_point
def normal(
    key: Any, shape: tuple, mean: float = 0.0, std: float = 1.0, dtype: Any = np.float64
) -> Any:
    """Normal numbers."""
    return PRIMITIVES["random_normal"](key, shape, mean, std, dtype)


@entry_point
def truncated_normal(
    key: Any,
    shape: tuple,
    mean: float = 0.0,
    std: float = 1.0,
    bound: float = 2.0,
    dtype: Any = np.float64,
) -> Any:
    """Normal numbers within ``bound`` standard deviations of ``mean``. Needs SciPy."""
    drawn = PRIMITIVES["random_truncated_normal"](key, -bound, bound, shape, dtype)
    return drawn * std + mean


@entry_point
def fan_in_and_out(shape: tuple) -> tuple[int, int]:
    """(number of inputs of one output, number of outputs of one input) of a weight."""
    if len(shape) < 2:
        raise ShapeError(
            f"a weight must have shape (outputs, inputs, *kernel), found {shape}\n"
            "  pass a shape of at least two sizes: (outputs, inputs)"
        )
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


@entry_point
def glorot_uniform(key: Any, shape: tuple, gain: float = 1.0, dtype: Any = np.float64) -> Any:
    """Uniform numbers of variance 2 / (fan-in + fan-out).

    Glorot and Bengio, Understanding the difficulty of training deep feedforward networks, 2010.
    """
    bound = gain * math.sqrt(6 / sum(fan_in_and_out(shape)))
    return uniform(key, shape, -bound, bound, dtype)


@entry_point
def glorot_normal(key: Any, shape: tuple, gain: float = 1.0, dtype: Any = np.float64) -> Any:
    """Normal numbers of variance 2 / (fan-in + fan-out)."""
    return normal(key, shape, 0.0, gain * math.sqrt(2 / sum(fan_in_and_out(shape))), dtype)


@entry_point
def he_uniform(key: Any, shape: tuple, nonlinearity: str = "relu", dtype: Any = np.float64) -> Any:
    """Uniform numbers for which layers with this nonlinearity preserve the variance.

    He, Zhang, Ren and Sun, Delving deep into rectifiers, ICCV 2015.
    """
    bound = GAINS[nonlinearity] * math.sqrt(3 / fan_in_and_out(shape)[0])
    return uniform(key, shape, -bound, bound, dtype)


@entry_point
def he_normal(key: Any, shape: tuple, nonlinearity: str = "relu", dtype: Any = np.float64) -> Any:
    """Normal numbers for which layers with this nonlinearity preserve the variance."""
    return normal(key, shape, 0.0, GAINS[nonlinearity] / math.sqrt(fan_in_and_out(shape)[0]), dtype)


@entry_point
def orthogonal(key: Any, shape: tuple, gain: float = 1.0, dtype: Any = np.float64) -> np.ndarray:
    """A matrix with orthonormal rows (columns, if there are more rows), times ``gain``.

    Saxe, McClelland and Ganguli, Exact solutions to the nonlinear dynamics of learning in deep
    linear neural networks, ICLR 2014.
    """
    fan_in_and_out(shape)  # raises for fewer than two axes
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = normal(key, (max(rows, columns), min(rows, columns)))
    if isinstance(drawn, Value):
        raise ShapeError(
            "orthogonal: it cannot be recorded; call it outside of a trace\n"
            "  make the weights before, and pass them in"
        )
    q, r = np.linalg.qr(drawn)
    q = q * np.sign(np.diagonal(r))  # uniform among the orthogonal matrices
    return (gain * (q if rows >= columns else q.T)).reshape(shape).astype(dtype)

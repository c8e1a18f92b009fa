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

__all__ = [
    "constant",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "zeros",
]

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
    """An array of zeros.

    >>> from letir.random import key
    >>> zeros(key(0), (2, 3))
    array([[0., 0., 0.],
           [0., 0., 0.]])
    """
    return np.zeros(shape, dtype)


@entry_point
def ones(key: Any, shape: tuple, dtype: Any = np.float64) -> np.ndarray:
    """An array of ones.

    >>> from letir.random import key
    >>> ones(key(0), (3,), "float32")
    array([1., 1., 1.], dtype=float32)
    """
    return np.ones(shape, dtype)


@entry_point
def constant(key: Any, shape: tuple, value: Any, dtype: Any = np.float64) -> np.ndarray:
    """An array with ``value`` everywhere.

    >>> from letir.random import key
    >>> constant(key(0), (2,), 0.5)
    array([0.5, 0.5])
    """
    return np.full(shape, value, dtype)


# ---- random numbers ----


@entry_point
def uniform(
    key: Any, shape: tuple, low: float = 0.0, high: float = 1.0, dtype: Any = np.float64
) -> Any:
    """Uniform numbers in [low, high).

    >>> from letir.random import key
    >>> x = uniform(key(0), (1000,), -1.0, 1.0)
    >>> bool(-1 <= x.min() < -0.9), bool(0.9 < x.max() < 1)
    (True, True)
    """
    return PRIMITIVES["random_uniform"](key, shape, low, high, dtype)


@entry_point
def normal(
    key: Any, shape: tuple, mean: float = 0.0, std: float = 1.0, dtype: Any = np.float64
) -> Any:
    """Normal numbers with this mean and standard deviation.

    >>> from letir.random import key
    >>> float(normal(key(0), (10_000,), std=2.0).std().round(1))
    2.0
    """
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
    """Normal numbers within ``bound`` standard deviations of ``mean``. Needs SciPy.

    >>> from letir.random import key
    >>> bool(abs(truncated_normal(key(0), (1000,), bound=1.5)).max() <= 1.5)
    True
    """
    drawn = PRIMITIVES["random_truncated_normal"](key, -bound, bound, shape, dtype)
    return drawn * std + mean


@entry_point
def fan_in_and_out(shape: tuple) -> tuple[int, int]:
    """(number of inputs of one output, number of outputs of one input) of a weight."""
    if not isinstance(shape, tuple | list) or len(shape) < 2:
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

    >>> from letir.random import key
    >>> float(glorot_uniform(key(0), (100, 300)).var().round(3))  # 2 / (100 + 300)
    0.005
    """
    bound = gain * math.sqrt(6 / sum(fan_in_and_out(shape)))
    return uniform(key, shape, -bound, bound, dtype)


@entry_point
def glorot_normal(key: Any, shape: tuple, gain: float = 1.0, dtype: Any = np.float64) -> Any:
    """Normal numbers of variance 2 / (fan-in + fan-out).

    >>> from letir.random import key
    >>> float(glorot_normal(key(0), (100, 300)).var().round(3))  # 2 / (100 + 300)
    0.005
    """
    return normal(key, shape, 0.0, gain * math.sqrt(2 / sum(fan_in_and_out(shape))), dtype)


@entry_point
def he_uniform(key: Any, shape: tuple, nonlinearity: str = "relu", dtype: Any = np.float64) -> Any:
    """Uniform numbers for which layers with this nonlinearity preserve the variance.

    He, Zhang, Ren and Sun, Delving deep into rectifiers, ICCV 2015.

    >>> from letir.random import key
    >>> float(he_uniform(key(0), (100, 200)).var().round(3))  # 2 / 200
    0.01
    """
    bound = GAINS[nonlinearity] * math.sqrt(3 / fan_in_and_out(shape)[0])
    return uniform(key, shape, -bound, bound, dtype)


@entry_point
def he_normal(key: Any, shape: tuple, nonlinearity: str = "relu", dtype: Any = np.float64) -> Any:
    """Normal numbers for which layers with this nonlinearity preserve the variance.

    ``nonlinearity``: a key of ``GAINS``: "linear", "sigmoid", "tanh", "relu", "selu", "leaky_relu".

    >>> from letir.random import key
    >>> float(he_normal(key(0), (100, 200)).var().round(3))  # 2 / 200
    0.01
    """
    return normal(key, shape, 0.0, GAINS[nonlinearity] / math.sqrt(fan_in_and_out(shape)[0]), dtype)


@entry_point
def orthogonal(key: Any, shape: tuple, gain: float = 1.0, dtype: Any = np.float64) -> np.ndarray:
    """A matrix with orthonormal rows (columns, if there are more rows), times ``gain``.

    Saxe, McClelland and Ganguli, Exact solutions to the nonlinear dynamics of learning in deep
    linear neural networks, ICLR 2014.

    >>> from letir.random import key
    >>> w = orthogonal(key(0), (2, 5))
    >>> (w @ w.T).round(3) + 0.0
    array([[1., 0.],
           [0., 1.]])
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

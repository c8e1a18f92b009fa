"""Activation functions, softmax and dropout."""

import math
from typing import Any

import numpy as np

from letir.errors import MissingRule
from letir.onnx.importing.values import axis_of, known_array, number_like
from letir.ops.nn import activations
from letir.ops.nn.softmax import log_softmax, softmax
from letir.ops.shape.reshape_and_ravel import reshape


def _leaky_relu(x: Any, alpha: float = 0.01) -> Any:
    """LeakyRelu: x, and ``alpha * x`` below 0."""
    return np.where(x < 0, x * number_like(alpha, x), x)


def _elu(x: Any, alpha: float = 1.0) -> Any:
    """Elu: x, and ``alpha * (exp(x) - 1)`` below 0."""
    return np.where(x < 0, number_like(alpha, x) * np.expm1(np.minimum(x, number_like(0, x))), x)


def _celu(x: Any, alpha: float = 1.0) -> Any:
    """Celu: x, and ``alpha * (exp(x / alpha) - 1)`` below 0."""
    low = np.minimum(x, number_like(0, x))
    return np.where(x < 0, number_like(alpha, x) * np.expm1(low / number_like(alpha, x)), x)


def _selu(
    x: Any, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Any:
    """Selu: ``gamma * elu(x)``."""
    return number_like(gamma, x) * _elu(x, alpha)


def _hard_sigmoid(x: Any, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """HardSigmoid: a line between 0 and 1."""
    line = x * number_like(alpha, x) + number_like(beta, x)
    return np.minimum(np.maximum(line, number_like(0, x)), number_like(1, x))


def _hard_swish(x: Any) -> Any:
    """HardSwish: x times a HardSigmoid of slope 1/6."""
    return x * _hard_sigmoid(x, 1 / 6, 0.5)


def _swish(x: Any, alpha: float = 1.0) -> Any:
    """Swish: x * sigmoid(alpha * x)."""
    return x * activations.sigmoid(x * number_like(alpha, x))


def _prelu(x: Any, slope: Any, opset: int) -> Any:
    """PRelu: x, and ``slope * x`` below 0; before version 7 with a slope for each channel."""
    if opset < 7 and slope.ndim == 1:
        slope = slope.reshape((-1, *[1] * (x.ndim - 2)))
    return np.where(x < 0, x * slope, x)


def _gelu(x: Any, approximate: str = "none") -> Any:
    """Gelu: x times the normal distribution function of x."""
    return activations.gelu(x, approximate=approximate)


def _relu(x: Any) -> Any:
    """Relu: the larger of x and 0."""
    return np.maximum(x, number_like(0, x)) if x.dtype.kind in "iu" else activations.relu(x)


def _sigmoid(x: Any) -> Any:
    """Sigmoid: 1 / (1 + exp(-x))."""
    return activations.sigmoid(x)


def _softplus(x: Any) -> Any:
    """Softplus: log(1 + exp(x))."""
    return activations.softplus(x)


def _softsign(x: Any) -> Any:
    """Softsign: x / (1 + abs(x))."""
    return activations.softsign(x)


def _mish(x: Any) -> Any:
    """Mish: x * tanh(softplus(x))."""
    return activations.mish(x)


def _shrink(x: Any, bias: float = 0.0, lambd: float = 0.5) -> Any:
    """Shrink: x moved towards 0 by ``bias``; 0 between ``-lambd`` and ``lambd``."""
    move, edge = number_like(bias, x), number_like(lambd, x)
    return np.where(x < -edge, x + move, np.where(x > edge, x - move, number_like(0, x)))


def _thresholded_relu(x: Any, alpha: float = 1.0) -> Any:
    """ThresholdedRelu: x above ``alpha``, else 0."""
    return np.where(x > number_like(alpha, x), x, number_like(0, x))


def _axis_operator(f: Any) -> Any:
    """The operator of a function along an axis.

    Before version 13 all axes from ``axis`` count as one, and ``axis`` is 1 by default.
    """

    def run(x: Any, opset: int, axis: int | None = None) -> Any:
        if opset >= 13:
            return f(x, axis_of(-1 if axis is None else axis, x.ndim))
        at = axis_of(1 if axis is None else axis, x.ndim)
        rows, columns = math.prod(x.shape[:at]), math.prod(x.shape[at:])
        return reshape(f(reshape(x, (rows, columns)), 1), x.shape)

    return run


def _hardmax(x: Any, axis: int) -> Any:
    """Hardmax: 1 at the first maximum, else 0."""
    most = np.expand_dims(np.argmax(x, axis=axis), axis)
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return (most == places).astype(x.dtype)


def _softmax(x: Any, axis: int) -> Any:
    """Softmax along one axis."""
    return softmax(x, axis=axis)


def _log_softmax(x: Any, axis: int) -> Any:
    """LogSoftmax along one axis."""
    return log_softmax(x, axis=axis)


def _dropout(x: Any, ratio: Any = None, training: Any = None, seed: int = 0, **legacy: Any) -> Any:
    """Dropout: x itself outside of training, and a mask of ones."""
    drops = ratio is None or bool(np.any(known_array(ratio, "Dropout: the ratio")))
    if training is not None and drops and known_array(training, "Dropout: training_mode").any():
        raise MissingRule(
            "Dropout in training draws random numbers, which is not supported\n"
            "  export the model for inference"
        )
    return x, np.ones_like(x, dtype=bool)


OPERATORS: dict[str, Any] = {
    **{"Relu": _relu, "LeakyRelu": _leaky_relu, "Elu": _elu, "Celu": _celu, "Selu": _selu},
    **{"HardSigmoid": _hard_sigmoid, "HardSwish": _hard_swish, "Swish": _swish, "PRelu": _prelu},
    **{"Gelu": _gelu, "Sigmoid": _sigmoid, "Softplus": _softplus, "Softsign": _softsign},
    **{"Mish": _mish, "Shrink": _shrink, "ThresholdedRelu": _thresholded_relu},
    **{"Softmax": _axis_operator(_softmax), "LogSoftmax": _axis_operator(_log_softmax)},
    **{"Hardmax": _axis_operator(_hardmax), "Dropout": _dropout},
}

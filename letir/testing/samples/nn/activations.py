"""Samples of operations in ``letir.ops.nn.activations`` and ``letir.ops.special.normal_cdf``."""

from typing import Any

import numpy as np

from letir.testing.samples.sample import BLOCK, EMPTY, INTEGERS, Sample, X, Y, narrow, of, rough

ROW = np.array([-3.7, -1.3, -0.4, 0.3, 0.8, 2.6, 7.1])
FAR = np.array([-40.0, -9.0, 9.0, 700.0])


def smooth(*more: Sample, **attrs: Any) -> list[Sample]:
    """A function of one array: both signs, 0-d, far out, single precision."""
    kinds = [of(ROW, **attrs), of(ROW[1], **attrs), *narrow(of(ROW, **attrs))[:1]]
    return [*kinds, rough(FAR, **attrs), *more]


SAMPLES = {
    "relu": smooth(
        *narrow(of(X)), of(0.7), of(INTEGERS - 4), of(EMPTY), rough(np.array([0.0, -0.0, np.nan]))
    ),
    "relu6": smooth(rough(np.array([0.0, 6.0]))),
    "leaky_relu": smooth(of(X, negative_slope=0.3)),
    "elu": smooth(of(X, alpha=0.5), rough(np.zeros(2))),
    "celu": smooth(of(X, alpha=0.5)),
    "selu": smooth(),
    "hardtanh": smooth(of(X, low=-0.5, high=0.7)),
    "hardsigmoid": smooth(),
    "hardswish": smooth(),
    "hardshrink": smooth(of(X, threshold=0.9)),
    "softshrink": smooth(of(X, threshold=0.9)),
    "prelu": [of(X, Y[0]), of(BLOCK + 0.01, Y[0]), of(X, np.array(0.3)), *narrow(of(X, Y[0]))],
    "sigmoid": smooth(*narrow(of(X)), of(0.7), of(INTEGERS), of(EMPTY)),
    "softplus": smooth(of(X, beta=2.0)),
    "log_sigmoid": smooth(),
    "silu": smooth(),
    "mish": smooth(),
    "gelu": smooth(of(X, approximate="tanh")),
    "softsign": smooth(),
    "tanhshrink": smooth(),
    "normal_cdf": smooth(*narrow(of(X)), of(0.7), of(ROW * 5), of(INTEGERS), of(EMPTY)),
    "glu": [of(BLOCK), of(BLOCK, axis=0), *narrow(of(BLOCK))],
}

"""Samples of operations in ``letir.ops.nn.activations`` and ``letir.ops.special.normal_cdf``."""

from typing import Any

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    EMPTY,
    INTEGERS,
    Sample,
    X,
    Y,
    narrowed,
    nonsmooth,
    sample_of,
)

ROW = np.array([-3.7, -1.3, -0.4, 0.3, 0.8, 2.6, 7.1])
FAR = np.array([-40.0, -9.0, 9.0, 700.0])


def smooth(*more: Sample, **attrs: Any) -> list[Sample]:
    """A function of one array: both signs, 0-d, far out, single precision."""
    kinds = [
        sample_of(ROW, **attrs),
        sample_of(ROW[1], **attrs),
        *narrowed(sample_of(ROW, **attrs))[:1],
    ]
    return [*kinds, nonsmooth(FAR, **attrs), *more]


SAMPLES = {
    "relu": smooth(
        *narrowed(sample_of(X)),
        sample_of(0.7),
        sample_of(INTEGERS - 4),
        sample_of(EMPTY),
        nonsmooth(np.array([0.0, -0.0, np.nan])),
    ),
    "relu6": smooth(nonsmooth(np.array([0.0, 6.0]))),
    "leaky_relu": smooth(sample_of(X, negative_slope=0.3)),
    "elu": smooth(sample_of(X, alpha=0.5), nonsmooth(np.zeros(2))),
    "celu": smooth(sample_of(X, alpha=0.5)),
    "selu": smooth(),
    "hardtanh": smooth(sample_of(X, low=-0.5, high=0.7)),
    "hardsigmoid": smooth(),
    "hardswish": smooth(),
    "hardshrink": smooth(sample_of(X, threshold=0.9)),
    "softshrink": smooth(sample_of(X, threshold=0.9)),
    "prelu": [
        sample_of(X, Y[0]),
        sample_of(BLOCK + 0.01, Y[0]),
        sample_of(X, np.array(0.3)),
        *narrowed(sample_of(X, Y[0])),
    ],
    "sigmoid": smooth(
        *narrowed(sample_of(X)), sample_of(0.7), sample_of(INTEGERS), sample_of(EMPTY)
    ),
    "softplus": smooth(sample_of(X, beta=2.0)),
    "log_sigmoid": smooth(),
    "silu": smooth(),
    "mish": smooth(),
    "gelu": smooth(sample_of(X, approximate="tanh")),
    "softsign": smooth(),
    "tanhshrink": smooth(),
    "normal_cdf": smooth(
        *narrowed(sample_of(X)),
        sample_of(0.7),
        sample_of(ROW * 5),
        sample_of(INTEGERS),
        sample_of(EMPTY),
    ),
    "glu": [sample_of(BLOCK), sample_of(BLOCK, axis=0), *narrowed(sample_of(BLOCK))],
}

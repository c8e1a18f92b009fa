"""Samples of elementwise operations: ``sinc``, ``i0``, angles, rounding, ``isclose``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    BOOLEANS,
    EMPTY,
    INTEGERS,
    SPECIAL,
    X,
    Y,
    Z,
    narrowed,
    nonsmooth,
    sample_of,
    unary_samples,
)

BESSEL = [
    sample_of(np.array([0.0, 0.5, -3.0, 7.75])),
    sample_of(np.array([[8.5, -20.0]])),
    sample_of(X[0, 0]),
    sample_of(1.5),
    sample_of(EMPTY),
    sample_of(INTEGERS),
    *narrowed(sample_of(X)),
]
HOLES = np.array([np.nan, 1.5, -np.inf, np.inf])
SAMPLES = {
    "sinc": [*unary_samples(0.5, -1.5), sample_of(np.array([0.0, 0.05, -0.159, 0.16]))],
    "i0": BESSEL,
    "i0_slope": BESSEL,
    "angle": [
        sample_of(Z),
        sample_of(Z[0, 0], deg=True),
        sample_of(X, deg=True),
        nonsmooth(SPECIAL),
        sample_of(INTEGERS - 3),
        sample_of(EMPTY + 0j),
        sample_of(1j),
        *narrowed(sample_of(X)),
    ],
    "unwrap": [
        sample_of(np.cumsum(abs(BLOCK) * 7, axis=-1) % 6.0),
        sample_of(X * 5, axis=0),
        sample_of(X * 5, discont=4.0, period=5.0, axis=1),
        sample_of(INTEGERS, period=4),
        sample_of(X[0] * 4),
        sample_of(EMPTY),
        *narrowed(sample_of(X * 5)),
    ],
    "round": [
        sample_of(X * 1.01),
        sample_of(X * 123.4, decimals=-1),
        sample_of(Z * 1.01, decimals=1),
        sample_of(INTEGERS * 17, decimals=-1),
        sample_of(BOOLEANS),
        sample_of(1.27, decimals=1),
        sample_of(EMPTY),
        *narrowed(sample_of(X * 1.01, decimals=1)),
    ],
    "isclose": [
        sample_of(X, X + 1e-9, 1e-5, 1e-8),
        sample_of(X, Y[0], np.array([[0.5], [2.0]]), 1e-8),
        sample_of(HOLES, HOLES[::-1].copy(), 1e-5, 1e-8),
        sample_of(HOLES, HOLES, 1e-5, 1e-8, equal_nan=True),
        sample_of(INTEGERS, 3, 0.5, 0),
        sample_of(Z, Z[:1], 1e-5, X),
        sample_of(EMPTY, X[:1], 1e-5, 1e-8),
    ],
    "nan_to_num": [
        sample_of(X),
        nonsmooth(HOLES),
        nonsmooth(HOLES, nan=2.0, posinf=3, neginf=-4.5),
        sample_of(Z),
        nonsmooth(HOLES.repeat(2).view(complex)),
        sample_of(INTEGERS),
        sample_of(np.float64(0.5)),
        sample_of(0.5),
        sample_of(EMPTY),
        *narrowed(sample_of(X)),
    ],
}

"""Samples of operations in ``letir.ops.elementwise.sinc_and_i0``, ``angles`` and ``precision``."""

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
    narrow,
    of,
    points,
    rough,
)

BESSEL = [
    of(np.array([0.0, 0.5, -3.0, 7.75])),
    of(np.array([[8.5, -20.0]])),
    of(X[0, 0]),
    of(1.5),
    of(EMPTY),
    of(INTEGERS),
    *narrow(of(X)),
]
HOLES = np.array([np.nan, 1.5, -np.inf, np.inf])
SAMPLES = {
    "sinc": [*points(0.5, -1.5), of(np.array([0.0, 0.05, -0.159, 0.16]))],
    "i0": BESSEL,
    "i0_slope": BESSEL,
    "angle": [
        of(Z),
        of(Z[0, 0], deg=True),
        of(X, deg=True),
        rough(SPECIAL),
        of(INTEGERS - 3),
        of(EMPTY + 0j),
        of(1j),
        *narrow(of(X)),
    ],
    "unwrap": [
        of(np.cumsum(abs(BLOCK) * 7, axis=-1) % 6.0),
        of(X * 5, axis=0),
        of(X * 5, discont=4.0, period=5.0, axis=1),
        of(INTEGERS, period=4),
        of(X[0] * 4),
        of(EMPTY),
        *narrow(of(X * 5)),
    ],
    "round": [
        of(X * 1.01),
        of(X * 123.4, decimals=-1),
        of(Z * 1.01, decimals=1),
        of(INTEGERS * 17, decimals=-1),
        of(BOOLEANS),
        of(1.27, decimals=1),
        of(EMPTY),
        *narrow(of(X * 1.01, decimals=1)),
    ],
    "isclose": [
        of(X, X + 1e-9, 1e-5, 1e-8),
        of(X, Y[0], np.array([[0.5], [2.0]]), 1e-8),
        of(HOLES, HOLES[::-1].copy(), 1e-5, 1e-8),
        of(HOLES, HOLES, 1e-5, 1e-8, equal_nan=True),
        of(INTEGERS, 3, 0.5, 0),
        of(Z, Z[:1], 1e-5, X),
        of(EMPTY, X[:1], 1e-5, 1e-8),
    ],
    "nan_to_num": [
        of(X),
        rough(HOLES),
        rough(HOLES, nan=2.0, posinf=3, neginf=-4.5),
        of(Z),
        rough(HOLES.repeat(2).view(complex)),
        of(INTEGERS),
        of(np.float64(0.5)),
        of(0.5),
        of(EMPTY),
        *narrow(of(X)),
    ],
}

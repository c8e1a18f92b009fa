"""Samples of the operations in ``letir.ops.reductions.variance_and_average``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    BOOLEANS,
    COMPLEX128,
    FLOAT32,
    INTEGERS,
    SPECIAL,
    Sample,
    X,
    Y,
    Z,
    exempt,
    narrow,
    of,
    rough,
)

FULL = np.array([[True, False, True], [True, True, True]])
WEIGHTS = np.array([0.5, 1.25, 2.0])
COUNTS = np.array([1, 2, 3])


def spreads() -> list[Sample]:
    """Samples of np.var and np.std."""
    return [
        of(X),
        of(X, axis=-1, ddof=1, keepdims=True),
        of(BLOCK, axis=(0, 2), ddof=0.5),
        of(INTEGERS, axis=0),
        of(X, FULL, axis=1),
        of(X, None, Y[:1, :1], axis=0),
        of(X, FULL, Y[:, :1], axis=1, ddof=1),
        of(Z, axis=1),
        of(X, axis=0, dtype=FLOAT32),
        of(Z, axis=0, dtype=COMPLEX128),
        rough(np.ones((2, 3)), axis=0),
        *narrow(of(X, axis=1)),
    ]


SAMPLES = {
    "var": exempt(spreads(), complex_step="it conjugates"),
    "std": exempt(spreads(), complex_step="it conjugates"),
    "average": [
        of(X, Y**2),
        of(X, WEIGHTS, axis=1),
        of(BLOCK, BLOCK[:, 0].T ** 2 + 0.5, axis=(2, 0), keepdims=True),
        of(INTEGERS, COUNTS, axis=-1),
        of(Z, WEIGHTS, axis=1),
        *narrow(of(X, WEIGHTS, axis=1)),
    ],
    "ptp": [
        of(X),
        of(X, axis=(0, -1), keepdims=True),
        of(X[0, 0]),
        of(INTEGERS, axis=1),
        rough(np.ones((2, 3)), axis=0),
        *narrow(of(X, axis=-1)),
    ],
    "count_nonzero": [
        of(X),
        of(BOOLEANS, axis=1),
        of(SPECIAL, axis=0, keepdims=True),
        of(X[0, 0]),
        of(Z, axis=(0, 1)),
    ],
}

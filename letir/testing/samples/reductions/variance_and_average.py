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
    narrowed,
    nonsmooth,
    sample_of,
)

FULL = np.array([[True, False, True], [True, True, True]])
WEIGHTS = np.array([0.5, 1.25, 2.0])
COUNTS = np.array([1, 2, 3])


def spreads() -> list[Sample]:
    """Samples of np.var and np.std."""
    return [
        sample_of(X),
        sample_of(X, axis=-1, ddof=1, keepdims=True),
        sample_of(BLOCK, axis=(0, 2), ddof=0.5),
        sample_of(INTEGERS, axis=0),
        sample_of(X, FULL, axis=1),
        sample_of(X, None, Y[:1, :1], axis=0),
        sample_of(X, FULL, Y[:, :1], axis=1, ddof=1),
        sample_of(Z, axis=1),
        sample_of(X, axis=0, dtype=FLOAT32),
        sample_of(Z, axis=0, dtype=COMPLEX128),
        nonsmooth(np.ones((2, 3)), axis=0),
        *narrowed(sample_of(X, axis=1)),
    ]


SAMPLES = {
    "var": exempt(spreads(), complex_step="it conjugates"),
    "std": exempt(spreads(), complex_step="it conjugates"),
    "average": [
        sample_of(X, Y**2),
        sample_of(X, WEIGHTS, axis=1),
        sample_of(BLOCK, BLOCK[:, 0].T ** 2 + 0.5, axis=(2, 0), keepdims=True),
        sample_of(INTEGERS, COUNTS, axis=-1),
        sample_of(Z, WEIGHTS, axis=1),
        *narrowed(sample_of(X, WEIGHTS, axis=1)),
    ],
    "ptp": [
        sample_of(X),
        sample_of(X, axis=(0, -1), keepdims=True),
        sample_of(X[0, 0]),
        sample_of(INTEGERS, axis=1),
        nonsmooth(np.ones((2, 3)), axis=0),
        *narrowed(sample_of(X, axis=-1)),
    ],
    "count_nonzero": [
        sample_of(X),
        sample_of(BOOLEANS, axis=1),
        sample_of(SPECIAL, axis=0, keepdims=True),
        sample_of(X[0, 0]),
        sample_of(Z, axis=(0, 1)),
    ],
}

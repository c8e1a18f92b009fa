"""Samples of the operations in ``letir.ops.reductions.cumulative``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    BOOLEANS,
    EMPTY,
    FLOAT32,
    INTEGERS,
    X,
    Z,
    narrowed,
    sample_of,
)

ZERO_FACTORS = np.array([[0.5, 0.0, 3.0, -2.0, 0.25], [0.0, 0.0, 4.0, 1.5, 2.0]])
SAMPLES = {
    "cumprod": [
        sample_of(X),
        sample_of(BLOCK, axis=1),
        sample_of(ZERO_FACTORS, axis=-1),
        sample_of(X[0, 0], axis=0),
        sample_of(EMPTY, axis=1),
        sample_of(Z, axis=1),
        sample_of(INTEGERS, axis=0, dtype=FLOAT32),
        sample_of(INTEGERS.astype(np.int8)),
        sample_of(X, axis=1, dtype=FLOAT32),
        *narrowed(sample_of(X, axis=0)),
    ],
    "cumsum": [
        sample_of(X),
        sample_of(X, axis=0),
        sample_of(X, axis=-1),
        sample_of(X[0, 0]),
        sample_of(0.5),
        sample_of(EMPTY, axis=0),
        sample_of(Z, axis=1),
        sample_of(INTEGERS, axis=0),
        sample_of(BOOLEANS, axis=1),
        sample_of(X, axis=1, dtype=FLOAT32),
        sample_of(INTEGERS.astype(np.int8)),
        *narrowed(sample_of(X, axis=0)),
    ],
}

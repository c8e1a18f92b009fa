"""Samples of the operations in ``letir.ops.reductions.cumulative``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, BOOLEANS, EMPTY, FLOAT32, INTEGERS, X, Z, narrow, of

ZERO_FACTORS = np.array([[0.5, 0.0, 3.0, -2.0, 0.25], [0.0, 0.0, 4.0, 1.5, 2.0]])
SAMPLES = {
    "cumprod": [
        of(X),
        of(BLOCK, axis=1),
        of(ZERO_FACTORS, axis=-1),
        of(X[0, 0], axis=0),
        of(EMPTY, axis=1),
        of(Z, axis=1),
        of(INTEGERS, axis=0, dtype=FLOAT32),
        of(INTEGERS.astype(np.int8)),
        of(X, axis=1, dtype=FLOAT32),
        *narrow(of(X, axis=0)),
    ],
    "cumsum": [
        of(X),
        of(X, axis=0),
        of(X, axis=-1),
        of(X[0, 0]),
        of(0.5),
        of(EMPTY, axis=0),
        of(Z, axis=1),
        of(INTEGERS, axis=0),
        of(BOOLEANS, axis=1),
        of(X, axis=1, dtype=FLOAT32),
        of(INTEGERS.astype(np.int8)),
        *narrow(of(X, axis=0)),
    ],
}

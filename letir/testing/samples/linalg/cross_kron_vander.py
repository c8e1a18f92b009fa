"""Samples of the operations in ``letir.ops.linalg.cross_kron_vander``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    EMPTY,
    FLOAT32,
    INTEGERS,
    X,
    Y,
    Z,
    narrowed,
    sample_of,
)

SAMPLES = {
    "cross": [
        sample_of(X, Y),
        sample_of(X[0], Y),
        sample_of(BLOCK, BLOCK[0, :, :1] + 1, axisa=1, axisb=0, axisc=1),
        sample_of(Z, X),
        sample_of(INTEGERS, X),
        *narrowed(sample_of(X, Y[0])),
    ],
    "kron": [
        sample_of(X, Y),
        sample_of(X[0], BLOCK[:, :1, :2]),
        sample_of(X[0, 0], Y),
        sample_of(Z, X[0]),
        sample_of(EMPTY, X),
        sample_of(INTEGERS, X.astype(FLOAT32)),
        *narrowed(sample_of(X[0], Y[:1])),
    ],
    "vander": [
        sample_of(X[0]),
        sample_of(np.array([0.0, 2.0]), n=4, increasing=True),
        sample_of(X[0], n=1),
        sample_of(X[0], n=0),
        sample_of(Z[0], n=3),
        sample_of(INTEGERS[0].astype(np.int8), n=2),
        sample_of(X[0].astype(FLOAT32)),
    ],
}

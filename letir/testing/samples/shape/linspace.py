"""Samples of the operations in ``letir.ops.shape.linspace``."""

import numpy as np

from letir.testing.samples.sample import (
    FLOAT32,
    INTEGERS,
    POSITIVE,
    W,
    X,
    Y,
    Z,
    narrowed,
    sample_of,
)

ROW, COLUMN = POSITIVE[0] + 2, POSITIVE[:, :1]
SAMPLES = {
    "linspace": [
        sample_of(0.5, 2.0, num=4),
        sample_of(X, Y[0], num=3, axis=-1),
        sample_of(X[:, :1], 2, num=4, endpoint=False, axis=1),
        sample_of(X[0, 0], np.float64(2.0), num=1),
        sample_of(X[0], Y[0], num=0),
        sample_of(X[0], Y[0], num=3, dtype=FLOAT32),
        sample_of(Z[0], W[0], num=3),
        sample_of(INTEGERS, 4, num=3),
        sample_of(INTEGERS, 4.5, num=3, dtype=np.dtype(int)),
        *narrowed(sample_of(X[0], Y[0], num=3)),
    ],
    "geomspace": [
        sample_of(0.5, 2.0, num=4),
        sample_of(COLUMN, ROW, num=3, axis=-1),
        sample_of(-COLUMN, -ROW, num=3, endpoint=False),
        sample_of(INTEGERS, 9, num=3),
        sample_of(Z[0] + 2, W[0] + 3, num=3),
        *narrowed(sample_of(POSITIVE[0], ROW, num=3)),
    ],
    "logspace": [
        sample_of(0.5, 2.0, 10.0, num=4),
        sample_of(X[0], Y, 2.0, num=3, axis=1),
        sample_of(0.5, X[0], ROW, num=3, endpoint=False),
        sample_of(X[0], Y[0], 2, num=3),
        sample_of(Z[0], 2.0, 3.0, num=2),
        *narrowed(sample_of(X[0], Y[0], 2.0, num=3)),
    ],
}

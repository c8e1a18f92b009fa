"""Samples of the operations in ``letir.ops.shape.linspace``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, INTEGERS, POSITIVE, W, X, Y, Z, narrow, of

ROW, COLUMN = POSITIVE[0] + 2, POSITIVE[:, :1]
SAMPLES = {
    "linspace": [
        of(0.5, 2.0, num=4),
        of(X, Y[0], num=3, axis=-1),
        of(X[:, :1], 2, num=4, endpoint=False, axis=1),
        of(X[0, 0], np.float64(2.0), num=1),
        of(X[0], Y[0], num=0),
        of(X[0], Y[0], num=3, dtype=FLOAT32),
        of(Z[0], W[0], num=3),
        of(INTEGERS, 4, num=3),
        of(INTEGERS, 4.5, num=3, dtype=np.dtype(int)),
        *narrow(of(X[0], Y[0], num=3)),
    ],
    "geomspace": [
        of(0.5, 2.0, num=4),
        of(COLUMN, ROW, num=3, axis=-1),
        of(-COLUMN, -ROW, num=3, endpoint=False),
        of(INTEGERS, 9, num=3),
        of(Z[0] + 2, W[0] + 3, num=3),
        *narrow(of(POSITIVE[0], ROW, num=3)),
    ],
    "logspace": [
        of(0.5, 2.0, 10.0, num=4),
        of(X[0], Y, 2.0, num=3, axis=1),
        of(0.5, X[0], ROW, num=3, endpoint=False),
        of(X[0], Y[0], 2, num=3),
        of(Z[0], 2.0, 3.0, num=2),
        *narrow(of(X[0], Y[0], 2.0, num=3)),
    ],
}

"""Samples of the operations in ``letir.ops.linalg.cross_kron_vander``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, EMPTY, FLOAT32, INTEGERS, X, Y, Z, narrow, of

SAMPLES = {
    "cross": [
        of(X, Y),
        of(X[0], Y),
        of(BLOCK, BLOCK[0, :, :1] + 1, axisa=1, axisb=0, axisc=1),
        of(Z, X),
        of(INTEGERS, X),
        *narrow(of(X, Y[0])),
    ],
    "kron": [
        of(X, Y),
        of(X[0], BLOCK[:, :1, :2]),
        of(X[0, 0], Y),
        of(Z, X[0]),
        of(EMPTY, X),
        of(INTEGERS, X.astype(FLOAT32)),
        *narrow(of(X[0], Y[:1])),
    ],
    "vander": [
        of(X[0]),
        of(np.array([0.0, 2.0]), n=4, increasing=True),
        of(X[0], n=1),
        of(X[0], n=0),
        of(Z[0], n=3),
        of(INTEGERS[0].astype(np.int8), n=2),
        of(X[0].astype(FLOAT32)),
    ],
}

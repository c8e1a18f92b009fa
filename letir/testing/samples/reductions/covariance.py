"""Samples of the operations in ``letir.ops.reductions.covariance``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, FLOAT32, X, Y, Z, exempt, of

SAMPLES = {
    "cov": exempt(
        [
            of(X),
            of(X[0], ddof=0),
            of(X, Y[0], bias=True),
            of(X, Y, rowvar=False),
            of(BLOCK[0], None, np.array([1, 2, 1, 3]), np.array([0.5, 1.0, 0.25, 2.0])),
            of(BLOCK[0], None, None, np.array([0.5, 1.0, 0.25, 2.0]), ddof=0),
            of(Z),
            of(X.astype(FLOAT32), dtype=FLOAT32),
        ],
        complex_step="it conjugates",
    ),
    "corrcoef": exempt(
        [
            of(BLOCK[0] ** 2),
            of(X, Y),
            of(X, Y[:1], rowvar=True),
            of(Y, rowvar=False, dtype=FLOAT32),
            of(X.astype(FLOAT32), dtype=FLOAT32),
        ],
        complex_step="it conjugates",
    ),
}

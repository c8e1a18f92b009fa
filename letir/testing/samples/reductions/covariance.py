"""Samples of the operations in ``letir.ops.reductions.covariance``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, FLOAT32, X, Y, Z, exempt, sample_of

SAMPLES = {
    "cov": exempt(
        [
            sample_of(X),
            sample_of(X[0], ddof=0),
            sample_of(X, Y[0], bias=True),
            sample_of(X, Y, rowvar=False),
            sample_of(BLOCK[0], None, np.array([1, 2, 1, 3]), np.array([0.5, 1.0, 0.25, 2.0])),
            sample_of(BLOCK[0], None, None, np.array([0.5, 1.0, 0.25, 2.0]), ddof=0),
            sample_of(Z),
            sample_of(X.astype(FLOAT32), dtype=FLOAT32),
        ],
        complex_step="it conjugates",
    ),
    "corrcoef": exempt(
        [
            sample_of(BLOCK[0] ** 2),
            sample_of(X, Y),
            sample_of(X, Y[:1], rowvar=True),
            sample_of(Y, rowvar=False, dtype=FLOAT32),
            sample_of(X.astype(FLOAT32), dtype=FLOAT32),
        ],
        complex_step="it conjugates",
    ),
}

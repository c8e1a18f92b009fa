"""Samples of the operations in ``letir.ops.indexing.searchsorted``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, INTEGERS, SPECIAL, X, sample_of

SORTED = np.array([-1.0, 0.5, 0.5, 1.6])
UNSORTED, ORDER = np.array([0.5, -1.0, 1.6, 0.25]), np.array([1, 3, 0, 2])
SAMPLES = {
    "searchsorted": [
        sample_of(SORTED, X),
        sample_of(SORTED, X, side="right"),
        sample_of(SORTED, X[0, 0]),
        sample_of(SORTED, 0.5, side="right"),
        sample_of(UNSORTED, SPECIAL, ORDER),
        sample_of(np.array([1, 2, 5]), INTEGERS.astype(FLOAT32)),
        sample_of(SORTED[:0], X),
    ],
    "digitize": [
        sample_of(X, SORTED),
        sample_of(X, SORTED[::-1], right=True),
        sample_of(X[0, 0], SORTED, right=True),
        sample_of(INTEGERS, np.array([1.0, 2.0, 5.0])),
        sample_of(SPECIAL, SORTED),
    ],
}

"""Samples of the operations in ``letir.ops.indexing.searchsorted``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, INTEGERS, SPECIAL, X, of

SORTED = np.array([-1.0, 0.5, 0.5, 1.6])
UNSORTED, ORDER = np.array([0.5, -1.0, 1.6, 0.25]), np.array([1, 3, 0, 2])
SAMPLES = {
    "searchsorted": [
        of(SORTED, X),
        of(SORTED, X, side="right"),
        of(SORTED, X[0, 0]),
        of(SORTED, 0.5, side="right"),
        of(UNSORTED, SPECIAL, ORDER),
        of(np.array([1, 2, 5]), INTEGERS.astype(FLOAT32)),
        of(SORTED[:0], X),
    ],
    "digitize": [
        of(X, SORTED),
        of(X, SORTED[::-1], right=True),
        of(X[0, 0], SORTED, right=True),
        of(INTEGERS, np.array([1.0, 2.0, 5.0])),
        of(SPECIAL, SORTED),
    ],
}

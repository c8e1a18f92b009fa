"""Samples of the operations in ``letir.ops.reductions.cumulative``."""

import numpy as np

from letir.testing.samples.sample import BOOLEANS, EMPTY, FLOAT32, INTEGERS, X, Z, narrow, of

SAMPLES = {
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

"""Samples of the operations in ``letir.ops.signal.interpolation``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, INTEGERS, X, of, rough

PLACES, VALUES = np.array([-1.0, 0.25, 0.6, 1.6]), np.array([0.3, -0.7, 1.1, 0.4])
SAMPLES = {
    "interp": [
        of(X, PLACES, VALUES),
        of(X, PLACES, VALUES, -2.5, np.float64(0.5)),
        of(X, PLACES, VALUES, None, 1.0),
        of(X[0, 0], PLACES, VALUES + 1j * PLACES),
        of(X, PLACES, VALUES, period=0.87),
        of(0.5, PLACES[:1], VALUES[:1]),
        of(X.astype(FLOAT32), PLACES.astype(FLOAT32), VALUES.astype(FLOAT32)),
        of(INTEGERS, np.array([1.5, 4.5]), np.array([2, 8])),
        rough(PLACES, PLACES, VALUES),
        rough(np.array([0.25, np.inf, 0.5]), np.array([0.0, 0.25, 0.25, 1.0]), VALUES),
    ],
}

"""Samples of the operations in ``letir.ops.signal.interpolation``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, INTEGERS, X, nonsmooth, sample_of

PLACES, VALUES = np.array([-1.0, 0.25, 0.6, 1.6]), np.array([0.3, -0.7, 1.1, 0.4])
SAMPLES = {
    "interp": [
        sample_of(X, PLACES, VALUES),
        sample_of(X, PLACES, VALUES, -2.5, np.float64(0.5)),
        sample_of(X, PLACES, VALUES, None, 1.0),
        sample_of(X[0, 0], PLACES, VALUES + 1j * PLACES),
        sample_of(X, PLACES, VALUES, period=0.87),
        sample_of(0.5, PLACES[:1], VALUES[:1]),
        sample_of(X.astype(FLOAT32), PLACES.astype(FLOAT32), VALUES.astype(FLOAT32)),
        sample_of(INTEGERS, np.array([1.5, 4.5]), np.array([2, 8])),
        nonsmooth(PLACES, PLACES, VALUES),
        nonsmooth(np.array([0.25, np.inf, 0.5]), np.array([0.0, 0.25, 0.25, 1.0]), VALUES),
    ],
}

"""Samples of ``quotient``."""

import numpy as np

from letir.testing.samples.sample import EMPTY, INTEGERS, X, Y, Z, narrowed, sample_of

SAMPLES = {
    "quotient": [
        sample_of(X, Y),
        sample_of(X[:, :1], Y[0]),
        sample_of(X, 3.0),
        sample_of(0.5, Y),
        sample_of(Z, Y),
        sample_of(INTEGERS, INTEGERS + 1),
        sample_of(EMPTY, Y[0]),
        sample_of(np.array([0.0, 0.0, 1.0]), np.array([-1.0, 2.0, 4.0])),
        *narrowed(sample_of(X, Y[0])),
    ]
}

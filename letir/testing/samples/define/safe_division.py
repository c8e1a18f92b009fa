"""Samples of ``quotient``."""

import numpy as np

from letir.testing.samples.sample import EMPTY, INTEGERS, X, Y, Z, narrow, of

SAMPLES = {
    "quotient": [
        of(X, Y),
        of(X[:, :1], Y[0]),
        of(X, 3.0),
        of(0.5, Y),
        of(Z, Y),
        of(INTEGERS, INTEGERS + 1),
        of(EMPTY, Y[0]),
        of(np.array([0.0, 0.0, 1.0]), np.array([-1.0, 2.0, 4.0])),
        *narrow(of(X, Y[0])),
    ]
}

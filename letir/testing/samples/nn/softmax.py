"""Samples of the operations in ``letir.ops.nn.softmax``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, EMPTY, X, narrow, of, rough

WITH_INF = np.array([[0.5, -np.inf, 1.5], [-np.inf, -np.inf, 2.0]])
NEVER = np.full((2, 3), -np.inf)


SAMPLES = {
    "softmax": [of(X), of(BLOCK, axis=1), of(X * 400), rough(WITH_INF), of(EMPTY), *narrow(of(X))],
    "log_softmax": [
        of(X),
        of(X, axis=0),
        of(BLOCK, axis=1),
        of(X * 400),
        of(EMPTY),
        *narrow(of(X)),
    ],
    "logsumexp": [
        of(X),
        of(BLOCK, axis=(0, -1), keepdims=True),
        of(X, axis=None),
        of(X * 400, axis=0),
        rough(WITH_INF),
        rough(NEVER),
        *narrow(of(X)),
    ],
}

"""Samples of the operations in ``letir.ops.nn.softmax``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, EMPTY, X, narrowed, nonsmooth, sample_of

WITH_INF = np.array([[0.5, -np.inf, 1.5], [-np.inf, -np.inf, 2.0]])
NEVER = np.full((2, 3), -np.inf)


SAMPLES = {
    "softmax": [
        sample_of(X),
        sample_of(BLOCK, axis=1),
        sample_of(X * 400),
        nonsmooth(WITH_INF),
        sample_of(EMPTY),
        *narrowed(sample_of(X)),
    ],
    "log_softmax": [
        sample_of(X),
        sample_of(X, axis=0),
        sample_of(BLOCK, axis=1),
        sample_of(X * 400),
        sample_of(EMPTY),
        *narrowed(sample_of(X)),
    ],
    "logsumexp": [
        sample_of(X),
        sample_of(BLOCK, axis=(0, -1), keepdims=True),
        sample_of(X, axis=None),
        sample_of(X * 400, axis=0),
        nonsmooth(WITH_INF),
        nonsmooth(NEVER),
        *narrowed(sample_of(X)),
    ],
}

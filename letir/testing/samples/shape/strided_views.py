"""Samples of the operations in ``letir.ops.shape.strided_views``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, INTEGERS, TALL, X, Z, narrow, of

SAMPLES = {
    "as_strided": [
        of(X[0], shape=(2,), steps=(1,)),
        of(TALL, shape=(2, 2), steps=(1, 2)),
        of(BLOCK, shape=(3, 2), steps=(-1, 0), start=4),
        of(Z, shape=(2, 2, 2), steps=(1, 1, 1)),
        of(INTEGERS, shape=(3,), steps=(1,)),
        of(np.linspace(-1.0, 1.0, 9).reshape(3, 3), shape=(3,), steps=(4,)),
        *narrow(of(X, shape=(2,), steps=(2,), start=1)),
    ],
}

"""Samples of the operations in ``letir.ops.shape.strided_views``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, INTEGERS, TALL, X, Z, narrowed, sample_of

SAMPLES = {
    "as_strided": [
        sample_of(X[0], shape=(2,), steps=(1,)),
        sample_of(TALL, shape=(2, 2), steps=(1, 2)),
        sample_of(BLOCK, shape=(3, 2), steps=(-1, 0), start=4),
        sample_of(Z, shape=(2, 2, 2), steps=(1, 1, 1)),
        sample_of(INTEGERS, shape=(3,), steps=(1,)),
        sample_of(np.linspace(-1.0, 1.0, 9).reshape(3, 3), shape=(3,), steps=(4,)),
        *narrowed(sample_of(X, shape=(2,), steps=(2,), start=1)),
    ],
}

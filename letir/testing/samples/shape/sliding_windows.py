"""Samples of the operations in ``letir.ops.shape.sliding_windows``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, INTEGERS, TALL, X, Z, narrowed, sample_of

SAMPLES = {
    "sliding_window_view": [
        sample_of(X[0], window=(2,)),
        sample_of(TALL, window=(2, 3)),
        sample_of(BLOCK, window=(2,), axis=(-1,)),
        sample_of(TALL, window=(2, 2), axis=(1, 1)),
        sample_of(X, window=(1, 3)),
        sample_of(np.linspace(-1.0, 1.0, 140).reshape(10, 14), window=(9, 8)),
        sample_of(Z, window=(2,), axis=(1,)),
        sample_of(INTEGERS, window=(2,), axis=(0,)),
        *narrowed(sample_of(X, window=(2,), axis=(1,))),
    ],
}

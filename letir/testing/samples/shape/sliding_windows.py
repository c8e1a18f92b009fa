"""Samples of the operations in ``letir.ops.shape.sliding_windows``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, INTEGERS, TALL, X, Z, narrow, of

SAMPLES = {
    "sliding_window_view": [
        of(X[0], window=(2,)),
        of(TALL, window=(2, 3)),
        of(BLOCK, window=(2,), axis=(-1,)),
        of(TALL, window=(2, 2), axis=(1, 1)),
        of(X, window=(1, 3)),
        of(np.linspace(-1.0, 1.0, 140).reshape(10, 14), window=(9, 8)),
        of(Z, window=(2,), axis=(1,)),
        of(INTEGERS, window=(2,), axis=(0,)),
        *narrow(of(X, window=(2,), axis=(1,))),
    ],
}

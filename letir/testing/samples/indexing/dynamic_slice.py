"""Samples of the operations in ``letir.ops.indexing.dynamic_slice``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, INTEGERS, TALL, X, Z, narrowed, sample_of

SAMPLES = {
    "dynamic_slice": [
        sample_of(X[0], np.int64(1), size=2),
        sample_of(X, np.int64(0), size=1),
        sample_of(TALL, np.int64(3), size=2, step=-2, axis=1),
        sample_of(BLOCK, np.array(1), size=2, axis=1),
        sample_of(TALL, 2, size=3, step=-1),
        sample_of(Z, np.int32(1), size=2, axis=1),
        sample_of(INTEGERS, np.int64(1), size=1),
        sample_of(X[0], np.uint8(3), size=0),
        *narrowed(sample_of(X, np.int64(1), size=2, axis=1)),
    ],
}

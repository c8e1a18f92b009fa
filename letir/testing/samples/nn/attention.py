"""Samples of the operations in ``letir.ops.nn.attention``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, TALL, X, narrowed, sample_of

QUERY = np.sin(np.arange(2 * 2 * 4.0)).reshape(2, 2, 4)
VALUE = np.cos(np.arange(2 * 3 * 5.0)).reshape(2, 3, 5)
SEEN = np.array([[True, False, True], [False, False, False]])

SAMPLES = {
    "attention": [
        sample_of(QUERY, BLOCK, VALUE),
        sample_of(QUERY, BLOCK, VALUE, SEEN),
        sample_of(QUERY, BLOCK, VALUE, X, causal=True),
        sample_of(QUERY[0], TALL, VALUE[0], SEEN, causal=True, scale=0.7),
        *narrowed(sample_of(QUERY[0], TALL, VALUE[0])),
    ]
}

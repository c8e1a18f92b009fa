"""Samples of the operations in ``letir.ops.nn.normalization``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, POSITIVE, TALL, X, Y, narrowed, sample_of

PLANES = np.sin(np.arange(2 * 4 * 3.0) * 1.3).reshape(2, 4, 3)
FOUR = np.array([0.5, -1.0, 2.0, 0.25])

SAMPLES = {
    "batch_norm": [
        sample_of(TALL),
        sample_of(TALL, FOUR, FOUR**2, FOUR, FOUR + 1),
        sample_of(PLANES, None, None, FOUR, momentum=0.3, eps=0.1),
        sample_of(X, Y[0], POSITIVE[0], Y[1], None, train=False),
        *narrowed(sample_of(TALL, FOUR, FOUR**2)),
    ],
    "layer_norm": [
        sample_of(X),
        sample_of(BLOCK, TALL, TALL + 1, axis=(-2, -1)),
        sample_of(PLANES, FOUR, None, axis=1, eps=0.1),
        *narrowed(sample_of(X, Y[0], Y[1])),
    ],
    "rms_norm": [sample_of(X), sample_of(PLANES, FOUR, axis=1), *narrowed(sample_of(X, Y[0]))],
    "group_norm": [
        sample_of(PLANES, groups=2),
        sample_of(PLANES, FOUR, FOUR + 1, groups=4, eps=0.1),
        *narrowed(sample_of(PLANES, FOUR, groups=1)),
    ],
}

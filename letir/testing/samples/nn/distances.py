"""Samples of the operations in ``letir.ops.nn.distances``."""

import numpy as np

from letir.testing.samples.nn.losses import SIGNS, both
from letir.testing.samples.sample import (
    BLOCK,
    X,
    Y,
    narrowed,
    nonsmooth,
    sample_of,
)

SAMPLES = {
    "pairwise_distance": [
        sample_of(X, Y),
        *[sample_of(X, Y, p=p) for p in (1.0, 3.0, np.inf)],
        nonsmooth(X, X, eps=0.0),
        *narrowed(sample_of(X, Y)),
    ],
    "cosine_similarity": [
        sample_of(X, Y),
        sample_of(BLOCK, BLOCK[::-1], axis=-1),
        nonsmooth(X * 0, Y),
        *narrowed(sample_of(X, Y)),
    ],
    "cosine_embedding_loss": [*both(X, Y, SIGNS[:, 0]), sample_of(X[0], Y[0], np.float64(-1.0))],
    "triplet_margin_loss": [
        *both(X, Y, X[::-1].copy()),
        sample_of(X, Y, X[::-1].copy(), swap=True, p=1.0, margin=3.0),
    ],
}

"""Samples of the operations in ``letir.ops.nn.distances``."""

import numpy as np

from letir.testing.samples.nn.losses import SIGNS, both
from letir.testing.samples.sample import (
    BLOCK,
    X,
    Y,
    narrow,
    of,
    rough,
)

SAMPLES = {
    "pairwise_distance": [
        of(X, Y),
        *[of(X, Y, p=p) for p in (1.0, 3.0, np.inf)],
        rough(X, X, eps=0.0),
        *narrow(of(X, Y)),
    ],
    "cosine_similarity": [
        of(X, Y),
        of(BLOCK, BLOCK[::-1], axis=-1),
        rough(X * 0, Y),
        *narrow(of(X, Y)),
    ],
    "cosine_embedding_loss": [*both(X, Y, SIGNS[:, 0]), of(X[0], Y[0], np.float64(-1.0))],
    "triplet_margin_loss": [
        *both(X, Y, X[::-1].copy()),
        of(X, Y, X[::-1].copy(), swap=True, p=1.0, margin=3.0),
    ],
}

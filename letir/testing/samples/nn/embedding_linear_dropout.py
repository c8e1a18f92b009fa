"""Samples of the operations in ``letir.ops.nn.embedding_linear_dropout``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    EMPTY,
    ROWS,
    TALL,
    W,
    X,
    Y,
    Z,
    exempt,
    narrowed,
    nonsmooth,
    sample_of,
)

KEY = np.array([7, 11], np.uint64)
WEIGHT = TALL[:, :3]

SAMPLES = {
    "linear": [
        sample_of(X, WEIGHT),
        sample_of(X, WEIGHT, None),
        sample_of(X, WEIGHT, Y[0]),
        sample_of(X[0], WEIGHT, Y[0]),
        sample_of(BLOCK, TALL),
        sample_of(Z, W),
        sample_of(EMPTY, X, Y[0, :2]),
        *narrowed(sample_of(X, WEIGHT, Y[0])),
    ],
    "embedding": exempt(
        [
            sample_of(X, ROWS),
            sample_of(X, ROWS.reshape(3, 1)),
            sample_of(X, np.int64(1)),
            sample_of(X, np.zeros(0, int)),
            sample_of(X, np.array([1, 1]), padding_idx=0),
            sample_of(Z, ROWS),
            nonsmooth(X, ROWS, padding_idx=1),
            *narrowed(sample_of(X, ROWS)),
        ],
        program_derivative="by design, it is not the derivative of the values",
    ),
    "dropout": [
        sample_of(X, KEY),
        sample_of(X, 3, rate=0.5),
        sample_of(X, KEY, rate=0.25),
        sample_of(X, KEY, rate=1.0),
        sample_of(X, train=False),
        sample_of(X, None, rate=0.0),
        sample_of(EMPTY, KEY),
        sample_of(X[0, 0], KEY),
        sample_of(Z, KEY),
        *narrowed(sample_of(X, KEY)),
    ],
}

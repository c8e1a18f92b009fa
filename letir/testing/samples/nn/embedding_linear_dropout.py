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
    narrow,
    of,
    rough,
)

KEY = np.array([7, 11], np.uint64)
WEIGHT = TALL[:, :3]

SAMPLES = {
    "linear": [
        of(X, WEIGHT),
        of(X, WEIGHT, None),
        of(X, WEIGHT, Y[0]),
        of(X[0], WEIGHT, Y[0]),
        of(BLOCK, TALL),
        of(Z, W),
        of(EMPTY, X, Y[0, :2]),
        *narrow(of(X, WEIGHT, Y[0])),
    ],
    "embedding": exempt(
        [
            of(X, ROWS),
            of(X, ROWS.reshape(3, 1)),
            of(X, np.int64(1)),
            of(X, np.zeros(0, int)),
            of(X, np.array([1, 1]), padding_idx=0),
            of(Z, ROWS),
            rough(X, ROWS, padding_idx=1),
            *narrow(of(X, ROWS)),
        ],
        program_derivative="by design, it is not the derivative of the values",
    ),
    "dropout": [
        of(X, KEY),
        of(X, 3, rate=0.5),
        of(X, KEY, rate=0.25),
        of(X, KEY, rate=1.0),
        of(X, train=False),
        of(X, None, rate=0.0),
        of(EMPTY, KEY),
        of(X[0, 0], KEY),
        of(Z, KEY),
        *narrow(of(X, KEY)),
    ],
}

"""Samples of operations in ``letir.ops.indexing.data_dependent``: sizes that depend on values."""

import numpy as np

from letir.testing.samples.sample import (
    BOOLEANS,
    COLUMNS,
    EMPTY,
    FLOAT32,
    INTEGERS,
    SPECIAL,
    X,
    Z,
    exempt,
    of,
    rough,
)

TIES = np.array([2.0, -1.0, 2.0, 0.5, -1.0])
ROWS_TWICE = np.array([[1.0, 2.0], [0.5, 1.0], [1.0, 2.0]])
COUNTED = np.array([3, 0, 3, 1])

SAMPLES = {
    "nonzero": exempt(
        [
            of(BOOLEANS, count=3, rank=2),
            of(X[0], count=3, rank=1),
            of(EMPTY, count=0, rank=2),
            of(COUNTED, count=3, rank=1),
        ],
        batch="its size depends on values",
    ),
    "unique": exempt(
        [
            of(X, count=6),
            of(X[0], count=3, return_index=True, return_inverse=True, return_counts=True),
            rough(TIES, count=3),
            rough(ROWS_TWICE, count=2, axis=0, return_inverse=True),
            of(X, count=3, axis=-1),
            rough(SPECIAL, count=5, equal_nan=False),
            of(INTEGERS, count=6, sorted=False),
            of(Z[0].astype(np.complex64), count=3),
            of(EMPTY, count=0),
        ],
        batch="its size depends on values",
    ),
    "first_places": exempt(
        [of(X, X[0, :2]), of(TIES, np.array([2.0, -1.0]))], batch="its size depends on values"
    ),
    "isin": [
        of(X, X[0]),
        of(INTEGERS, COLUMNS, invert=True),
        of(np.float64(0.5), X),
        of(EMPTY, X.astype(FLOAT32)),
    ],
    "bincount": [
        of(COUNTED, length=4),
        of(COUNTED, TIES[:4], length=6),
        of(COUNTED, TIES[:4].astype(FLOAT32), length=4),
        of(COUNTED[:0], length=2),
    ],
}

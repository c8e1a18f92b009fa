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
    nonsmooth,
    sample_of,
)

TIES = np.array([2.0, -1.0, 2.0, 0.5, -1.0])
ROWS_TWICE = np.array([[1.0, 2.0], [0.5, 1.0], [1.0, 2.0]])
COUNTED = np.array([3, 0, 3, 1])

SAMPLES = {
    "nonzero": exempt(
        [
            sample_of(BOOLEANS, count=3, rank=2),
            sample_of(X[0], count=3, rank=1),
            sample_of(EMPTY, count=0, rank=2),
            sample_of(COUNTED, count=3, rank=1),
        ],
        batch="its size depends on values",
    ),
    "unique": exempt(
        [
            sample_of(X, count=6),
            sample_of(X[0], count=3, return_index=True, return_inverse=True, return_counts=True),
            nonsmooth(TIES, count=3),
            nonsmooth(ROWS_TWICE, count=2, axis=0, return_inverse=True),
            sample_of(X, count=3, axis=-1),
            nonsmooth(SPECIAL, count=5, equal_nan=False),
            sample_of(INTEGERS, count=6, sorted=False),
            sample_of(Z[0].astype(np.complex64), count=3),
            sample_of(EMPTY, count=0),
        ],
        batch="its size depends on values",
    ),
    "first_places": exempt(
        [sample_of(X, X[0, :2]), sample_of(TIES, np.array([2.0, -1.0]))],
        batch="its size depends on values",
    ),
    "isin": [
        sample_of(X, X[0]),
        sample_of(INTEGERS, COLUMNS, invert=True),
        sample_of(np.float64(0.5), X),
        sample_of(EMPTY, X.astype(FLOAT32)),
    ],
    "bincount": [
        sample_of(COUNTED, length=4),
        sample_of(COUNTED, TIES[:4], length=6),
        sample_of(COUNTED, TIES[:4].astype(FLOAT32), length=4),
        sample_of(COUNTED[:0], length=2),
    ],
}

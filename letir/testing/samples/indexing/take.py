"""Samples of the operations in ``letir.ops.indexing.take``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    COLUMNS,
    EMPTY,
    INTEGERS,
    ROWS,
    W,
    X,
    Y,
    Z,
    narrowed,
    sample_of,
)

SAMPLES = {
    "take": [
        sample_of(X, ROWS),
        sample_of(X, COLUMNS, axis=1),
        sample_of(BLOCK, np.array([[0, 2], [1, 1]]), axis=-2),
        sample_of(X, np.int64(1), axis=0),
        sample_of(X, 4),
        sample_of(X, np.array([-1, 3, 7]), axis=1, mode="wrap"),
        sample_of(X, np.array([-1, 3, 7]), axis=1, mode="clip"),
        sample_of(EMPTY, ROWS[:0], axis=0),
        sample_of(Z, ROWS, axis=0),
        sample_of(INTEGERS, ROWS),
        *narrowed(sample_of(X, ROWS, axis=0)),
    ],
    "take_along_axis": [
        sample_of(X, np.array([[2, 0, 0, 1], [-1, 1, 1, 0]])),
        sample_of(X, np.array([[1, 0, 1]]), axis=0),
        sample_of(X, np.array([5, 0, 0]), axis=None),
        sample_of(BLOCK, np.array([[[0], [1], [2]]]), axis=-2),
        sample_of(EMPTY, np.zeros((0, 2), int)),
        sample_of(Z, np.array([[0], [2]]), axis=1),
        sample_of(INTEGERS, np.array([[0], [2]])),
        *narrowed(sample_of(X, np.array([[0], [2]]))),
    ],
    "choose": [
        sample_of(np.array([1, 0, 1]), X[0], Y[0]),
        sample_of(np.array([[1], [0]]), X[0], Y),
        sample_of(np.array([3, -1, 5]), X[0], Y[0], 2.5, mode="wrap"),
        sample_of(np.array([3, -1, 0]), X[0], Y, mode="clip"),
        sample_of(np.int64(1), X[0, 0], 2.0),
        sample_of(ROWS, Z[0], W[0]),
        sample_of(ROWS, INTEGERS, X),
        sample_of(ROWS * 0, X),
        *narrowed(sample_of(ROWS, X, Y)),
    ],
}

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
    narrow,
    of,
)

SAMPLES = {
    "take": [
        of(X, ROWS),
        of(X, COLUMNS, axis=1),
        of(BLOCK, np.array([[0, 2], [1, 1]]), axis=-2),
        of(X, np.int64(1), axis=0),
        of(X, 4),
        of(X, np.array([-1, 3, 7]), axis=1, mode="wrap"),
        of(X, np.array([-1, 3, 7]), axis=1, mode="clip"),
        of(EMPTY, ROWS[:0], axis=0),
        of(Z, ROWS, axis=0),
        of(INTEGERS, ROWS),
        *narrow(of(X, ROWS, axis=0)),
    ],
    "take_along_axis": [
        of(X, np.array([[2, 0, 0, 1], [-1, 1, 1, 0]])),
        of(X, np.array([[1, 0, 1]]), axis=0),
        of(X, np.array([5, 0, 0]), axis=None),
        of(BLOCK, np.array([[[0], [1], [2]]]), axis=-2),
        of(EMPTY, np.zeros((0, 2), int)),
        of(Z, np.array([[0], [2]]), axis=1),
        of(INTEGERS, np.array([[0], [2]])),
        *narrow(of(X, np.array([[0], [2]]))),
    ],
    "choose": [
        of(np.array([1, 0, 1]), X[0], Y[0]),
        of(np.array([[1], [0]]), X[0], Y),
        of(np.array([3, -1, 5]), X[0], Y[0], 2.5, mode="wrap"),
        of(np.array([3, -1, 0]), X[0], Y, mode="clip"),
        of(np.int64(1), X[0, 0], 2.0),
        of(ROWS, Z[0], W[0]),
        of(ROWS, INTEGERS, X),
        of(ROWS * 0, X),
        *narrow(of(ROWS, X, Y)),
    ],
}

"""Samples of the operations in ``letir.ops.signal.finite_differences``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    BOOLEANS,
    FLOAT32,
    INTEGERS,
    TALL,
    X,
    Y,
    Z,
    narrow,
    of,
)

PLACES = np.array([0.1, 0.4, 1.0, 1.3])
SAMPLES = {
    "diff": [
        of(X),
        of(BLOCK, n=2, axis=1),
        of(X, n=5),
        of(X, n=0),
        of(Z, axis=0),
        of(INTEGERS.astype(np.uint8)),
        of(BOOLEANS, axis=-1),
        *narrow(of(X)),
    ],
    "gradient": [
        of(TALL, axis=-1),
        of(TALL, 0.5, axis=0, edge_order=2),
        of(TALL, PLACES, axis=1),
        of(TALL, PLACES, axis=1, edge_order=2),
        of(TALL, np.array([2, 4, 8]), axis=0),
        of(X[0, :2], X[1, :2], axis=0),
        of(X, np.array(0.5), axis=0),
        of(INTEGERS, axis=1),
        of(Z, axis=1, edge_order=2),
        of(X.astype(FLOAT32), Y[0], axis=1),
        *narrow(of(TALL, axis=1, edge_order=2)),
    ],
    "trapezoid": [
        of(TALL),
        of(TALL, PLACES, axis=1),
        of(X, Y, axis=0),
        of(X, None, 0.25),
        of(Z, None, np.array(0.5), axis=0),
        of(INTEGERS),
        *narrow(of(X, Y)),
    ],
}

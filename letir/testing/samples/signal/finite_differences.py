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
    narrowed,
    sample_of,
)

PLACES = np.array([0.1, 0.4, 1.0, 1.3])
SAMPLES = {
    "diff": [
        sample_of(X),
        sample_of(BLOCK, n=2, axis=1),
        sample_of(X, n=5),
        sample_of(X, n=0),
        sample_of(Z, axis=0),
        sample_of(INTEGERS.astype(np.uint8)),
        sample_of(BOOLEANS, axis=-1),
        *narrowed(sample_of(X)),
    ],
    "gradient": [
        sample_of(TALL, axis=-1),
        sample_of(TALL, 0.5, axis=0, edge_order=2),
        sample_of(TALL, PLACES, axis=1),
        sample_of(TALL, PLACES, axis=1, edge_order=2),
        sample_of(TALL, np.array([2, 4, 8]), axis=0),
        sample_of(X[0, :2], X[1, :2], axis=0),
        sample_of(X, np.array(0.5), axis=0),
        sample_of(INTEGERS, axis=1),
        sample_of(Z, axis=1, edge_order=2),
        sample_of(X.astype(FLOAT32), Y[0], axis=1),
        *narrowed(sample_of(TALL, axis=1, edge_order=2)),
    ],
    "trapezoid": [
        sample_of(TALL),
        sample_of(TALL, PLACES, axis=1),
        sample_of(X, Y, axis=0),
        sample_of(X, None, 0.25),
        sample_of(Z, None, np.array(0.5), axis=0),
        sample_of(INTEGERS),
        *narrowed(sample_of(X, Y)),
    ],
}

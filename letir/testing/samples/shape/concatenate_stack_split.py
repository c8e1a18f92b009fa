"""Samples of the operations in ``letir.ops.shape.concatenate_stack_split``."""

import numpy as np

from letir.testing.samples.sample import (
    EMPTY,
    FLOAT32,
    INTEGERS,
    X,
    Y,
    Z,
    narrowed,
    sample_of,
)

SAMPLES = {
    "concatenate": [
        sample_of(X),
        sample_of(X, Y),
        sample_of(X, Y[:1], X),
        sample_of(X, Y, axis=1),
        sample_of(X, Y[:, :1], axis=-1),
        sample_of(X, Y[0], axis=None),
        sample_of(X, 2.0, axis=None),
        sample_of(X[0, 0], np.array(0.5), axis=None),
        sample_of(EMPTY, X),
        sample_of(X, INTEGERS),
        sample_of(X, Z),
        sample_of(X, Y, dtype=FLOAT32),
        sample_of(X.astype(FLOAT32), Y),
        sample_of(INTEGERS, INTEGERS[:1]),
        *narrowed(sample_of(X, Y), sample_of(X, 2.0, axis=None)),
    ],
    "stack": [
        sample_of(X),
        sample_of(X, Y),
        sample_of(X, Y, axis=-1),
        sample_of(X, Y, X, axis=1),
        sample_of(X[0, 0], Y[0, 0]),
        sample_of(EMPTY, EMPTY),
        sample_of(X, INTEGERS),
        sample_of(X, Z),
        sample_of(X[0, 0], 2.0),
        sample_of(np.float32(0.5), 2.0),
        sample_of(0.5, 2),
        sample_of(INTEGERS, INTEGERS),
        *narrowed(sample_of(X, Y)),
    ],
    "split": [
        sample_of(X, sections=1),
        sample_of(X, sections=2),
        sample_of(X, sections=3, axis=-1),
        sample_of(X, sections=(1,), axis=1),
        sample_of(X, sections=(1, 1, 2), axis=1),
        sample_of(X, sections=(-1,)),
        sample_of(X, sections=(2, 1), axis=1),
        sample_of(X, sections=(5,)),
        sample_of(EMPTY, sections=3, axis=1),
        sample_of(Z, sections=2),
        sample_of(INTEGERS, sections=(1,)),
        *narrowed(sample_of(X, sections=2)),
    ],
}

"""Samples of the operations in ``letir.ops.shape.concatenate_stack_split``."""

import numpy as np

from letir.testing.samples.sample import (
    EMPTY,
    FLOAT32,
    INTEGERS,
    X,
    Y,
    Z,
    narrow,
    of,
)

SAMPLES = {
    "concatenate": [
        of(X),
        of(X, Y),
        of(X, Y[:1], X),
        of(X, Y, axis=1),
        of(X, Y[:, :1], axis=-1),
        of(X, Y[0], axis=None),
        of(X, 2.0, axis=None),
        of(X[0, 0], np.array(0.5), axis=None),
        of(EMPTY, X),
        of(X, INTEGERS),
        of(X, Z),
        of(X, Y, dtype=FLOAT32),
        of(X.astype(FLOAT32), Y),
        of(INTEGERS, INTEGERS[:1]),
        *narrow(of(X, Y), of(X, 2.0, axis=None)),
    ],
    "stack": [
        of(X),
        of(X, Y),
        of(X, Y, axis=-1),
        of(X, Y, X, axis=1),
        of(X[0, 0], Y[0, 0]),
        of(EMPTY, EMPTY),
        of(X, INTEGERS),
        of(X, Z),
        of(X[0, 0], 2.0),
        of(np.float32(0.5), 2.0),
        of(0.5, 2),
        of(INTEGERS, INTEGERS),
        *narrow(of(X, Y)),
    ],
    "split": [
        of(X, sections=1),
        of(X, sections=2),
        of(X, sections=3, axis=-1),
        of(X, sections=(1,), axis=1),
        of(X, sections=(1, 1, 2), axis=1),
        of(X, sections=(-1,)),
        of(X, sections=(2, 1), axis=1),
        of(X, sections=(5,)),
        of(EMPTY, sections=3, axis=1),
        of(Z, sections=2),
        of(INTEGERS, sections=(1,)),
        *narrow(of(X, sections=2)),
    ],
}

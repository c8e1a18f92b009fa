"""Samples of the operations in ``letir.ops.shape.reshape_and_ravel``."""

import numpy as np

from letir.testing.samples.sample import (
    EMPTY,
    INTEGERS,
    X,
    Z,
    exempt,
    narrowed,
    sample_of,
)

SAMPLES = {
    "reshape": exempt(
        [
            *[sample_of(X, shape=s) for s in ((3, 2), (-1,), (6,), (2, -1, 1), (2, 3))],
            sample_of(X, shape=(3, 2), order="F"),
            sample_of(X[0, 0], shape=(1, 1)),
            sample_of(X[:1, :1], shape=()),
            sample_of(0.5, shape=(1,)),
            sample_of(EMPTY, shape=(3, 0)),
            sample_of(Z, shape=(3, -1)),
            sample_of(INTEGERS, shape=(-1,)),
            sample_of(X, np.array([6]), shape=None),
            *narrowed(sample_of(X, shape=(6,))),
        ],
        batch_of_last="its last operand is a shape",
    ),
    "ravel": [
        *[sample_of(x, order="C") for x in (X, X[:1, :1], EMPTY, Z, INTEGERS)],
        sample_of(X, order="F"),
        *narrowed(sample_of(X, order="C")),
    ],
}

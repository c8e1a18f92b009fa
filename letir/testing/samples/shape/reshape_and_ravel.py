"""Samples of the operations in ``letir.ops.shape.reshape_and_ravel``."""

import numpy as np

from letir.testing.samples.sample import (
    EMPTY,
    INTEGERS,
    X,
    Z,
    exempt,
    narrow,
    of,
)

SAMPLES = {
    "reshape": exempt(
        [
            *[of(X, shape=s) for s in ((3, 2), (-1,), (6,), (2, -1, 1), (2, 3))],
            of(X, shape=(3, 2), order="F"),
            of(X[0, 0], shape=(1, 1)),
            of(X[:1, :1], shape=()),
            of(0.5, shape=(1,)),
            of(EMPTY, shape=(3, 0)),
            of(Z, shape=(3, -1)),
            of(INTEGERS, shape=(-1,)),
            of(X, np.array([6]), shape=None),
            *narrow(of(X, shape=(6,))),
        ],
        batch_of_last="its last operand is a shape",
    ),
    "ravel": [
        *[of(x, order="C") for x in (X, X[:1, :1], EMPTY, Z, INTEGERS)],
        of(X, order="F"),
        *narrow(of(X, order="C")),
    ],
}

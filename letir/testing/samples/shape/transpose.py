"""Samples of the operations in ``letir.ops.shape.transpose``."""

from letir.testing.samples.sample import (
    BLOCK,
    EMPTY,
    INTEGERS,
    X,
    Z,
    narrow,
    of,
)

SAMPLES = {
    "transpose": [
        of(BLOCK),
        of(BLOCK, axes=(1, 2, 0)),
        of(BLOCK, axes=(-1, 0, -2)),
        of(X),
        of(X[0]),
        of(X[0, 0]),
        of(0.5),
        of(EMPTY),
        of(Z),
        of(INTEGERS, axes=(1, 0)),
        *narrow(of(BLOCK, axes=(0, 2, 1))),
    ],
}

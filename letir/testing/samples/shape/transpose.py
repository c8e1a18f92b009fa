"""Samples of the operations in ``letir.ops.shape.transpose``."""

from letir.testing.samples.sample import (
    BLOCK,
    EMPTY,
    INTEGERS,
    X,
    Z,
    narrowed,
    sample_of,
)

SAMPLES = {
    "transpose": [
        sample_of(BLOCK),
        sample_of(BLOCK, axes=(1, 2, 0)),
        sample_of(BLOCK, axes=(-1, 0, -2)),
        sample_of(X),
        sample_of(X[0]),
        sample_of(X[0, 0]),
        sample_of(0.5),
        sample_of(EMPTY),
        sample_of(Z),
        sample_of(INTEGERS, axes=(1, 0)),
        *narrowed(sample_of(BLOCK, axes=(0, 2, 1))),
    ],
}

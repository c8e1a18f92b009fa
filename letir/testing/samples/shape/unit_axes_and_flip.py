"""Samples of the operations in ``letir.ops.shape.unit_axes_and_flip``."""

from letir.testing.samples.sample import (
    EMPTY,
    INTEGERS,
    X,
    Z,
    narrowed,
    sample_of,
)

SAMPLES = {
    "expand_dims": [
        *[sample_of(X, axis=axis) for axis in (0, -1, 1, (0, 2), (-1, 0))],
        sample_of(X[0, 0], axis=0),
        sample_of(0.5, axis=(0, 1)),
        sample_of(EMPTY, axis=-2),
        sample_of(Z, axis=1),
        sample_of(INTEGERS, axis=0),
        *narrowed(sample_of(X, axis=1)),
    ],
    "squeeze": [
        *[sample_of(X[:1, :, None], axis=axis) for axis in (None, 0, -1, (0, 2))],
        sample_of(X[0, 0]),
        sample_of(X[:1, :1]),
        sample_of(EMPTY[:, :1], axis=1),
        sample_of(Z[:1]),
        sample_of(INTEGERS[:1], axis=0),
        *narrowed(sample_of(X[:1])),
    ],
    "flip": [
        *[sample_of(X, axis=axis) for axis in (None, 0, -1, (0, 1))],
        sample_of(X[0, 0]),
        sample_of(EMPTY, axis=0),
        sample_of(Z),
        sample_of(INTEGERS, axis=1),
        *narrowed(sample_of(X, axis=0)),
    ],
}

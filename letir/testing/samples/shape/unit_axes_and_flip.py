"""Samples of the operations in ``letir.ops.shape.unit_axes_and_flip``."""

from letir.testing.samples.sample import (
    EMPTY,
    INTEGERS,
    X,
    Z,
    narrow,
    of,
)

SAMPLES = {
    "expand_dims": [
        *[of(X, axis=axis) for axis in (0, -1, 1, (0, 2), (-1, 0))],
        of(X[0, 0], axis=0),
        of(0.5, axis=(0, 1)),
        of(EMPTY, axis=-2),
        of(Z, axis=1),
        of(INTEGERS, axis=0),
        *narrow(of(X, axis=1)),
    ],
    "squeeze": [
        *[of(X[:1, :, None], axis=axis) for axis in (None, 0, -1, (0, 2))],
        of(X[0, 0]),
        of(X[:1, :1]),
        of(EMPTY[:, :1], axis=1),
        of(Z[:1]),
        of(INTEGERS[:1], axis=0),
        *narrow(of(X[:1])),
    ],
    "flip": [
        *[of(X, axis=axis) for axis in (None, 0, -1, (0, 1))],
        of(X[0, 0]),
        of(EMPTY, axis=0),
        of(Z),
        of(INTEGERS, axis=1),
        *narrow(of(X, axis=0)),
    ],
}

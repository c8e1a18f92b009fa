"""Samples of the operations in ``letir.ops.linalg.contractions``."""

from letir.testing.samples.sample import (
    BLOCK,
    EMPTY,
    FLOAT32,
    INTEGERS,
    TALL,
    W,
    X,
    Y,
    Z,
    exempt,
    narrowed,
    sample_of,
)

SQUARES = BLOCK[:, :, :3]

SAMPLES = {
    "tensordot": [
        sample_of(X, TALL, axes=((-1,), (0,))),
        sample_of(BLOCK, SQUARES, axes=((1, 0), (1, 0))),
        sample_of(BLOCK, BLOCK.transpose(2, 1, 0), axes=((2, 0), (0, 2))),
        sample_of(X[0], Y[0], axes=((), ())),
        sample_of(Z, Y, axes=((0, 1), (0, 1))),
        sample_of(EMPTY, TALL, axes=((1,), (0,))),
        sample_of(INTEGERS, X, axes=((1,), (1,))),
        *narrowed(sample_of(X, Y, axes=((0,), (0,))))[:1],
    ],
    "inner": [
        sample_of(X, Y[0]),
        sample_of(BLOCK, TALL),
        sample_of(X[0, 0], Y),
        sample_of(Z, Y),
        sample_of(X[0], 2.0),
    ],
    "outer": [
        sample_of(X, Y[0]),
        sample_of(Z, X),
        sample_of(X[0, 0], 2.0),
        sample_of(INTEGERS, X[0].astype(FLOAT32)),
    ],
    "vdot": exempt(
        [
            sample_of(X, Y),
            sample_of(Z, W),
            sample_of(X[0, 0], Y[0, 0]),
            sample_of(X.astype(FLOAT32), Y.astype(FLOAT32)),
        ],
        complex_step="it conjugates or takes a part",
    ),
    "vecdot": exempt(
        [
            sample_of(X, Y[0]),
            sample_of(BLOCK, TALL),
            sample_of(Z, W),
            sample_of(Z, X),
            sample_of(INTEGERS, INTEGERS),
        ],
        complex_step="it conjugates or takes a part",
    ),
    "matvec": [
        sample_of(X, Y[0]),
        sample_of(BLOCK, TALL[0]),
        sample_of(SQUARES, Z),
        sample_of(X, Y[:, None]),
        sample_of(EMPTY, X[0]),
    ],
    "vecmat": exempt(
        [
            sample_of(X[:, 0], Y),
            sample_of(X[0], TALL),
            sample_of(Z[:1], BLOCK),
            sample_of(X[0], Z.T),
        ],
        complex_step="it conjugates or takes a part",
    ),
    "multi_dot": [
        sample_of(X, TALL, TALL.T),
        sample_of(X[0], TALL, TALL.T, Z.T),
        sample_of(X, Y[0]),
        sample_of(X[0], Y[1]),
        sample_of(X.astype(FLOAT32), TALL.astype(FLOAT32), TALL.T.astype(FLOAT32)),
    ],
}

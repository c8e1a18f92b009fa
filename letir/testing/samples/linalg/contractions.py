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
    narrow,
    of,
)

SQUARES = BLOCK[:, :, :3]

SAMPLES = {
    "tensordot": [
        of(X, TALL, axes=((-1,), (0,))),
        of(BLOCK, SQUARES, axes=((1, 0), (1, 0))),
        of(BLOCK, BLOCK.transpose(2, 1, 0), axes=((2, 0), (0, 2))),
        of(X[0], Y[0], axes=((), ())),
        of(Z, Y, axes=((0, 1), (0, 1))),
        of(EMPTY, TALL, axes=((1,), (0,))),
        of(INTEGERS, X, axes=((1,), (1,))),
        *narrow(of(X, Y, axes=((0,), (0,))))[:1],
    ],
    "inner": [of(X, Y[0]), of(BLOCK, TALL), of(X[0, 0], Y), of(Z, Y), of(X[0], 2.0)],
    "outer": [of(X, Y[0]), of(Z, X), of(X[0, 0], 2.0), of(INTEGERS, X[0].astype(FLOAT32))],
    "vdot": exempt(
        [of(X, Y), of(Z, W), of(X[0, 0], Y[0, 0]), of(X.astype(FLOAT32), Y.astype(FLOAT32))],
        complex_step="it conjugates or takes a part",
    ),
    "vecdot": exempt(
        [of(X, Y[0]), of(BLOCK, TALL), of(Z, W), of(Z, X), of(INTEGERS, INTEGERS)],
        complex_step="it conjugates or takes a part",
    ),
    "matvec": [of(X, Y[0]), of(BLOCK, TALL[0]), of(SQUARES, Z), of(X, Y[:, None]), of(EMPTY, X[0])],
    "vecmat": exempt(
        [
            of(X[:, 0], Y),
            of(X[0], TALL),
            of(Z[:1], BLOCK),
            of(X[0], Z.T),
        ],
        complex_step="it conjugates or takes a part",
    ),
    "multi_dot": [
        of(X, TALL, TALL.T),
        of(X[0], TALL, TALL.T, Z.T),
        of(X, Y[0]),
        of(X[0], Y[1]),
        of(X.astype(FLOAT32), TALL.astype(FLOAT32), TALL.T.astype(FLOAT32)),
    ],
}

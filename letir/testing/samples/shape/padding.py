"""Samples of the operations in ``letir.ops.shape.padding``."""

from letir.testing.samples.sample import BLOCK, EMPTY, INTEGERS, X, Z, narrow, of

WIDTH = ((3, 1), (2, 4))
SAMPLES = {
    "pad": [
        of(X, width=((1, 0), (0, 2))),
        of(X, width=((0, 0), (1, 2)), value=((1.0, 2.0), (3.0, 4.0))),
        of(X[0, 0], width=()),
        of(EMPTY, width=((1, 1), (0, 0))),
        of(INTEGERS, width=((0, 1), (1, 0)), value=3),
        of(X, width=WIDTH, mode="wrap"),
        of(X, width=WIDTH, mode="maximum"),
        of(X, width=WIDTH, mode="reflect", of="odd"),
        of(BLOCK, width=((0, 0), (1, 2), (0, 3)), mode="symmetric", of="odd"),
        of(X, width=WIDTH, mode="linear_ramp", value=((1.0, 2.0), (0.5, 0.0))),
        of(X, width=WIDTH, mode="minimum", of=((1, 2), (2, 5))),
        of(X, width=WIDTH, mode="median"),
        of(Z, width=WIDTH, mode="mean", of=((1, 2), (2, 3))),
        *narrow(of(X, width=((1, 1), (1, 1)))),
    ],
}

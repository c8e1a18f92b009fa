"""Samples of the operations in ``letir.ops.shape.padding``."""

from letir.testing.samples.sample import BLOCK, EMPTY, INTEGERS, X, Z, narrowed, sample_of

WIDTH = ((3, 1), (2, 4))
SAMPLES = {
    "pad": [
        sample_of(X, width=((1, 0), (0, 2))),
        sample_of(X, width=((0, 0), (1, 2)), value=((1.0, 2.0), (3.0, 4.0))),
        sample_of(X[0, 0], width=()),
        sample_of(EMPTY, width=((1, 1), (0, 0))),
        sample_of(INTEGERS, width=((0, 1), (1, 0)), value=3),
        sample_of(X, width=WIDTH, mode="wrap"),
        sample_of(X, width=WIDTH, mode="maximum"),
        sample_of(X, width=WIDTH, mode="reflect", of="odd"),
        sample_of(BLOCK, width=((0, 0), (1, 2), (0, 3)), mode="symmetric", of="odd"),
        sample_of(X, width=WIDTH, mode="linear_ramp", value=((1.0, 2.0), (0.5, 0.0))),
        sample_of(X, width=WIDTH, mode="minimum", of=((1, 2), (2, 5))),
        sample_of(X, width=WIDTH, mode="median"),
        sample_of(Z, width=WIDTH, mode="mean", of=((1, 2), (2, 3))),
        *narrowed(sample_of(X, width=((1, 1), (1, 1)))),
    ],
}

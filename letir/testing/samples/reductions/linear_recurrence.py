"""Samples of the operations in ``letir.ops.reductions.linear_recurrence``."""

from letir.testing.samples.sample import (
    BLOCK,
    EMPTY,
    TALL,
    X,
    Y,
    Z,
    exempt,
    narrow,
    of,
)

SAMPLES = {
    "linear_recurrence": exempt(
        [
            of(X[:1], Y),
            of(TALL[1:], TALL * 1.5),
            of(Z[0, :2], Y[0]),
            of(BLOCK[:1], BLOCK + 1),
            of(EMPTY, X[:1]),
            *narrow(of(X[:1], Y)),
        ],
        named_rows="its first operand has one row less than its second",
    ),
}

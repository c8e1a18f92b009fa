"""Samples of the operations in ``letir.ops.reductions.linear_recurrence``."""

from letir.testing.samples.sample import (
    BLOCK,
    EMPTY,
    TALL,
    X,
    Y,
    Z,
    exempt,
    narrowed,
    sample_of,
)

SAMPLES = {
    "linear_recurrence": exempt(
        [
            sample_of(X[:1], Y),
            sample_of(TALL[1:], TALL * 1.5),
            sample_of(Z[0, :2], Y[0]),
            sample_of(BLOCK[:1], BLOCK + 1),
            sample_of(EMPTY, X[:1]),
            *narrowed(sample_of(X[:1], Y)),
        ],
        named_rows="its first operand has one row less than its second",
    ),
}

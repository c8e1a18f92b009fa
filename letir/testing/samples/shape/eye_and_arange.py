"""Samples of the operations in ``letir.ops.shape.eye_and_arange``."""

from letir.testing.samples.sample import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    exempt,
    sample_of,
)

SAMPLES = {
    "eye": exempt(
        [
            sample_of(n=2, m=3, k=0, dtype=FLOAT64),
            sample_of(n=3, m=2, k=1, dtype=FLOAT32),
            sample_of(n=3, m=3, k=-1, dtype=BOOL),
        ],
        batch_rule="its only operand is a shape",
    ),
    "arange": exempt(
        [
            sample_of(start=0, stop=5, step=1, dtype=INT64),
            sample_of(start=0.5, stop=2.0, step=0.5, dtype=FLOAT64),
            sample_of(start=5, stop=0, step=-2, dtype=FLOAT32),
            sample_of(start=3, stop=3, step=1, dtype=INT64),
        ],
        batch_rule="its only operand is a shape",
    ),
}

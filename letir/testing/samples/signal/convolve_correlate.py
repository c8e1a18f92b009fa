"""Samples of the operations in ``letir.ops.signal.convolve_correlate``."""

import numpy as np

from letir.testing.samples.sample import (
    BOOLEANS,
    FLOAT32,
    INTEGERS,
    X,
    Y,
    Z,
    exempt,
    narrowed,
    sample_of,
)

LONG, SHORT = np.linspace(-1.0, 1.3, 6), np.array([0.3, -0.7, 1.1])
SAMPLES = {
    "convolve": [
        sample_of(LONG, SHORT),
        sample_of(LONG, SHORT[:2], mode="same"),
        sample_of(SHORT, LONG, mode="same"),
        sample_of(SHORT[:2], LONG, mode="valid"),
        sample_of(X[0, 0], SHORT),
        sample_of(Z[0], X[1]),
        sample_of(INTEGERS[0], INTEGERS[1].astype(np.int8)),
        sample_of(X[0].astype(FLOAT32), Y[0], mode="valid"),
        *narrowed(sample_of(X[0], Y[0])),
    ],
    "correlate": exempt(
        [
            sample_of(LONG, SHORT),
            sample_of(LONG, SHORT, mode="full"),
            sample_of(LONG, SHORT[:2], mode="same"),
            sample_of(SHORT[:2], LONG, mode="same"),
            sample_of(SHORT, LONG),
            sample_of(Z[0], Z[1, :2], mode="same"),
            sample_of(BOOLEANS[0], BOOLEANS[1]),
            *narrowed(sample_of(X[0], Y[0], mode="full")),
        ],
        complex_step="it conjugates",
        named_rows="its operands are two rows, not batches",
    ),
}

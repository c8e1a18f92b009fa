"""Samples of the operations in ``letir.ops.signal.convolve_correlate``."""

import numpy as np

from letir.testing.samples.sample import BOOLEANS, FLOAT32, INTEGERS, X, Y, Z, exempt, narrow, of

LONG, SHORT = np.linspace(-1.0, 1.3, 6), np.array([0.3, -0.7, 1.1])
SAMPLES = {
    "convolve": [
        of(LONG, SHORT),
        of(LONG, SHORT[:2], mode="same"),
        of(SHORT, LONG, mode="same"),
        of(SHORT[:2], LONG, mode="valid"),
        of(X[0, 0], SHORT),
        of(Z[0], X[1]),
        of(INTEGERS[0], INTEGERS[1].astype(np.int8)),
        of(X[0].astype(FLOAT32), Y[0], mode="valid"),
        *narrow(of(X[0], Y[0])),
    ],
    "correlate": exempt(
        [
            of(LONG, SHORT),
            of(LONG, SHORT, mode="full"),
            of(LONG, SHORT[:2], mode="same"),
            of(SHORT[:2], LONG, mode="same"),
            of(SHORT, LONG),
            of(Z[0], Z[1, :2], mode="same"),
            of(BOOLEANS[0], BOOLEANS[1]),
            *narrow(of(X[0], Y[0], mode="full")),
        ],
        complex_step="it conjugates",
        named_rows="its operands are two rows, not batches",
    ),
}

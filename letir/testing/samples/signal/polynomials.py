"""Samples of the operations in ``letir.ops.signal.polynomials``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, INTEGERS, X, Y, Z, exempt, narrowed, sample_of

PLACES, VALUES = np.array([-1.0, 0.25, 0.6, 1.6, 2.1]), np.array([0.3, -0.7, 1.1, 0.4, 0.2])
SAMPLES = {
    "polyval": [
        sample_of(VALUES, X),
        sample_of(VALUES[:2], 0.5),
        sample_of(X, Y[0]),
        sample_of(Z[0], X),
        sample_of(INTEGERS[0], INTEGERS),
        sample_of(VALUES[:0], X),
        sample_of(VALUES[:1], X),
        *narrowed(sample_of(Y[0], X)),
    ],
    "polydiv": exempt(
        [
            sample_of(VALUES, Y[0], length=2),
            sample_of(Y[0], VALUES, length=3),
            sample_of(INTEGERS[0], X[0], length=2),
            sample_of(Z[0], Y[0, :1], length=1),
        ],
        named_rows="its operands are two rows, whose lengths determine its number of steps",
    ),
    "polyfit": exempt(
        [
            sample_of(PLACES, VALUES, deg=2),
            sample_of(PLACES, np.stack([VALUES, PLACES**2], 1), VALUES + 1.0, deg=1, rcond=1e-9),
            sample_of(PLACES, VALUES * (1 + 0.5j), deg=3),
            sample_of(INTEGERS[1], INTEGERS[0], deg=0),
            sample_of(PLACES.astype(FLOAT32), VALUES.astype(FLOAT32), deg=1),
        ],
        complex_step="it conjugates",
        program_derivative="at repeated points its equations are nearly dependent",
    ),
}

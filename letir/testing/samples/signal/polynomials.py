"""Samples of the operations in ``letir.ops.signal.polynomials``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, INTEGERS, X, Y, Z, exempt, narrow, of

PLACES, VALUES = np.array([-1.0, 0.25, 0.6, 1.6, 2.1]), np.array([0.3, -0.7, 1.1, 0.4, 0.2])
SAMPLES = {
    "polyval": [
        of(VALUES, X),
        of(VALUES[:2], 0.5),
        of(X, Y[0]),
        of(Z[0], X),
        of(INTEGERS[0], INTEGERS),
        of(VALUES[:0], X),
        of(VALUES[:1], X),
        *narrow(of(Y[0], X)),
    ],
    "polydiv": exempt(
        [
            of(VALUES, Y[0], length=2),
            of(Y[0], VALUES, length=3),
            of(INTEGERS[0], X[0], length=2),
            of(Z[0], Y[0, :1], length=1),
        ],
        named_rows="its operands are two rows, whose lengths determine its number of steps",
    ),
    "polyfit": exempt(
        [
            of(PLACES, VALUES, deg=2),
            of(PLACES, np.stack([VALUES, PLACES**2], 1), VALUES + 1.0, deg=1, rcond=1e-9),
            of(PLACES, VALUES * (1 + 0.5j), deg=3),
            of(INTEGERS[1], INTEGERS[0], deg=0),
            of(PLACES.astype(FLOAT32), VALUES.astype(FLOAT32), deg=1),
        ],
        complex_step="it conjugates",
        program_derivative="at repeated points its equations are nearly dependent",
    ),
}

"""Samples of the operations in ``letir.ops.elementwise.casting``."""

import numpy as np

from letir.testing.samples.sample import (
    BOOLEANS,
    COMPLEX64,
    COMPLEX128,
    EMPTY,
    FLOAT32,
    FLOAT64,
    INTEGERS,
    X,
    Z,
    exempt,
    narrowed,
    nonsmooth,
    sample_of,
)

SAMPLES = {
    "cast": [
        *[sample_of(X, dtype=np.dtype(name)) for name in ("f8", "f4", "f2", "c16", "i8", "?")],
        sample_of(INTEGERS, dtype=FLOAT64),
        sample_of(BOOLEANS, dtype=FLOAT64),
        sample_of(Z, dtype=COMPLEX64),
        sample_of(2.5, dtype=FLOAT32),
        sample_of(2, dtype=FLOAT64),
        sample_of(X[0, 0], dtype=FLOAT32),
        sample_of(np.array(0.5), dtype=COMPLEX128),
        sample_of(EMPTY, dtype=FLOAT32),
        sample_of(X.astype(FLOAT32), dtype=FLOAT64),
    ],
    "weaken": exempt(
        [
            sample_of(np.float64(0.5)),
            sample_of(np.float32(0.5)),
            sample_of(np.int64(3)),
            sample_of(np.bool_(True)),
            sample_of(np.complex128(1 + 2j)),
            sample_of(0.5),
            sample_of(2),
        ],
        named_rows="its operand is one number",
    ),
    "copy": [
        sample_of(X),
        sample_of(X[0, 0]),
        sample_of(np.array(0.5)),
        sample_of(0.5),
        sample_of(EMPTY),
        sample_of(Z),
        sample_of(INTEGERS),
        *narrowed(sample_of(X)),
    ],
    "barrier": [
        sample_of(X),
        sample_of(X[0, 0]),
        sample_of(0.5),
        sample_of(Z),
        sample_of(INTEGERS),
        *narrowed(sample_of(X)),
    ],
    "stop_gradient": exempt(
        [
            nonsmooth(X),
            nonsmooth(X[0, 0]),
            nonsmooth(0.5),
            nonsmooth(Z),
            sample_of(INTEGERS),
            *narrowed(nonsmooth(X)),
        ],
        program_derivative="by design, it is not the derivative of the values",
    ),
}

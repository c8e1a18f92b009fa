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
    narrow,
    of,
    rough,
)

SAMPLES = {
    "cast": [
        *[of(X, dtype=np.dtype(name)) for name in ("f8", "f4", "f2", "c16", "i8", "?")],
        of(INTEGERS, dtype=FLOAT64),
        of(BOOLEANS, dtype=FLOAT64),
        of(Z, dtype=COMPLEX64),
        of(2.5, dtype=FLOAT32),
        of(2, dtype=FLOAT64),
        of(X[0, 0], dtype=FLOAT32),
        of(np.array(0.5), dtype=COMPLEX128),
        of(EMPTY, dtype=FLOAT32),
        of(X.astype(FLOAT32), dtype=FLOAT64),
    ],
    "weaken": exempt(
        [
            of(np.float64(0.5)),
            of(np.float32(0.5)),
            of(np.int64(3)),
            of(np.bool_(True)),
            of(np.complex128(1 + 2j)),
            of(0.5),
            of(2),
        ],
        named_rows="its operand is one number",
    ),
    "copy": [
        of(X),
        of(X[0, 0]),
        of(np.array(0.5)),
        of(0.5),
        of(EMPTY),
        of(Z),
        of(INTEGERS),
        *narrow(of(X)),
    ],
    "barrier": [of(X), of(X[0, 0]), of(0.5), of(Z), of(INTEGERS), *narrow(of(X))],
    "stop_gradient": exempt(
        [
            rough(X),
            rough(X[0, 0]),
            rough(0.5),
            rough(Z),
            of(INTEGERS),
            *narrow(rough(X)),
        ],
        program_derivative="by design, it is not the derivative of the values",
    ),
}

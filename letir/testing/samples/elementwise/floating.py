"""Samples of the operations in ``letir.ops.elementwise.floating``."""

import numpy as np

from letir.testing.samples.sample import (
    EMPTY,
    FLOAT16,
    FLOAT32,
    INTEGERS,
    POSITIVE,
    SPECIAL,
    X,
    Y,
    Z,
    narrowed,
    nonsmooth,
    sample_of,
    unary_samples,
)

ONE = [
    sample_of(X * 1.1),
    sample_of(np.float64(-0.3)),
    sample_of(1.2),
    sample_of(EMPTY),
    sample_of(np.full((2, 1), 3, np.int8)),
    nonsmooth(SPECIAL[3:]),
    *narrowed(sample_of(X * 1.1)),
]
TWO = [
    sample_of(X, Y),
    sample_of(X[:, :1], Y[0]),
    sample_of(X[0, 1], Y),
    sample_of(2.0, Y[1]),
    sample_of(X[1], 2),
    sample_of(X[:, :0], 0.5),
    sample_of(INTEGERS, Y.astype(FLOAT16)),
    *narrowed(sample_of(X, Y[0])),
]
TIES = [nonsmooth(X, X), nonsmooth(SPECIAL, SPECIAL[::-1].copy()), sample_of(SPECIAL[:1], X[0])]
EXTREMA = [*TWO, sample_of(X + 0.25j, Y - 0.5j), *TIES]
SAMPLES = {
    **dict.fromkeys(("radians", "degrees"), unary_samples(0.5, -1.5, has_complex=False)),
    **dict.fromkeys(("fabs", "signbit", "spacing"), ONE),
    "modf": ONE,
    "frexp": [*ONE[:4], *ONE[5:]],
    "copysign": TWO,
    "nextafter": TWO,
    "heaviside": [
        *TWO,
        sample_of(INTEGERS - 3, Y),
        nonsmooth(SPECIAL, Y[0, 0]),
        nonsmooth(np.zeros(3), X),
    ],
    **dict.fromkeys(("fmax", "fmin"), EXTREMA),
    "fmod": [*TWO, sample_of(-7.5 * X, POSITIVE), sample_of(INTEGERS, 2)],
    "divmod": [*TWO, sample_of(-7.5 * X, POSITIVE), sample_of(INTEGERS, 2), sample_of(7.5, 2)],
    "float_power": [
        sample_of(POSITIVE, Y),
        sample_of(POSITIVE[0].astype(FLOAT32), Y[:, :1].astype(FLOAT32)),
        sample_of(X, 2),
        sample_of(-1.5, Z),
        sample_of(Z, 1.5),
        sample_of(INTEGERS, Y),
        sample_of(INTEGERS, np.int64(-2)),
        sample_of(X[:, :0], 0.5),
    ],
    "logaddexp2": [*TWO, sample_of(np.array([-np.inf, 900.0]), np.array([1.0, 800.0]))],
    "ldexp": [
        sample_of(X, INTEGERS),
        sample_of(X[0], -3),
        sample_of(0.75, INTEGERS[0]),
        sample_of(np.float64(1.5), np.int8(2)),
        sample_of(INTEGERS, 2),
        sample_of(X[:, :0], 1),
        *narrowed(sample_of(X, INTEGERS[:, :1])),
    ],
}

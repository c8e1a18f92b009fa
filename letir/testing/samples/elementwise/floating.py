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
    narrow,
    of,
    points,
    rough,
)

ONE = [
    of(X * 1.1),
    of(np.float64(-0.3)),
    of(1.2),
    of(EMPTY),
    of(np.full((2, 1), 3, np.int8)),
    rough(SPECIAL[3:]),
    *narrow(of(X * 1.1)),
]
TWO = [
    of(X, Y),
    of(X[:, :1], Y[0]),
    of(X[0, 1], Y),
    of(2.0, Y[1]),
    of(X[1], 2),
    of(X[:, :0], 0.5),
    of(INTEGERS, Y.astype(FLOAT16)),
    *narrow(of(X, Y[0])),
]
TIES = [rough(X, X), rough(SPECIAL, SPECIAL[::-1].copy()), of(SPECIAL[:1], X[0])]
EXTREMA = [*TWO, of(X + 0.25j, Y - 0.5j), *TIES]
SAMPLES = {
    **dict.fromkeys(("radians", "degrees"), points(0.5, -1.5, has_complex=False)),
    **dict.fromkeys(("fabs", "signbit", "spacing"), ONE),
    "modf": ONE,
    "frexp": [*ONE[:4], *ONE[5:]],
    "copysign": TWO,
    "nextafter": TWO,
    "heaviside": [*TWO, of(INTEGERS - 3, Y), rough(SPECIAL, Y[0, 0]), rough(np.zeros(3), X)],
    **dict.fromkeys(("fmax", "fmin"), EXTREMA),
    "fmod": [*TWO, of(-7.5 * X, POSITIVE), of(INTEGERS, 2)],
    "divmod": [*TWO, of(-7.5 * X, POSITIVE), of(INTEGERS, 2), of(7.5, 2)],
    "float_power": [
        of(POSITIVE, Y),
        of(POSITIVE[0].astype(FLOAT32), Y[:, :1].astype(FLOAT32)),
        of(X, 2),
        of(-1.5, Z),
        of(Z, 1.5),
        of(INTEGERS, Y),
        of(INTEGERS, np.int64(-2)),
        of(X[:, :0], 0.5),
    ],
    "logaddexp2": [*TWO, of(np.array([-np.inf, 900.0]), np.array([1.0, 800.0]))],
    "ldexp": [
        of(X, INTEGERS),
        of(X[0], -3),
        of(0.75, INTEGERS[0]),
        of(np.float64(1.5), np.int8(2)),
        of(INTEGERS, 2),
        of(X[:, :0], 1),
        *narrow(of(X, INTEGERS[:, :1])),
    ],
}

"""Samples of the operations in ``letir.ops.elementwise.ufuncs``."""

import numpy as np

from letir.testing.samples.sample import (
    BOOLEANS,
    EMPTY,
    INTEGERS,
    POSITIVE,
    SPECIAL,
    Sample,
    X,
    Y,
    Z,
    couples,
    exempt,
    narrow,
    of,
    points,
    rough,
)

SMOOTH = points(0.5, -1.5)
LOGARITHM = points(0.5, 2.5)
WITH_ZERO = [*SMOOTH, rough(np.zeros(2)), rough(np.zeros(2, complex))]
WITHIN_ONE = points(0.5, -0.75)
ROUNDED = [
    of(X * 1.1),
    of(np.float64(-0.3)),
    of(1.2),
    of(EMPTY),
    of(INTEGERS),
    *narrow(of(X * 1.1)),
]
ORDERED = [*couples(X, Y), of(INTEGERS, INTEGERS), rough(X, X), rough(X, 0.5)]
COMPARED = [
    *couples(X, Y),
    of(X, X),
    of(SPECIAL, SPECIAL[::-1].copy()),
    of(BOOLEANS, BOOLEANS[:1]),
    of(INTEGERS.astype(np.uint8), 3),
    of(2, 3),
]
TESTED = [
    of(X),
    of(SPECIAL),
    of(INTEGERS),
    of(BOOLEANS[0, 0]),
    of(Z),
    of(0.5),
    of(EMPTY),
    *narrow(of(SPECIAL)),
]
BITS = [
    of(INTEGERS, INTEGERS[:1]),
    of(INTEGERS, 3),
    of(np.int8(3), np.array([1, -2], np.int16)),
    of(BOOLEANS, BOOLEANS[0]),
    of(BOOLEANS, INTEGERS),
    of(np.uint8(7), np.array(3)),
    of(INTEGERS[:0], 1),
    of(BOOLEANS, True),
    of(2, 3),
]
ARITHMETIC: dict[str, list[Sample]] = {
    "add": [*couples(X, Y), of(BOOLEANS, BOOLEANS), of(2, 3)],
    "sub": couples(X, Y),
    "mul": [*couples(X, Y), of(BOOLEANS, X)],
    "div": couples(X, Y),
    "neg": SMOOTH,
    "positive": SMOOTH,
    "floor_divide": couples(X, Y, has_complex=False),
    "remainder": exempt(couples(X + 3.05, Y, has_complex=False), batch_difference="it jumps"),
    "power": [
        *couples(POSITIVE, Y),
        of(X, 2),
        of(X, 1),
        of(X, 0),
        of(X, np.array(2)),
        of(X, Z),
        of(POSITIVE, 3.0),
        of(INTEGERS, 2),
        rough(np.zeros(2), 0),
        rough(np.zeros(2), np.array([1.5, 2.0])),
    ],
    "maximum": ORDERED,
    "minimum": ORDERED,
}
FUNCTIONS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "square", "reciprocal"), SMOOTH),
    **dict.fromkeys(("log", "log2", "log10", "sqrt"), LOGARITHM),
    "log1p": points(0.5, -0.5),
    "logaddexp": [
        *couples(X, Y, has_complex=False),
        of(np.array([-np.inf, 900.0]), np.array([1.0, 800.0])),
    ],
    "cbrt": points(0.5, -2.5, has_complex=False),
    **dict.fromkeys(("sin", "cos", "arctan", "sinh", "cosh", "tanh", "arcsinh"), SMOOTH),
    "tan": points(0.5, -1.25),
    **dict.fromkeys(("arcsin", "arccos"), WITHIN_ONE),
    "arctanh": points(0.5, -0.75, integer=0),
    "arccosh": points(1.5, 2.5, integer=2),
    "arctan2": couples(X, Y, has_complex=False),
    "hypot": [
        *couples(X, Y, has_complex=False),
        rough(np.zeros(2), np.array([0.0, 1.0])),
    ],
}
PARTS = {
    **dict.fromkeys(("floor", "ceil", "trunc", "rint"), ROUNDED),
    **dict.fromkeys(("sign", "abs"), exempt(WITH_ZERO, complex_step="it depends on the modulus")),
    **dict.fromkeys(
        ("conj", "real", "imag"), exempt(SMOOTH, complex_step="it takes real and imaginary parts")
    ),
}
DISCRETE = {
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater"), COMPARED),
    **dict.fromkeys(("greater_equal", "logical_and", "logical_or", "logical_xor"), COMPARED),
    "logical_not": TESTED,
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), BITS),
    "invert": [of(INTEGERS), of(BOOLEANS), of(np.uint8(3)), of(2), of(INTEGERS[:0])],
    **dict.fromkeys(("isnan", "isinf", "isfinite"), TESTED),
}
CHOICES = {
    "where": [
        of(BOOLEANS, X, Y),
        of(X > 0, X, 0.0),
        of(X[0] > 0, 1.0, Y),
        of(np.bool_(True), X, Y[0]),
        of(BOOLEANS[:, :1], X[0], Y[0, 0]),
        of(~BOOLEANS[0], np.array([np.nan, 0.5, np.inf]), X),
        of(BOOLEANS, Z, Y),
        of(BOOLEANS, INTEGERS, X),
        of(BOOLEANS, INTEGERS, 0),
        of(INTEGERS - 3, X, Y),
        of(BOOLEANS[:, :0], X[:, :0], 1.0),
        of(BOOLEANS, 1.0, 2.0),
        *narrow(of(BOOLEANS, X, 2.0), of(BOOLEANS, X, Y)),
    ],
    "clip": [
        of(X, -1.0, 1.0),
        of(X, None, 1.0),
        of(X, -1.0, None),
        of(X, Y - 1, Y + 1),
        of(X, Y[0] - 1, None),
        of(X[:, :1], Y[0] - 1, 2.0),
        of(X[0, 0], -1, 1),
        of(0.5, 0.0, 1.0),
        of(EMPTY, 0.0, 1.0),
        of(INTEGERS, 2, 4),
        of(INTEGERS, 1.5, 4.5),
        rough(X, 0.5, 1.5),
        rough(X, 1.0, -1.0),
        *narrow(of(X, -1.0, 1.0), of(X, Y - 1, None)),
    ],
}
SAMPLES = {**ARITHMETIC, **FUNCTIONS, **PARTS, **DISCRETE, **CHOICES}

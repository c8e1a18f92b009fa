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
    binary_samples,
    exempt,
    narrowed,
    nonsmooth,
    sample_of,
    unary_samples,
)

SMOOTH = unary_samples(0.5, -1.5)
LOGARITHM = unary_samples(0.5, 2.5)
WITH_ZERO = [*SMOOTH, nonsmooth(np.zeros(2)), nonsmooth(np.zeros(2, complex))]
WITHIN_ONE = unary_samples(0.5, -0.75)
ROUNDED = [
    sample_of(X * 1.1),
    sample_of(np.float64(-0.3)),
    sample_of(1.2),
    sample_of(EMPTY),
    sample_of(INTEGERS),
    *narrowed(sample_of(X * 1.1)),
]
ORDERED = [*binary_samples(X, Y), sample_of(INTEGERS, INTEGERS), nonsmooth(X, X), nonsmooth(X, 0.5)]
COMPARED = [
    *binary_samples(X, Y),
    sample_of(X, X),
    sample_of(SPECIAL, SPECIAL[::-1].copy()),
    sample_of(BOOLEANS, BOOLEANS[:1]),
    sample_of(INTEGERS.astype(np.uint8), 3),
    sample_of(2, 3),
]
TESTED = [
    sample_of(X),
    sample_of(SPECIAL),
    sample_of(INTEGERS),
    sample_of(BOOLEANS[0, 0]),
    sample_of(Z),
    sample_of(0.5),
    sample_of(EMPTY),
    *narrowed(sample_of(SPECIAL)),
]
BITS = [
    sample_of(INTEGERS, INTEGERS[:1]),
    sample_of(INTEGERS, 3),
    sample_of(np.int8(3), np.array([1, -2], np.int16)),
    sample_of(BOOLEANS, BOOLEANS[0]),
    sample_of(BOOLEANS, INTEGERS),
    sample_of(np.uint8(7), np.array(3)),
    sample_of(INTEGERS[:0], 1),
    sample_of(BOOLEANS, True),
    sample_of(2, 3),
]
ARITHMETIC: dict[str, list[Sample]] = {
    "add": [*binary_samples(X, Y), sample_of(BOOLEANS, BOOLEANS), sample_of(2, 3)],
    "sub": binary_samples(X, Y),
    "mul": [*binary_samples(X, Y), sample_of(BOOLEANS, X)],
    "div": binary_samples(X, Y),
    "neg": SMOOTH,
    "positive": SMOOTH,
    "floor_divide": binary_samples(X, Y, has_complex=False),
    "remainder": exempt(
        binary_samples(X + 3.05, Y, has_complex=False), batch_difference="it jumps"
    ),
    "power": [
        *binary_samples(POSITIVE, Y),
        sample_of(X, 2),
        sample_of(X, 1),
        sample_of(X, 0),
        sample_of(X, np.array(2)),
        sample_of(X, Z),
        sample_of(POSITIVE, 3.0),
        sample_of(INTEGERS, 2),
        nonsmooth(np.zeros(2), 0),
        nonsmooth(np.zeros(2), np.array([1.5, 2.0])),
    ],
    "maximum": ORDERED,
    "minimum": ORDERED,
}
FUNCTIONS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "square", "reciprocal"), SMOOTH),
    **dict.fromkeys(("log", "log2", "log10", "sqrt"), LOGARITHM),
    "log1p": unary_samples(0.5, -0.5),
    "logaddexp": [
        *binary_samples(X, Y, has_complex=False),
        sample_of(np.array([-np.inf, 900.0]), np.array([1.0, 800.0])),
    ],
    "cbrt": unary_samples(0.5, -2.5, has_complex=False),
    **dict.fromkeys(("sin", "cos", "arctan", "sinh", "cosh", "tanh", "arcsinh"), SMOOTH),
    "tan": unary_samples(0.5, -1.25),
    **dict.fromkeys(("arcsin", "arccos"), WITHIN_ONE),
    "arctanh": unary_samples(0.5, -0.75, integer=0),
    "arccosh": unary_samples(1.5, 2.5, integer=2),
    "arctan2": binary_samples(X, Y, has_complex=False),
    "hypot": [
        *binary_samples(X, Y, has_complex=False),
        nonsmooth(np.zeros(2), np.array([0.0, 1.0])),
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
    "invert": [
        sample_of(INTEGERS),
        sample_of(BOOLEANS),
        sample_of(np.uint8(3)),
        sample_of(2),
        sample_of(INTEGERS[:0]),
    ],
    **dict.fromkeys(("isnan", "isinf", "isfinite"), TESTED),
}
CHOICES = {
    "where": [
        sample_of(BOOLEANS, X, Y),
        sample_of(X > 0, X, 0.0),
        sample_of(X[0] > 0, 1.0, Y),
        sample_of(np.bool_(True), X, Y[0]),
        sample_of(BOOLEANS[:, :1], X[0], Y[0, 0]),
        sample_of(~BOOLEANS[0], np.array([np.nan, 0.5, np.inf]), X),
        sample_of(BOOLEANS, Z, Y),
        sample_of(BOOLEANS, INTEGERS, X),
        sample_of(BOOLEANS, INTEGERS, 0),
        sample_of(INTEGERS - 3, X, Y),
        sample_of(BOOLEANS[:, :0], X[:, :0], 1.0),
        sample_of(BOOLEANS, 1.0, 2.0),
        *narrowed(sample_of(BOOLEANS, X, 2.0), sample_of(BOOLEANS, X, Y)),
    ],
    "clip": [
        sample_of(X, -1.0, 1.0),
        sample_of(X, None, 1.0),
        sample_of(X, -1.0, None),
        sample_of(X, Y - 1, Y + 1),
        sample_of(X, Y[0] - 1, None),
        sample_of(X[:, :1], Y[0] - 1, 2.0),
        sample_of(X[0, 0], -1, 1),
        sample_of(0.5, 0.0, 1.0),
        sample_of(EMPTY, 0.0, 1.0),
        sample_of(INTEGERS, 2, 4),
        sample_of(INTEGERS, 1.5, 4.5),
        nonsmooth(X, 0.5, 1.5),
        nonsmooth(X, 1.0, -1.0),
        *narrowed(sample_of(X, -1.0, 1.0), sample_of(X, Y - 1, None)),
    ],
}
SAMPLES = {**ARITHMETIC, **FUNCTIONS, **PARTS, **DISCRETE, **CHOICES}

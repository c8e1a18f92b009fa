"""Samples of the operations in ``letir.ops.reductions.reductions``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    BOOLEANS,
    COMPLEX64,
    EMPTY,
    FLOAT32,
    INTEGERS,
    SPECIAL,
    Sample,
    X,
    Z,
    narrow,
    of,
    rough,
)

# NumPy warns about a mean of no elements
ONE_EACH = np.array([[True, False, True], [False, True, True]])
ZERO_FACTORS = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0]])
TIES = np.array([[1.0, 2.0, 2.0], [1.0, 1.0, 1.0]])


def unmasked() -> list[Sample]:
    """Samples with every way to give axes, and every kind of array."""
    samples = [of(X, axis=axis) for axis in (None, 0, -1, (0, 1), (-1, 0))]
    samples += [of(X, axis=1, keepdims=True), of(X, keepdims=True), of(BLOCK, axis=(0, 2))]
    samples += [of(X[0, 0]), of(0.5), of(INTEGERS, axis=1), of(BOOLEANS), of(X[:, :0], axis=0)]
    return [*samples, *narrow(of(X, axis=1))]


def masked(mask: np.ndarray = BOOLEANS) -> list[Sample]:
    """Samples with masks, and with no axes."""
    return [
        *unmasked(),
        of(X, mask, axis=0),
        of(X, mask[0], keepdims=True),
        of(X, mask[:, :1], axis=(0, 1)),
        of(X, axis=()),
    ]


def extrema(outside: float) -> list[Sample]:
    """Samples with masks, which need an initial value beyond all elements, and with ties."""
    return [
        *unmasked(),
        of(X, BOOLEANS, initial=outside),
        of(X, BOOLEANS, axis=1, initial=outside, keepdims=True),
        of(X, initial=0.25, axis=0),
        of(EMPTY, initial=0.5, axis=0),
        of(INTEGERS, initial=4),
        of(Z, axis=1),
        rough(TIES, axis=1),
        rough(TIES, keepdims=True),
    ]


DTYPES = [of(X, axis=0, dtype=FLOAT32), of(INTEGERS, dtype=FLOAT32), of(Z, axis=0)]
FOLDED = [
    *DTYPES,
    of(INTEGERS.astype(np.uint8)),
    of(EMPTY),
    of(X, axis=1, initial=0.5),
    of(X, BOOLEANS, initial=2, keepdims=True),
    of(Z.astype(COMPLEX64)),
]
LOGICAL = [*masked(), of(Z, axis=0), of(EMPTY), of(SPECIAL)]
PLACES = [
    *[of(X, axis=axis) for axis in (None, 0, -1)],
    of(X, axis=1, keepdims=True),
    of(X, keepdims=True),
    of(INTEGERS),
    of(BOOLEANS, axis=0),
    of(TIES, axis=1),
    of(X[0, 0]),
    of(EMPTY, axis=1),
    of(SPECIAL),
    of(Z, axis=0),
    *narrow(of(X, axis=1)),
]
SAMPLES = {
    "sum": [*masked(), *FOLDED],
    "mean": [*masked(ONE_EACH), *DTYPES],
    "prod": [
        *masked(),
        *FOLDED,
        of(ZERO_FACTORS, axis=1),
        of(ZERO_FACTORS, axis=0, keepdims=True),
        of(ZERO_FACTORS[:, :1]),
    ],
    "max": extrema(-9.0),
    "min": extrema(9.0),
    "any": LOGICAL,
    "all": LOGICAL,
    "argmax": PLACES,
    "argmin": PLACES,
}

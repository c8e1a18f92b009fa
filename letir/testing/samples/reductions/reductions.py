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
    narrowed,
    nonsmooth,
    sample_of,
)

# NumPy warns about a mean of no elements
ONE_EACH = np.array([[True, False, True], [False, True, True]])
ZERO_FACTORS = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0]])
TIES = np.array([[1.0, 2.0, 2.0], [1.0, 1.0, 1.0]])


def unmasked() -> list[Sample]:
    """Samples with every way to give axes, and every kind of array."""
    samples = [sample_of(X, axis=axis) for axis in (None, 0, -1, (0, 1), (-1, 0))]
    samples += [
        sample_of(X, axis=1, keepdims=True),
        sample_of(X, keepdims=True),
        sample_of(BLOCK, axis=(0, 2)),
    ]
    samples += [
        sample_of(X[0, 0]),
        sample_of(0.5),
        sample_of(INTEGERS, axis=1),
        sample_of(BOOLEANS),
        sample_of(X[:, :0], axis=0),
    ]
    return [*samples, *narrowed(sample_of(X, axis=1))]


def masked(mask: np.ndarray = BOOLEANS) -> list[Sample]:
    """Samples with masks, and with no axes."""
    return [
        *unmasked(),
        sample_of(X, mask, axis=0),
        sample_of(X, mask[0], keepdims=True),
        sample_of(X, mask[:, :1], axis=(0, 1)),
        sample_of(X, axis=()),
    ]


def extrema(outside: float) -> list[Sample]:
    """Samples with masks, which need an initial value beyond all elements, and with ties."""
    return [
        *unmasked(),
        sample_of(X, BOOLEANS, initial=outside),
        sample_of(X, BOOLEANS, axis=1, initial=outside, keepdims=True),
        sample_of(X, initial=0.25, axis=0),
        sample_of(EMPTY, initial=0.5, axis=0),
        sample_of(INTEGERS, initial=4),
        sample_of(Z, axis=1),
        nonsmooth(TIES, axis=1),
        nonsmooth(TIES, keepdims=True),
    ]


DTYPES = [
    sample_of(X, axis=0, dtype=FLOAT32),
    sample_of(INTEGERS, dtype=FLOAT32),
    sample_of(Z, axis=0),
]
FOLDED = [
    *DTYPES,
    sample_of(INTEGERS.astype(np.uint8)),
    sample_of(EMPTY),
    sample_of(X, axis=1, initial=0.5),
    sample_of(X, BOOLEANS, initial=2, keepdims=True),
    sample_of(Z.astype(COMPLEX64)),
]
LOGICAL = [*masked(), sample_of(Z, axis=0), sample_of(EMPTY), sample_of(SPECIAL)]
PLACES = [
    *[sample_of(X, axis=axis) for axis in (None, 0, -1)],
    sample_of(X, axis=1, keepdims=True),
    sample_of(X, keepdims=True),
    sample_of(INTEGERS),
    sample_of(BOOLEANS, axis=0),
    sample_of(TIES, axis=1),
    sample_of(X[0, 0]),
    sample_of(EMPTY, axis=1),
    sample_of(SPECIAL),
    sample_of(Z, axis=0),
    *narrowed(sample_of(X, axis=1)),
]
SAMPLES = {
    "sum": [*masked(), *FOLDED],
    "mean": [*masked(ONE_EACH), *DTYPES],
    "prod": [
        *masked(),
        *FOLDED,
        sample_of(ZERO_FACTORS, axis=1),
        sample_of(ZERO_FACTORS, axis=0, keepdims=True),
        sample_of(ZERO_FACTORS[:, :1]),
    ],
    "max": extrema(-9.0),
    "min": extrema(9.0),
    "any": LOGICAL,
    "all": LOGICAL,
    "argmax": PLACES,
    "argmin": PLACES,
}

"""Samples of the operations in ``letir.ops.reductions.nan_reductions``."""

import numpy as np

from letir.testing.samples.sample import (
    FLOAT32,
    INTEGERS,
    Sample,
    X,
    Y,
    exempt,
    narrowed,
    nonsmooth,
    sample_of,
)

NAN = np.array([[0.5, np.nan, 2.0], [1.5, 0.75, np.nan]])
MASK = np.array([[True, True, True], [True, False, True]])
EMPTY_ROW = np.array([[0.5, np.nan, 2.0], [np.nan, np.nan, np.nan]])  # NumPy warns about its mean
TIES = np.array([[1.0, 2.0, 2.0], [1.0, np.nan, 1.0]])
COMPLEX = NAN + 1j * Y


def reduced() -> list[Sample]:
    """Samples that every nan-reduction accepts."""
    return [
        sample_of(NAN),
        sample_of(NAN, axis=-1, keepdims=True),
        sample_of(X, axis=(0, 1)),
        sample_of(NAN[0, 0], axis=None),
        sample_of(INTEGERS, axis=1),
        sample_of(COMPLEX, axis=0),
        *narrowed(sample_of(NAN, axis=1)),
    ]


FOLDED = [
    *reduced(),
    sample_of(NAN, MASK, axis=1),
    sample_of(NAN, axis=0, dtype=FLOAT32),
    sample_of(EMPTY_ROW, axis=1, initial=0.5),
]
SPREAD = [
    *reduced(),
    sample_of(NAN, MASK, axis=1),
    sample_of(NAN, None, Y[:, :1], axis=1, ddof=0.5),
]
EXTREMA = [
    *reduced(),
    sample_of(NAN, MASK, axis=1, initial=0.25),
    nonsmooth(TIES, axis=1),
]
PLACES = [
    sample_of(NAN),
    sample_of(NAN, axis=-1, keepdims=True),
    sample_of(INTEGERS, axis=0),
    sample_of(COMPLEX, axis=0),
]
CUMULATED = [
    sample_of(NAN),
    sample_of(NAN, axis=-1),
    sample_of(COMPLEX, axis=0),
    sample_of(INTEGERS, axis=1),
    sample_of(NAN[0, 1]),
    *narrowed(sample_of(NAN, axis=1)),
]
SAMPLES = {
    "nansum": FOLDED,
    "nanprod": FOLDED,
    "nanmean": FOLDED[:-1],
    "nanvar": exempt(SPREAD, complex_step="it conjugates"),
    "nanstd": exempt(SPREAD, complex_step="it conjugates"),
    "nanmax": EXTREMA,
    "nanmin": EXTREMA,
    "nanargmax": PLACES,
    "nanargmin": PLACES,
    "nancumsum": CUMULATED,
    "nancumprod": CUMULATED,
}

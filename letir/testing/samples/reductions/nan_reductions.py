"""Samples of the operations in ``letir.ops.reductions.nan_reductions``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, INTEGERS, Sample, X, Y, exempt, narrow, of, rough

NAN = np.array([[0.5, np.nan, 2.0], [1.5, 0.75, np.nan]])
MASK = np.array([[True, True, True], [True, False, True]])
EMPTY_ROW = np.array([[0.5, np.nan, 2.0], [np.nan, np.nan, np.nan]])  # NumPy warns about its mean
TIES = np.array([[1.0, 2.0, 2.0], [1.0, np.nan, 1.0]])
COMPLEX = NAN + 1j * Y


def reduced() -> list[Sample]:
    """Samples that every nan-reduction accepts."""
    return [
        of(NAN),
        of(NAN, axis=-1, keepdims=True),
        of(X, axis=(0, 1)),
        of(NAN[0, 0], axis=None),
        of(INTEGERS, axis=1),
        of(COMPLEX, axis=0),
        *narrow(of(NAN, axis=1)),
    ]


FOLDED = [
    *reduced(),
    of(NAN, MASK, axis=1),
    of(NAN, axis=0, dtype=FLOAT32),
    of(EMPTY_ROW, axis=1, initial=0.5),
]
SPREAD = [*reduced(), of(NAN, MASK, axis=1), of(NAN, None, Y[:, :1], axis=1, ddof=0.5)]
EXTREMA = [
    *reduced(),
    of(NAN, MASK, axis=1, initial=0.25),
    rough(TIES, axis=1),
]
PLACES = [of(NAN), of(NAN, axis=-1, keepdims=True), of(INTEGERS, axis=0), of(COMPLEX, axis=0)]
CUMULATED = [
    of(NAN),
    of(NAN, axis=-1),
    of(COMPLEX, axis=0),
    of(INTEGERS, axis=1),
    of(NAN[0, 1]),
    *narrow(of(NAN, axis=1)),
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

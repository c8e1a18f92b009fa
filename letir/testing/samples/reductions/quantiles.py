"""Samples of the operations in ``letir.ops.reductions.quantiles``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    FLOAT32,
    INTEGERS,
    Sample,
    X,
    Z,
    narrowed,
    nonsmooth,
    sample_of,
)

NAN = np.array([[0.5, np.nan, 2.0, 0.25], [1.5, 0.75, -0.3, np.nan]])
ROW, WEIGHTS = np.array([0.5, -1.25, 2.0, 0.75, 1.1]), np.array([0.5, 1.0, 0.25, 2.0, 0.75])
SOME = np.array([0.17, 0.62])


def medians(x: np.ndarray) -> list[Sample]:
    """Samples of np.median and np.nanmedian."""
    return [
        sample_of(x),
        sample_of(x, axis=-1, keepdims=True),
        sample_of(BLOCK, axis=(0, 2)),
        sample_of(X[0, 0]),
        sample_of(INTEGERS, axis=1),
        sample_of(Z, axis=1),
        nonsmooth(np.array([[1.0, 2.0, 2.0], [1.0, 1.0, 1.0]]), axis=1),
        *narrowed(sample_of(x, axis=0)),
    ]


def quantiles(x: np.ndarray, scale: int) -> list[Sample]:
    """Samples of np.quantile (``scale`` 1), np.percentile (``scale`` 100) and similar functions."""
    return [
        sample_of(x, 0.3 * scale, axis=1),
        sample_of(x, np.float64(0.4) * scale, axis=0, keepdims=True),
        sample_of(BLOCK, SOME * scale, axis=(0, 2), method="hazen", keepdims=True),
        sample_of(x, SOME * scale, axis=-1, method="median_unbiased"),
        sample_of(ROW, SOME[:, None] * scale, method="midpoint"),
        sample_of(x, SOME * scale, axis=1, method="closest_observation"),
        sample_of(ROW, 0.7 * scale, WEIGHTS, method="inverted_cdf"),
        sample_of(INTEGERS, 0.35 * scale, axis=1),
        sample_of(INTEGERS, 0.35 * scale, method="higher"),
        sample_of(x.astype(FLOAT32), 0.3 * scale, axis=1),
    ]


SAMPLES = {
    "median": medians(X),
    "nanmedian": medians(NAN),
    "quantile": quantiles(X, 1),
    "percentile": quantiles(X, 100)[1::4],
    "nanquantile": quantiles(NAN, 1),
    "nanpercentile": quantiles(NAN, 100)[1::4],
}

"""Samples of the operations in ``letir.ops.reductions.histograms``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, FLOAT32, INTEGERS, X, Y, Z, nonsmooth, sample_of

EDGES, OTHERS = np.array([-1.0, 0.1, 0.55, 2.5]), np.array([-1.5, 0.35, 1.2])
POINTS = np.stack([X.ravel(), Y.ravel()], 1)
SAMPLES = {
    "bin_count": [sample_of(X, rule="auto"), sample_of(X[0], rule="sqrt", range=(0.0, 1.0))],
    "histogram_bin_edges": [
        sample_of(X, bins=3),
        sample_of(X, bins=2, range=(0.0, 1.5)),
        sample_of(X.astype(FLOAT32), bins=4),
        sample_of(INTEGERS, bins=2),
        sample_of(X[:0], bins=2),
        nonsmooth(np.ones(2), bins=1),
    ],
    "histogram": [
        sample_of(X, bins=3),
        sample_of(X, EDGES, density=True),
        sample_of(X, EDGES, Y),
        sample_of(X, None, Y, bins=3, range=(-1.3, 1.3), density=True),
        sample_of(X, EDGES, Z),
        sample_of(INTEGERS, None, INTEGERS, bins=4),
        sample_of(X.astype(FLOAT32), bins=2, density=True),
        sample_of(X[:0], EDGES),
    ],
    "histogramdd": [
        sample_of(POINTS, bins=(2, 3)),
        sample_of(POINTS, Y.ravel(), EDGES, bins=(None, 2), density=True),
        sample_of(POINTS, None, EDGES, OTHERS, bins=(None, None)),
        sample_of(BLOCK.reshape(-1, 3), bins=(2, 2, 1), ranges=(None, (-0.83, 0.93), None)),
    ],
}

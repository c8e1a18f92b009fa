"""Samples of the operations in ``letir.ops.reductions.histograms``."""

import numpy as np

from letir.testing.samples.sample import BLOCK, FLOAT32, INTEGERS, X, Y, Z, of, rough

EDGES, OTHERS = np.array([-1.0, 0.1, 0.55, 2.5]), np.array([-1.5, 0.35, 1.2])
POINTS = np.stack([X.ravel(), Y.ravel()], 1)
SAMPLES = {
    "bin_count": [of(X, rule="auto"), of(X[0], rule="sqrt", range=(0.0, 1.0))],
    "histogram_bin_edges": [
        of(X, bins=3),
        of(X, bins=2, range=(0.0, 1.5)),
        of(X.astype(FLOAT32), bins=4),
        of(INTEGERS, bins=2),
        of(X[:0], bins=2),
        rough(np.ones(2), bins=1),
    ],
    "histogram": [
        of(X, bins=3),
        of(X, EDGES, density=True),
        of(X, EDGES, Y),
        of(X, None, Y, bins=3, range=(-1.3, 1.3), density=True),
        of(X, EDGES, Z),
        of(INTEGERS, None, INTEGERS, bins=4),
        of(X.astype(FLOAT32), bins=2, density=True),
        of(X[:0], EDGES),
    ],
    "histogramdd": [
        of(POINTS, bins=(2, 3)),
        of(POINTS, Y.ravel(), EDGES, bins=(None, 2), density=True),
        of(POINTS, None, EDGES, OTHERS, bins=(None, None)),
        of(BLOCK.reshape(-1, 3), bins=(2, 2, 1), ranges=(None, (-0.83, 0.93), None)),
    ],
}

"""Samples of the operations in ``letir.ops.indexing.sorting``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    EMPTY,
    INTEGERS,
    SPECIAL,
    X,
    Y,
    Z,
    narrowed,
    nonsmooth,
    sample_of,
)

TIES = np.array([[2.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
SORTED = [
    sample_of(X),
    sample_of(X, axis=0),
    sample_of(X, axis=None),
    sample_of(BLOCK * 3 % 1, axis=-2, kind="stable"),
    nonsmooth(TIES, kind="stable"),
    sample_of(EMPTY),
    sample_of(Z),
    sample_of(INTEGERS, axis=None),
    nonsmooth(SPECIAL, kind="stable"),
    *narrowed(sample_of(X)),
]
PARTS = [  # all positions are given, as NumPy may order the others in any way
    sample_of(X, kth=1),
    sample_of(X, kth=(0, -1), axis=0),
    sample_of(X, kth=(1, 2, 3, 4), axis=None),
    sample_of(BLOCK * 3 % 1, kth=1, axis=-2),
    nonsmooth(TIES, kth=1),
    sample_of(EMPTY, kth=1),
    sample_of(Z, kth=1),
    sample_of(INTEGERS, kth=0),
    *narrowed(sample_of(X, kth=1)),
]
NUMBER = sample_of(np.float64(0.5))

SAMPLES = {
    "sort": SORTED,
    "argsort": [*SORTED, NUMBER],
    "partition": PARTS,
    "argpartition": PARTS,
    "lexsort": [
        sample_of(X[0]),
        sample_of(TIES, Y),
        sample_of(TIES, INTEGERS, axis=0),
        sample_of(np.round(BLOCK), BLOCK, axis=-2),
        sample_of(EMPTY, EMPTY),
    ],
}

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
    narrow,
    of,
    rough,
)

TIES = np.array([[2.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
SORTED = [
    of(X),
    of(X, axis=0),
    of(X, axis=None),
    of(BLOCK * 3 % 1, axis=-2, kind="stable"),
    rough(TIES, kind="stable"),
    of(EMPTY),
    of(Z),
    of(INTEGERS, axis=None),
    rough(SPECIAL, kind="stable"),
    *narrow(of(X)),
]
PARTS = [  # all positions are given, as NumPy may order the others in any way
    of(X, kth=1),
    of(X, kth=(0, -1), axis=0),
    of(X, kth=(1, 2, 3, 4), axis=None),
    of(BLOCK * 3 % 1, kth=1, axis=-2),
    rough(TIES, kth=1),
    of(EMPTY, kth=1),
    of(Z, kth=1),
    of(INTEGERS, kth=0),
    *narrow(of(X, kth=1)),
]
NUMBER = of(np.float64(0.5))

SAMPLES = {
    "sort": SORTED,
    "argsort": [*SORTED, NUMBER],
    "partition": PARTS,
    "argpartition": PARTS,
    "lexsort": [
        of(X[0]),
        of(TIES, Y),
        of(TIES, INTEGERS, axis=0),
        of(np.round(BLOCK), BLOCK, axis=-2),
        of(EMPTY, EMPTY),
    ],
}

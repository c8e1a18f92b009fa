"""Samples of the operations in ``letir.ops.indexing.index_encoding``."""

import numpy as np

from letir.testing.samples.sample import BOOLEANS, COLUMNS, INTEGERS, ROWS, of

BYTES = np.array([[1, 2, 200], [7, 255, 0]], np.uint8)
SAMPLES = {
    "unravel_index": [
        of(INTEGERS, shape=(2, 4)),
        of(INTEGERS, shape=(3, 1, 4), order="F"),
        of(np.int64(5), shape=(6,)),
        of(3, shape=(2, 2)),
        of(INTEGERS[:0], shape=(2, 2)),
    ],
    "ravel_multi_index": [
        of(ROWS, ROWS + 1, dims=(2, 3)),
        of(INTEGERS, ROWS, dims=(3, 2), mode="wrap"),
        of(INTEGERS, COLUMNS, dims=(3, 2), mode=("clip", "wrap"), order="F"),
        of(np.int64(1), 2, dims=(2, 3)),
    ],
    "packbits": [
        of(BOOLEANS),
        of(BOOLEANS, axis=1),
        of(BYTES, axis=-2, bitorder="little"),
        of(BOOLEANS[:0]),
    ],
    "unpackbits": [
        of(BYTES),
        of(BYTES, axis=1, count=10),
        of(BYTES, axis=-2, count=-3, bitorder="little"),
        of(BYTES[:0]),
    ],
}

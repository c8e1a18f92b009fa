"""Samples of the operations in ``letir.ops.indexing.index_encoding``."""

import numpy as np

from letir.testing.samples.sample import BOOLEANS, COLUMNS, INTEGERS, ROWS, sample_of

BYTES = np.array([[1, 2, 200], [7, 255, 0]], np.uint8)
SAMPLES = {
    "unravel_index": [
        sample_of(INTEGERS, shape=(2, 4)),
        sample_of(INTEGERS, shape=(3, 1, 4), order="F"),
        sample_of(np.int64(5), shape=(6,)),
        sample_of(3, shape=(2, 2)),
        sample_of(INTEGERS[:0], shape=(2, 2)),
    ],
    "ravel_multi_index": [
        sample_of(ROWS, ROWS + 1, dims=(2, 3)),
        sample_of(INTEGERS, ROWS, dims=(3, 2), mode="wrap"),
        sample_of(INTEGERS, COLUMNS, dims=(3, 2), mode=("clip", "wrap"), order="F"),
        sample_of(np.int64(1), 2, dims=(2, 3)),
    ],
    "packbits": [
        sample_of(BOOLEANS),
        sample_of(BOOLEANS, axis=1),
        sample_of(BYTES, axis=-2, bitorder="little"),
        sample_of(BOOLEANS[:0]),
    ],
    "unpackbits": [
        sample_of(BYTES),
        sample_of(BYTES, axis=1, count=10),
        sample_of(BYTES, axis=-2, count=-3, bitorder="little"),
        sample_of(BYTES[:0]),
    ],
}

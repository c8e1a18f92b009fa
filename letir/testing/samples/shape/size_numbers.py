"""Samples of the operations in ``letir.ops.shape.size_numbers``."""

import numpy as np

from letir.testing.samples.sample import EMPTY, INTEGERS, Sample, X, Z, exempt, sample_of


def index(x: np.ndarray, item: object) -> Sample:
    """An index as a sized operation, here without a symbolic size."""
    none = np.zeros(0, np.int64)
    return sample_of(x, none, operation="index", names=("item",), settings=(item,))


SAMPLES = {
    "length": [
        sample_of(X, axis=0),
        sample_of(X, axis=1),
        sample_of(EMPTY, axis=0),
        sample_of(INTEGERS, axis=0),
        sample_of(Z, axis=0),
    ],
    "sized": exempt(
        [index(X, slice(1, None)), index(X, (slice(None), 0)), index(Z, slice(None, 1))],
        batch_of_last="its last operand has sizes",
    ),
}

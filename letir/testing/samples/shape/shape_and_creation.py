"""Samples of the operations in ``letir.ops.shape.shape_and_creation``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    BOOL,
    BOOLEANS,
    COMPLEX128,
    EMPTY,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    INTEGERS,
    SPECIAL,
    Sample,
    X,
    Z,
    exempt,
    narrowed,
    sample_of,
)


def constants() -> list[Sample]:
    """Frozen arrays, and scalars, as attributes."""
    small = [X, EMPTY, Z, BOOLEANS, SPECIAL, INTEGERS.astype(np.uint8), np.array(0.5)]
    arrays = [array.copy() for array in small]
    for array in arrays:
        array.flags.writeable = False
    return [sample_of(value=v) for v in (*arrays, np.float64(0.5), np.float32(-0.0), np.int64(3))]


SAMPLES = {
    "size": [
        sample_of(X),
        sample_of(X[0, 0]),
        sample_of(0.5),
        sample_of(EMPTY),
        sample_of(INTEGERS),
        sample_of(Z),
    ],
    "sum_to_size": exempt(
        [
            *[sample_of(X, shape=s) for s in ((2, 3), (3,), (2, 1), (1, 3), (1, 1), (1,), ())],
            sample_of(EMPTY, shape=(3,)),
            sample_of(EMPTY, shape=(1, 3)),
            sample_of(BLOCK, shape=(3, 1)),
            sample_of(Z, shape=(3,)),
            sample_of(INTEGERS, shape=()),
            sample_of(X, np.array([3]), shape=None),
            sample_of(X, np.array([2, 1]), shape=(2, 1)),
            *narrowed(sample_of(X, shape=(3,))),
        ],
        batch_of_last="its last operand is a shape",
    ),
    "broadcast_to": exempt(
        [
            sample_of(X[0], shape=(2, 3)),
            sample_of(X[:, :1], shape=(2, 2, 3)),
            sample_of(X[0, 0], shape=(2,)),
            sample_of(X[0, 0], shape=()),
            sample_of(0.5, shape=(3,)),
            sample_of(X, shape=(2, 3)),
            sample_of(X[:1], shape=(0, 3)),
            sample_of(Z[0], shape=(2, 3)),
            sample_of(INTEGERS[0], shape=(1, 3)),
            sample_of(X[0], np.array([2, 3]), shape=None),
            *narrowed(sample_of(X[0], shape=(2, 3))),
        ],
        batch_of_last="its last operand is a shape",
        named_rows="its shape is an attribute, or an operand of its own",
    ),
    "zeros": exempt(
        [
            sample_of(shape=(2, 3), dtype=FLOAT64),
            sample_of(shape=(), dtype=FLOAT32),
            sample_of(np.array([2]), shape=None, dtype=INT64),
        ],
        batch_rule="its only operand is a shape",
    ),
    "ones": exempt(
        [
            sample_of(shape=(2, 0), dtype=COMPLEX128),
            sample_of(shape=(), dtype=BOOL),
            sample_of(np.array([2]), shape=(2,), dtype=FLOAT16),
        ],
        batch_rule="its only operand is a shape",
    ),
    "full": exempt(
        [
            sample_of(0.5, shape=(2, 3), dtype=FLOAT64),
            sample_of(X[0], shape=(2, 3), dtype=FLOAT64),
            sample_of(2, shape=(), dtype=FLOAT32),
            sample_of(X[0, 0], shape=(3,), dtype=FLOAT32),
            sample_of(np.int64(2), shape=(0,), dtype=INT64),
            sample_of(0.5, shape=(2,), dtype=COMPLEX128),
            sample_of(X[0, 0], np.array([2, 2]), shape=None, dtype=FLOAT64),
        ],
        batch_of_last="its last operand is a shape",
        named_rows="its operand is one number",
    ),
    "constant": exempt(constants(), batch_rule="its only operand is a shape"),
}

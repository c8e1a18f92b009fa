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
    narrow,
    of,
)


def constants() -> list[Sample]:
    """Frozen arrays, and scalars, as attributes."""
    small = [X, EMPTY, Z, BOOLEANS, SPECIAL, INTEGERS.astype(np.uint8), np.array(0.5)]
    arrays = [array.copy() for array in small]
    for array in arrays:
        array.flags.writeable = False
    return [of(value=v) for v in (*arrays, np.float64(0.5), np.float32(-0.0), np.int64(3))]


SAMPLES = {
    "size": [of(X), of(X[0, 0]), of(0.5), of(EMPTY), of(INTEGERS), of(Z)],
    "sum_to_size": exempt(
        [
            *[of(X, shape=s) for s in ((2, 3), (3,), (2, 1), (1, 3), (1, 1), (1,), ())],
            of(EMPTY, shape=(3,)),
            of(EMPTY, shape=(1, 3)),
            of(BLOCK, shape=(3, 1)),
            of(Z, shape=(3,)),
            of(INTEGERS, shape=()),
            of(X, np.array([3]), shape=None),
            of(X, np.array([2, 1]), shape=(2, 1)),
            *narrow(of(X, shape=(3,))),
        ],
        batch_of_last="its last operand is a shape",
    ),
    "broadcast_to": exempt(
        [
            of(X[0], shape=(2, 3)),
            of(X[:, :1], shape=(2, 2, 3)),
            of(X[0, 0], shape=(2,)),
            of(X[0, 0], shape=()),
            of(0.5, shape=(3,)),
            of(X, shape=(2, 3)),
            of(X[:1], shape=(0, 3)),
            of(Z[0], shape=(2, 3)),
            of(INTEGERS[0], shape=(1, 3)),
            of(X[0], np.array([2, 3]), shape=None),
            *narrow(of(X[0], shape=(2, 3))),
        ],
        batch_of_last="its last operand is a shape",
        named_rows="its shape is an attribute, or an operand of its own",
    ),
    "zeros": exempt(
        [
            of(shape=(2, 3), dtype=FLOAT64),
            of(shape=(), dtype=FLOAT32),
            of(np.array([2]), shape=None, dtype=INT64),
        ],
        batch_rule="its only operand is a shape",
    ),
    "ones": exempt(
        [
            of(shape=(2, 0), dtype=COMPLEX128),
            of(shape=(), dtype=BOOL),
            of(np.array([2]), shape=(2,), dtype=FLOAT16),
        ],
        batch_rule="its only operand is a shape",
    ),
    "full": exempt(
        [
            of(0.5, shape=(2, 3), dtype=FLOAT64),
            of(X[0], shape=(2, 3), dtype=FLOAT64),
            of(2, shape=(), dtype=FLOAT32),
            of(X[0, 0], shape=(3,), dtype=FLOAT32),
            of(np.int64(2), shape=(0,), dtype=INT64),
            of(0.5, shape=(2,), dtype=COMPLEX128),
            of(X[0, 0], np.array([2, 2]), shape=None, dtype=FLOAT64),
        ],
        batch_of_last="its last operand is a shape",
        named_rows="its operand is one number",
    ),
    "constant": exempt(constants(), batch_rule="its only operand is a shape"),
}

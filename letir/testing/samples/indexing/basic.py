"""Samples of the operations in ``letir.ops.indexing.basic``."""

import math

import numpy as np

from letir.ast.attrs import Here
from letir.testing.samples.sample import (
    BLOCK,
    BOOLEANS,
    COLUMNS,
    EMPTY,
    FLOAT32,
    INTEGERS,
    ROWS,
    Sample,
    W,
    X,
    Y,
    Z,
    exempt,
    narrowed,
    sample_of,
)

HERE = Here()
PARTS: list[tuple] = [  # (shape of the part of an array of shape (2, 3), item, index arrays)
    ((3,), 0, ()),
    ((), (1, -1), ()),
    ((1, 2), (slice(0, 1), slice(None, None, 2)), ()),
    ((2, 3), (slice(None, None, -1),), ()),
    ((0, 3), slice(2, None), ()),
    ((2, 1), (..., None, 1), ()),
    ((3, 3), HERE, (ROWS,)),
    ((3,), (HERE, HERE), (ROWS, COLUMNS)),
    ((2, 3), (slice(None), HERE), (COLUMNS.astype(np.int32),)),
    ((3, 1), (HERE, None, 1), (ROWS,)),
    ((2, 2, 3), HERE, (np.array([[0, 1], [1, 1]]),)),
    ((3,), HERE, (np.int64(1),)),
    ((3,), Here(3), (BOOLEANS,)),
    ((1, 3), Here(1), (np.array([False, True]),)),
    ((2, 2), (slice(None), Here(2)), (np.array([True, False, True]),)),
    ((0, 3), HERE, (np.zeros(0, int),)),
]


def written() -> list[Sample]:
    """Samples with every kind of index and of written value."""
    new = np.linspace(0.3, 1.7, 12)
    return [
        *[
            sample_of(X, new[: math.prod(shape)].reshape(shape), *arrays, item=item)
            for shape, item, arrays in PARTS
        ],
        sample_of(X, 0.5, item=(0, slice(None))),
        sample_of(X, 2, ROWS[:2], COLUMNS[:2], item=(HERE, HERE)),
        sample_of(X, new[:1], item=1),
        sample_of(X, INTEGERS, item=...),
        sample_of(INTEGERS, np.array([8, 9, 10]), item=0),
        sample_of(Z, W[0], item=0),
        sample_of(Z, X[0], item=1),
        sample_of(np.array(0.5), 1.5, item=()),
        sample_of(EMPTY, X[0], item=slice(None)),
        sample_of(X.astype(FLOAT32), Y[0], item=0),
        *narrowed(sample_of(X, Y[0], item=1), sample_of(X, 0.5, ROWS, item=HERE)),
    ]


def assembled() -> list[Sample]:
    """Samples with every kind of index, and indices that overlap or repeat."""
    new = np.linspace(0.3, 1.7, 12)
    rows = {"items": (slice(1), slice(1, None)), "shape": (2, 3)}
    return [
        *[
            sample_of(new[: math.prod(shape)].reshape(shape), *arrays, items=(item,), shape=(2, 3))
            for shape, item, arrays in PARTS
        ],
        sample_of(X[:1], Y[1:], **rows),
        sample_of(X, Y[0], new[:3], ROWS, COLUMNS, items=(..., 1, (HERE, HERE)), shape=(2, 3)),
        sample_of(X[0], Y[0], X[1], items=(slice(3), slice(1, 4), slice(3)), shape=(5,)),
        sample_of(INTEGERS, X, items=((), ...), shape=(2, 3)),
        sample_of(Z[:1], W[1:], **rows),
        sample_of(X[:1].astype(FLOAT32), Y[1:], **rows),
        sample_of(X[0, 0], items=((),), shape=()),
        *narrowed(sample_of(X[:1], Y[1:], **rows)),
    ]


SAMPLES = {
    "assemble": exempt(
        assembled(), batch_of_named_size="a mapped mask needs the number of examples"
    ),
    "index": exempt(
        [
            *[sample_of(X, *arrays, item=item) for _, item, arrays in PARTS],
            sample_of(X[0, 0], item=()),
            sample_of(X[0], item=None),
            sample_of(np.array(0.5), item=...),
            sample_of(Z, item=0),
            sample_of(INTEGERS, ROWS, item=HERE),
            sample_of(BLOCK, ROWS, COLUMNS, item=(HERE, slice(None), HERE)),
            sample_of(BLOCK, ROWS, COLUMNS, item=(slice(1), HERE, HERE)),
            sample_of(BLOCK, COLUMNS, item=(0, slice(None), HERE)),
            sample_of(BLOCK, ROWS, COLUMNS, item=(slice(None), HERE, ..., HERE)),
            *narrowed(sample_of(X, item=(0, 1)), sample_of(X, ROWS, item=HERE)),
        ],
        batch_of_named_size="a mapped mask needs the number of examples",
    ),
    "index_set": exempt(
        [
            *written(),
            sample_of(BOOLEANS, True, item=0),
            sample_of(X, Y[:1], item=0),
            sample_of(X, Y[None, :1], ROWS[:1], item=HERE),
        ],
        batch_of_named_size="a mapped mask needs the number of examples",
    ),
    "index_add": exempt(
        written(), batch_of_named_size="a mapped mask needs the number of examples"
    ),
}

"""Samples of the operations in ``letir.ops.indexing.ufunc_at``."""

import numpy as np

from letir.ast.attrs import Here
from letir.testing.samples.sample import (
    BOOLEANS,
    COLUMNS,
    EMPTY,
    FLOAT32,
    INTEGERS,
    POSITIVE,
    ROWS,
    X,
    Y,
    Z,
    exempt,
    narrowed,
    nonsmooth,
    sample_of,
)

HERE = Here()
WITH_ZERO = np.array([0.0, 1.5, 0.5])
SAMPLES = {
    "ufunc_at": exempt(
        [
            sample_of(X, Y[0], ROWS, COLUMNS, ufunc="mul", item=(HERE, HERE)),
            sample_of(X, np.array([[2.0], [1.5], [0.5]]), ROWS, ufunc="mul", item=HERE),
            nonsmooth(X, WITH_ZERO, ROWS, ufunc="mul", item=(HERE, 1)),
            sample_of(Z, Z[0] + 1, ufunc="mul", item=(1, slice(None))),
            sample_of(X, POSITIVE[0], COLUMNS, ufunc="div", item=(slice(None), HERE)),
            sample_of(X, 2.0, ROWS, ufunc="div", item=(HERE, 0)),
            sample_of(X, Y[0], ROWS, COLUMNS, ufunc="maximum", item=(HERE, HERE)),
            nonsmooth(X, X[0], ROWS, ufunc="fmin", item=HERE),
            sample_of(X.astype(FLOAT32), Y[0], ROWS, ufunc="add", item=HERE),
            sample_of(INTEGERS, 2, BOOLEANS, ufunc="sub", item=Here(3)),
            sample_of(INTEGERS, ROWS, ufunc="neg", item=HERE),
            sample_of(EMPTY, 2.0, ufunc="mul", item=...),
            *narrowed(sample_of(X, Y[0], ROWS, ufunc="mul", item=HERE)),
        ],
        batch_of_named_size="a mapped mask needs the number of examples",
    )
}

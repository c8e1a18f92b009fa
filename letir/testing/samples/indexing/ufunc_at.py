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
    narrow,
    of,
    rough,
)

HERE = Here()
WITH_ZERO = np.array([0.0, 1.5, 0.5])
SAMPLES = {
    "ufunc_at": exempt(
        [
            of(X, Y[0], ROWS, COLUMNS, ufunc="mul", item=(HERE, HERE)),
            of(X, np.array([[2.0], [1.5], [0.5]]), ROWS, ufunc="mul", item=HERE),
            rough(X, WITH_ZERO, ROWS, ufunc="mul", item=(HERE, 1)),
            of(Z, Z[0] + 1, ufunc="mul", item=(1, slice(None))),
            of(X, POSITIVE[0], COLUMNS, ufunc="div", item=(slice(None), HERE)),
            of(X, 2.0, ROWS, ufunc="div", item=(HERE, 0)),
            of(X, Y[0], ROWS, COLUMNS, ufunc="maximum", item=(HERE, HERE)),
            rough(X, X[0], ROWS, ufunc="fmin", item=HERE),
            of(X.astype(FLOAT32), Y[0], ROWS, ufunc="add", item=HERE),
            of(INTEGERS, 2, BOOLEANS, ufunc="sub", item=Here(3)),
            of(INTEGERS, ROWS, ufunc="neg", item=HERE),
            of(EMPTY, 2.0, ufunc="mul", item=...),
            *narrow(of(X, Y[0], ROWS, ufunc="mul", item=HERE)),
        ],
        batch_of_named_size="a mapped mask needs the number of examples",
    )
}

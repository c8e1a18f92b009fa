"""Samples of the operations in ``letir.ops.control_flow.scattered_updates``."""

import numpy as np

from letir.ast.types import ArrayType
from letir.ops.elementwise.ufuncs import maximum
from letir.testing.samples.control_flow.map_reduce import (
    AFFINE,
    FACTORS,
    MANY,
    SCALED,
    TIMES,
    binary,
)
from letir.testing.samples.sample import EMPTY, INTEGERS, X, Y, Z, sample_of

ROW, COUNTS = ArrayType(float, (3,)), ArrayType(int, (3,))
PLACES = np.array([2, 0, 2, -1, 9, 0, 2])
FEW = np.array([1, 3])
NONE = np.zeros(0, int)
DEST = np.array([0.3, -0.2, 0.9])
ROWS = np.linspace(-0.9, 1.0, 9).reshape(3, 3)
ADD = {"body": binary(lambda a, b: a + b, ROW), "n_xs": 1, "batched": True}
MAX = {**ADD, "body": binary(maximum, ArrayType(float))}
LOW = np.float64(-np.inf)
SAMPLES = {
    "scatter": [
        sample_of(DEST, PLACES, MANY, n_xs=1),
        sample_of(ROWS, FEW, X, n_xs=1),
        sample_of(ROWS, NONE, EMPTY, n_xs=1),
        sample_of(X, Y, FEW, Y, X, n_xs=2),
        sample_of(Z, FEW, Z * 2, n_xs=1),
        sample_of(INTEGERS, FEW, INTEGERS, n_xs=1),
    ],
    "reduce_by_index": [
        sample_of(ROWS, np.zeros(3), FEW, X, **ADD),
        sample_of(ROWS, np.zeros(3), NONE, EMPTY, **ADD),
        sample_of(DEST, LOW, PLACES, MANY, **MAX),
        sample_of(DEST, np.float64(1.0), PLACES[:4], FACTORS, **TIMES),
        sample_of(DEST, np.float64(1.0), PLACES[:4], FACTORS, **{**TIMES, "batched": False}),
        sample_of(
            *(DEST, np.float64(1 / 1.2), PLACES, MANY, np.float64(1.2)),
            **{"body": SCALED, "n_xs": 1, "batched": True},
        ),
        sample_of(
            *(DEST, DEST + 1, np.float64(1.0), np.float64(0.0), PLACES, MANY, MANY + 0.3),
            **AFFINE,
        ),
        sample_of(
            *(INTEGERS, np.zeros(3, int), FEW, INTEGERS),
            **{**ADD, "body": binary(lambda a, b: a + b, COUNTS)},
        ),
    ],
}

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
from letir.testing.samples.sample import EMPTY, INTEGERS, X, Y, Z, of

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
        of(DEST, PLACES, MANY, n_xs=1),
        of(ROWS, FEW, X, n_xs=1),
        of(ROWS, NONE, EMPTY, n_xs=1),
        of(X, Y, FEW, Y, X, n_xs=2),
        of(Z, FEW, Z * 2, n_xs=1),
        of(INTEGERS, FEW, INTEGERS, n_xs=1),
    ],
    "reduce_by_index": [
        of(ROWS, np.zeros(3), FEW, X, **ADD),
        of(ROWS, np.zeros(3), NONE, EMPTY, **ADD),
        of(DEST, LOW, PLACES, MANY, **MAX),
        of(DEST, np.float64(1.0), PLACES[:4], FACTORS, **TIMES),
        of(DEST, np.float64(1.0), PLACES[:4], FACTORS, **{**TIMES, "batched": False}),
        of(
            *(DEST, np.float64(1 / 1.2), PLACES, MANY, np.float64(1.2)),
            **{"body": SCALED, "n_xs": 1, "batched": True},
        ),
        of(
            *(DEST, DEST + 1, np.float64(1.0), np.float64(0.0), PLACES, MANY, MANY + 0.3),
            **AFFINE,
        ),
        of(
            *(INTEGERS, np.zeros(3, int), FEW, INTEGERS),
            **{**ADD, "body": binary(lambda a, b: a + b, COUNTS)},
        ),
    ],
}

"""Samples of the operations in ``letir.ops.reductions.ufunc_methods``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    BOOLEANS,
    EMPTY,
    FLOAT32,
    FLOAT64,
    INTEGERS,
    POSITIVE,
    TALL,
    X,
    Y,
    Z,
    narrow,
    of,
    rough,
)

SAMPLES = {
    "ufunc_accumulate": [
        of(X, ufunc="sub", axis=1),
        of(POSITIVE[:, :2], ufunc="div"),
        of(TALL, ufunc="logaddexp", axis=-1),
        of(X, ufunc="maximum", axis=1),
        of(Z, ufunc="mul", axis=1),
        of(INTEGERS, ufunc="bitwise_or"),
        of(INTEGERS, ufunc="div", axis=1, dtype=FLOAT32),
        of(EMPTY, ufunc="hypot"),
        rough(POSITIVE, ufunc="floor_divide", axis=1),
        *narrow(of(X, ufunc="sub")),
    ],
    "ufunc_reduce": [
        of(X, ufunc="sub", axis=1),
        of(BLOCK, ufunc="logaddexp", axis=(0, -1), keepdims=True),
        of(X, ufunc="hypot", axis=None, initial=0.5),
        of(X, BOOLEANS, ufunc="logaddexp2", axis=1),
        of(POSITIVE, BOOLEANS, ufunc="div", axis=0, initial=2.0),
        of(POSITIVE[:, :2] + 1j, ufunc="power", axis=1),
        of(X, Y > 0, ufunc="fmax", axis=1, initial=-9.0),
        rough(np.array([[-np.inf, -np.inf], [-np.inf, 1.0]]), ufunc="logaddexp", axis=1),
        of(INTEGERS, ufunc="bitwise_and", axis=None),
        of(EMPTY, ufunc="logaddexp"),
        of(INTEGERS, ufunc="arctan2", dtype=FLOAT64),
        *narrow(of(X, ufunc="hypot")),
    ],
    "ufunc_reduceat": [
        of(TALL, ufunc="add", indices=(0, 2), axis=1),
        of(TALL, ufunc="mul", indices=(0, 2, 1)),
        of(X, ufunc="logaddexp", indices=(1, 0), axis=-1),
        of(Z, ufunc="sub", indices=(0,), axis=1),
        of(X, ufunc="add", indices=()),
        of(INTEGERS, ufunc="maximum", indices=(0, 1)),
        *narrow(of(X, ufunc="add", indices=(0, 2), axis=1)),
    ],
}

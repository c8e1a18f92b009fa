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
    narrowed,
    nonsmooth,
    sample_of,
)

SAMPLES = {
    "ufunc_accumulate": [
        sample_of(X, ufunc="sub", axis=1),
        sample_of(POSITIVE[:, :2], ufunc="div"),
        sample_of(TALL, ufunc="logaddexp", axis=-1),
        sample_of(X, ufunc="maximum", axis=1),
        sample_of(Z, ufunc="mul", axis=1),
        sample_of(INTEGERS, ufunc="bitwise_or"),
        sample_of(INTEGERS, ufunc="div", axis=1, dtype=FLOAT32),
        sample_of(EMPTY, ufunc="hypot"),
        nonsmooth(POSITIVE, ufunc="floor_divide", axis=1),
        *narrowed(sample_of(X, ufunc="sub")),
    ],
    "ufunc_reduce": [
        sample_of(X, ufunc="sub", axis=1),
        sample_of(BLOCK, ufunc="logaddexp", axis=(0, -1), keepdims=True),
        sample_of(X, ufunc="hypot", axis=None, initial=0.5),
        sample_of(X, BOOLEANS, ufunc="logaddexp2", axis=1),
        sample_of(POSITIVE, BOOLEANS, ufunc="div", axis=0, initial=2.0),
        sample_of(POSITIVE[:, :2] + 1j, ufunc="power", axis=1),
        sample_of(X, Y > 0, ufunc="fmax", axis=1, initial=-9.0),
        nonsmooth(np.array([[-np.inf, -np.inf], [-np.inf, 1.0]]), ufunc="logaddexp", axis=1),
        sample_of(INTEGERS, ufunc="bitwise_and", axis=None),
        sample_of(EMPTY, ufunc="logaddexp"),
        sample_of(INTEGERS, ufunc="arctan2", dtype=FLOAT64),
        *narrowed(sample_of(X, ufunc="hypot")),
    ],
    "ufunc_reduceat": [
        sample_of(TALL, ufunc="add", indices=(0, 2), axis=1),
        sample_of(TALL, ufunc="mul", indices=(0, 2, 1)),
        sample_of(X, ufunc="logaddexp", indices=(1, 0), axis=-1),
        sample_of(Z, ufunc="sub", indices=(0,), axis=1),
        sample_of(X, ufunc="add", indices=()),
        sample_of(INTEGERS, ufunc="maximum", indices=(0, 1)),
        *narrowed(sample_of(X, ufunc="add", indices=(0, 2), axis=1)),
    ],
}

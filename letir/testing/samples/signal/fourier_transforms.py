"""Samples of the operations in ``letir.ops.signal.fourier_transforms``."""

from letir.testing.samples.sample import (
    BLOCK,
    COMPLEX64,
    EMPTY,
    FLOAT16,
    FLOAT32,
    INTEGERS,
    TALL,
    X,
    Z,
    exempt,
    of,
)

WHOLE = [
    of(Z),
    of(TALL, axes=(-1,)),
    of(BLOCK, axes=(2, 0), norm="ortho"),
    of(Z, s=(3, 2), axes=(0, 1), norm="forward"),
    of(X, s=(4, -1), axes=(-1, 0)),
    of(EMPTY, axes=(1,)),
    of(INTEGERS, axes=(0,)),
    of(X[0].astype(FLOAT32)),
    of(Z.astype(COMPLEX64), norm="ortho"),
]
TO_HALF = [
    of(X),
    of(TALL, axes=(-1,), norm="ortho"),
    of(BLOCK, axes=(2, 0), norm="forward"),
    of(X, s=(3, 5), axes=(0, 1)),
    of(TALL, s=(3,), axes=(1,)),
    of(EMPTY, axes=(1,)),
    of(INTEGERS, axes=(0,)),
    of(X[0].astype(FLOAT32)),
    of(X[0].astype(FLOAT16)),
]
FROM_HALF = [
    of(Z),
    of(Z, axes=(-1,), norm="ortho"),
    of(BLOCK + 1j, axes=(1, 2), norm="forward"),
    of(Z, s=(3, 3), axes=(0, 1)),
    of(Z, s=(7,), axes=(1,)),
    of(X, axes=(1,)),
    of(Z[:, :1], s=(1,), axes=(1,)),
    of(EMPTY + 0j, axes=(1,)),
    of(Z.astype(COMPLEX64), axes=(1,)),
]
SAMPLES = {
    "fftn": exempt(WHOLE, complex_step="its results are complex, or made real"),
    "ifftn": exempt(WHOLE, complex_step="its results are complex, or made real"),
    "rfftn": TO_HALF,
    "irfftn": exempt(FROM_HALF, complex_step="its results are complex, or made real"),
}

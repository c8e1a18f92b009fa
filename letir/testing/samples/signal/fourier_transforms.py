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
    sample_of,
)

WHOLE = [
    sample_of(Z),
    sample_of(TALL, axes=(-1,)),
    sample_of(BLOCK, axes=(2, 0), norm="ortho"),
    sample_of(Z, s=(3, 2), axes=(0, 1), norm="forward"),
    sample_of(X, s=(4, -1), axes=(-1, 0)),
    sample_of(EMPTY, axes=(1,)),
    sample_of(INTEGERS, axes=(0,)),
    sample_of(X[0].astype(FLOAT32)),
    sample_of(Z.astype(COMPLEX64), norm="ortho"),
]
TO_HALF = [
    sample_of(X),
    sample_of(TALL, axes=(-1,), norm="ortho"),
    sample_of(BLOCK, axes=(2, 0), norm="forward"),
    sample_of(X, s=(3, 5), axes=(0, 1)),
    sample_of(TALL, s=(3,), axes=(1,)),
    sample_of(EMPTY, axes=(1,)),
    sample_of(INTEGERS, axes=(0,)),
    sample_of(X[0].astype(FLOAT32)),
    sample_of(X[0].astype(FLOAT16)),
]
FROM_HALF = [
    sample_of(Z),
    sample_of(Z, axes=(-1,), norm="ortho"),
    sample_of(BLOCK + 1j, axes=(1, 2), norm="forward"),
    sample_of(Z, s=(3, 3), axes=(0, 1)),
    sample_of(Z, s=(7,), axes=(1,)),
    sample_of(X, axes=(1,)),
    sample_of(Z[:, :1], s=(1,), axes=(1,)),
    sample_of(EMPTY + 0j, axes=(1,)),
    sample_of(Z.astype(COMPLEX64), axes=(1,)),
]
SAMPLES = {
    "fftn": exempt(WHOLE, complex_step="its results are complex, or made real"),
    "ifftn": exempt(WHOLE, complex_step="its results are complex, or made real"),
    "rfftn": TO_HALF,
    "irfftn": exempt(FROM_HALF, complex_step="its results are complex, or made real"),
}

"""Samples of linear algebra: equations, decompositions, eigenvalues, norms, least squares.

NumPy reads one triangle of a Hermitian matrix, derivatives cover both: such samples are
``nonsmooth``, and tests/ops/linalg/test_linalg.py compares those derivatives with differences.
"""

import math
from typing import Any

import numpy as np

from letir.testing.samples.sample import (
    COMPLEX64,
    FLOAT32,
    INTEGERS,
    Sample,
    exempt,
    nonsmooth,
    sample_of,
)

A = np.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.7], [-0.2, 0.4, -1.8]])
# two complex eigenvalues
TURN = np.array([[0.45, -1.2, 0.35], [0.9, 0.25, -0.15], [0.25, 0.6, 1.1]])
C = A + 1j * TURN
STACK = np.stack([A, TURN])
B = np.array([[1.0, -0.4], [0.3, 2.0], [-0.7, 0.6]])
TALL = np.array([[1.0, -0.4, 0.2], [0.3, 2.0, -0.8], [-0.7, 0.6, 1.4], [0.5, 0.1, -0.3]])
Z = B + 1j * TALL[:3, 1:]
POSITIVE = A @ A.T + np.eye(3)
HERMITIAN = C @ C.conj().T + np.eye(3)
NARROW, NONE = A.astype(FLOAT32), np.zeros((2, 0, 0))
LINE = np.array([0.5, -1.25, 2.0])
WHOLE = np.array([[3, 1, 0], [2, 0, 1], [1, 2, 4]])
WIDE_TENSOR = (2 * np.eye(6) + 0.3 * np.sin(np.arange(36.0)).reshape(6, 6)).reshape(2, 3, 6)
EXACT = {"hermitian": False, "relative": False}


def svds(x: Any, **attrs: Any) -> Sample:
    """A sample of svd, thin unless said otherwise."""
    return sample_of(x, **{"full_matrices": False, "compute_uv": True, "hermitian": False, **attrs})


SYSTEMS = {
    "solve": [
        sample_of(A, B),
        sample_of(STACK, LINE),
        sample_of(C, B),
        sample_of(STACK[:, None], np.stack([B, B * 2, B - 1])),
        sample_of(NARROW, B.astype(FLOAT32)),
        sample_of(WHOLE, LINE),
        sample_of(NONE, NONE),
    ],
    "inv": [sample_of(STACK), sample_of(C), sample_of(NARROW), sample_of(WHOLE), sample_of(NONE)],
    "cofactors": exempt(
        [
            sample_of(STACK),
            nonsmooth(np.outer(LINE, LINE)),
            nonsmooth(np.eye(3)),
            sample_of(NARROW),
            sample_of(NONE),
        ],
        complex_step="it is not analytic",
        program_second_derivative="matrices of rank one have none",
    ),
    "det": [
        sample_of(STACK),
        sample_of(C),
        sample_of(np.zeros((2, 2))),
        sample_of(np.eye(3)),
        sample_of(NARROW),
        sample_of(WHOLE),
        sample_of(NONE),
    ],
    "slogdet": exempt(
        [sample_of(STACK), sample_of(C), sample_of(NARROW), sample_of(WHOLE), sample_of(NONE)],
        complex_step="it is not analytic",
    ),
    "matrix_power": [
        sample_of(STACK, n=3),
        sample_of(C, n=-2),
        sample_of(A, n=0),
        sample_of(NARROW, n=1),
        sample_of(WHOLE, n=5),
    ],
    "tensorsolve": exempt(
        [
            sample_of(WIDE_TENSOR, B.T, axes=None),
            sample_of(WIDE_TENSOR.transpose(2, 0, 1) + 0.5j, B.T, axes=(0,)),
        ],
        named_rows="its axes belong to one matrix, not to a batch",
    ),
    "tensorinv": exempt(
        [sample_of(STACK[0].reshape(3, 1, 3), ind=2), sample_of(C.reshape(3, 3, 1), ind=1)],
        named_rows="its axes belong to one matrix, not to a batch",
    ),
}
DECOMPOSED = {
    "cholesky": exempt(
        [
            nonsmooth(POSITIVE, upper=False),
            sample_of(np.tril(POSITIVE), upper=False),
            nonsmooth(np.stack([POSITIVE, POSITIVE + 1]), upper=True),
            nonsmooth(HERMITIAN, upper=False),
            nonsmooth(HERMITIAN, upper=True),
            nonsmooth(POSITIVE.astype(FLOAT32), upper=False),
            nonsmooth(NONE, upper=False),
        ],
        complex_step="the other triangle is taken to be the conjugate",
        program_difference="its derivative is along Hermitian matrices",
    ),
    "qr": exempt(
        [
            sample_of(np.stack([TALL, TALL * 2 + 1]), mode="reduced"),
            sample_of(TALL.T, mode="reduced"),
            sample_of(C, mode="complete"),
            nonsmooth(TALL, mode="complete"),
            sample_of(Z, mode="r"),
            sample_of(NARROW, mode="reduced"),
            sample_of(NONE, mode="reduced"),
        ],
        complex_step="it is not analytic",
        program_derivative="matrices of repeated numbers have none",
    ),
    "svd": exempt(
        [
            svds(STACK),
            svds(TALL.T),
            svds(TALL, full_matrices=True, compute_uv=False),
            nonsmooth(TALL, full_matrices=True, compute_uv=True, hermitian=False),
            nonsmooth(C, full_matrices=False, compute_uv=True, hermitian=False),
            nonsmooth(POSITIVE, full_matrices=True, compute_uv=True, hermitian=True),
            svds(NARROW),
            svds(NONE),
        ],
        complex_step="it is not analytic",
        program_derivative="matrices of repeated numbers have none",
    ),
    "svdvals": exempt(
        [sample_of(STACK), sample_of(C), sample_of(TALL), sample_of(NARROW), sample_of(WHOLE)],
        complex_step="it is not analytic",
        program_second_derivative="matrices of equal singular values have none",
    ),
    "pinv": exempt(
        [
            sample_of(np.stack([TALL, TALL * 2 + 1]), **EXACT),
            sample_of(Z.T, **EXACT),
            sample_of(STACK, np.array([0.1, 0.01]), **EXACT),
            sample_of(A, 1e-9, **EXACT),
            nonsmooth(HERMITIAN, hermitian=True, relative=False),
            sample_of(NARROW, hermitian=False, relative=True),
        ],
        complex_step="it is not analytic",
        program_difference="its derivative is along Hermitian matrices",
    ),
    "matrix_rank": [
        sample_of(STACK, **EXACT),
        sample_of(TALL, 0.5, **EXACT),
        sample_of(STACK, np.array([0.5, 0.9]), hermitian=False, relative=True),
        sample_of(POSITIVE, hermitian=True, relative=False),
        sample_of(WHOLE, **EXACT),
    ],
}
EIGENVALUES = [
    sample_of(TURN, real=False),
    sample_of(np.stack([A, 2 * A.T]), real=True),
    sample_of(C, real=False),
    sample_of(NARROW, real=True),
]
EIGEN = {
    "eigh": exempt(
        [
            nonsmooth(np.stack([POSITIVE, POSITIVE * 2 - 1]), UPLO="L"),
            nonsmooth(HERMITIAN, UPLO="U"),
            nonsmooth(POSITIVE.astype(FLOAT32), UPLO="L"),
            nonsmooth(np.eye(3), UPLO="L"),
            nonsmooth(NONE, UPLO="L"),
        ],
        program_derivative="matrices of repeated numbers have none",
    ),
    "generalized_eigh": exempt(
        [
            nonsmooth(POSITIVE, lower=True),
            nonsmooth(POSITIVE, np.eye(3) + 0.1 * POSITIVE, lower=False),
            nonsmooth(HERMITIAN, HERMITIAN * 0.5 + np.eye(3), lower=True),
            nonsmooth(
                POSITIVE.astype(FLOAT32), np.diag(np.arange(1, 4, dtype=FLOAT32)), lower=True
            ),
        ],
        program_derivative="matrices of repeated numbers have none",
        named_rows="it takes one matrix, or one pair",
    ),
    "eigvalsh": exempt(
        [
            nonsmooth(np.stack([POSITIVE, POSITIVE * 2 - 1]), UPLO="L"),
            nonsmooth(HERMITIAN, UPLO="U"),
            nonsmooth(POSITIVE.astype(FLOAT32), UPLO="L"),
        ],
        program_difference="its derivative is along Hermitian matrices",
    ),
    "eig": exempt(
        EIGENVALUES,
        complex_step="it is not analytic",
        program_derivative="matrices of repeated numbers have none",
    ),
    "eigvals": exempt(
        EIGENVALUES,
        complex_step="it is not analytic",
        program_derivative="matrices of repeated numbers have none",
    ),
}


def vectors(x: Any, ord: Any, axis: Any = -1, keepdims: Any = False) -> Sample:
    """A sample of a norm with these attributes."""
    return sample_of(x, ord=ord, axis=axis, keepdims=keepdims)


NORMS = {
    "norm": exempt(
        [
            vectors(A, None, None),
            vectors(C, 2, 0, True),
            vectors(STACK, "nuc", (0, -1)),
            vectors(STACK, -2, (2, 1), True),
            vectors(C, math.inf, None),
            vectors(LINE, 3, None),
            vectors(NARROW, 1, (0, 1)),
            vectors(INTEGERS, -1, None),
            nonsmooth(np.zeros(3), ord=None, axis=None, keepdims=False),
            vectors(LINE[0], None, None),
        ],
        complex_step="it is not analytic",
    ),
    "vector_norm": exempt(
        [
            vectors(A, 2, None, True),
            vectors(C, 1.5, (0, 1)),
            vectors(STACK, -math.inf, (0, 2)),
            vectors(A, 0),
            vectors(STACK, -1.5, 0),
            vectors(C.astype(COMPLEX64), 2),
            nonsmooth(np.zeros((2, 3)), ord=0.5, axis=-1, keepdims=False),
        ],
        complex_step="it is not analytic",
    ),
    "matrix_norm": exempt(
        [
            sample_of(STACK, ord="fro", keepdims=True),
            sample_of(C, ord=2, keepdims=False),
            sample_of(A, ord="nuc", keepdims=True),
            sample_of(STACK, ord=1, keepdims=False),
            sample_of(C, ord=-math.inf, keepdims=False),
            sample_of(NARROW, ord="fro", keepdims=False),
        ],
        complex_step="it is not analytic",
    ),
    "condition_number": exempt(
        [
            sample_of(STACK, p=None),
            sample_of(C, p=-2),
            sample_of(A, p="fro"),
            sample_of(STACK, p=1),
            sample_of(NARROW, p=2),
        ],
        complex_step="it is not analytic",
    ),
}
LEAST_SQUARES = {
    "lstsq": exempt(
        [
            sample_of(TALL, TALL[:, :2] ** 2, rcond=None, full_rank=True),
            sample_of(TALL + 0.5j * TALL**2, LINE[[0, 1, 2, 0]], rcond=1e-9, full_rank=True),
            sample_of(TALL.T, LINE, rcond=None, full_rank=True),
            sample_of(
                TALL.astype(FLOAT32), LINE[[0, 1, 2, 0]].astype(FLOAT32), rcond=None, full_rank=True
            ),
            nonsmooth(np.outer(TALL[:, 0], LINE), TALL[:, 1], rcond=1e-6, full_rank=False),
        ],
        complex_step="it is not analytic",
        program_second_derivative="matrices of equal singular values have none",
        named_rows="the results depend on which size is the smaller one",
    ),
}
SAMPLES = {**SYSTEMS, **DECOMPOSED, **EIGEN, **NORMS, **LEAST_SQUARES}

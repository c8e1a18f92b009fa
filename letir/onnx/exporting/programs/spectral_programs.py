"""Eigenvalues of symmetric matrices and singular values, by the rotations of Jacobi.

The signs of eigenvectors and singular vectors are arbitrary, and may differ from LAPACK's.
"""

import itertools
from typing import Any

import numpy as np

from letir.onnx.exporting.node_graph import (
    computes_op,
    refuses_operations,
    warns_of_operations,
)
from letir.onnx.exporting.programs.matrix_programs import orthogonal_triangular, unit_like
from letir.ops.indexing.take import take
from letir.tracing.control_flow.while_and_fori import fori_loop

refuses_operations(
    "ONNX has no eigenvalues of general matrices, which are complex", "eig", "eigvals"
)
warns_of_operations(
    "the signs of the vectors may differ from NumPy's, which are LAPACK's", "eigh", "svd"
)
_SWEEPS = 12  # over all pairs of columns; 6 to 8 suffice, as convergence is quadratic


def _rotation_coefficients(app, aqq, apq):
    """(cosine, sine) of the rotation that removes the off-diagonal element."""
    none = apq == 0
    tau = (aqq - app) / np.where(none, 1, 2 * apq)
    tangent = np.copysign(1 / (np.abs(tau) + np.sqrt(1 + tau * tau)), tau)
    tangent = np.where(none, 0, tangent)
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    return cosine, tangent * cosine


def _rotate_columns(w, p, q, cosine, sine):
    """``w`` with the columns p and q rotated."""
    columns = np.arange(w.shape[-1])
    first, second = w[..., p], w[..., q]
    c, s = cosine[..., None], sine[..., None]
    new_first, new_second = (c * first - s * second)[..., None], (s * first + c * second)[..., None]
    return np.where(columns == p, new_first, np.where(columns == q, new_second, w))


def _over_pairs(n: int, step, state):
    """The state after ``step(p, q, state)`` for all pairs of columns, several times."""
    pairs = np.array(list(itertools.combinations(range(n), 2)), np.int64).reshape(-1, 2)
    if not len(pairs):
        return state
    first, second = pairs.T.copy()

    def turn(k, state):
        place = k % len(pairs)
        return step(take(first, place), take(second, place), state)

    return fori_loop(0, _SWEEPS * len(pairs), turn, state)


def _sort_pairs(values, vectors, is_falling: bool):
    """Values and the columns of vectors in order."""
    order = np.argsort(-values if is_falling else values, axis=-1)
    return np.take_along_axis(values, order, axis=-1), np.take_along_axis(
        vectors, order[..., None, :], axis=-1
    )


@computes_op("eigh")
def eigh(x: Any, *, UPLO: str = "L") -> Any:
    """(eigenvalues, eigenvectors) of symmetric matrices."""
    x = x if x.dtype.kind == "f" else x.astype(float)
    n = x.shape[-1]
    x = np.swapaxes(x, -1, -2) if UPLO == "U" else x
    lower = np.tril(x, -1)
    a = np.tril(x) + np.swapaxes(lower, -1, -2)

    def step(p, q, state):
        a, v = state
        cosine, sine = _rotation_coefficients(a[..., p, p], a[..., q, q], a[..., p, q])
        a = _rotate_columns(a, p, q, cosine, sine)
        a = np.swapaxes(_rotate_columns(np.swapaxes(a, -1, -2), p, q, cosine, sine), -1, -2)
        return a, _rotate_columns(v, p, q, cosine, sine)

    a, v = _over_pairs(n, step, (a, unit_like(x, n)))
    return _sort_pairs(np.diagonal(a, axis1=-2, axis2=-1) * 1, v, False)


@computes_op("eigvalsh")
def _eigvalsh(x, *, UPLO="L"):
    return eigh(x, UPLO=UPLO)[0]


def _hestenes_svd(x, is_full: bool):
    """(u, s, v) of matrices with at least as many rows as columns (Hestenes, 1958)."""
    n = x.shape[-1]

    def step(p, q, state):
        w, v = state
        first, second = w[..., p], w[..., q]
        dots = [(a * b).sum(axis=-1) for a, b in ((first, first), (second, second))]
        cosine, sine = _rotation_coefficients(*dots, (first * second).sum(axis=-1))
        return _rotate_columns(w, p, q, cosine, sine), _rotate_columns(v, p, q, cosine, sine)

    w, v = _over_pairs(n, step, (x * 1, unit_like(x, n)))
    s = np.sqrt((w * w).sum(axis=-2))
    order = np.argsort(-s, axis=-1)
    s = np.take_along_axis(s, order, axis=-1)
    w, v = (np.take_along_axis(y, order[..., None, :], axis=-1) for y in (w, v))
    # orthonormal columns also where a singular value is 0
    u, r = orthogonal_triangular(w, mode="complete" if is_full else "reduced")
    sign = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1, 1)
    sign = np.concatenate([sign, np.ones_like(u[..., 0, n:], sign.dtype)], axis=-1)
    return u * sign[..., None, :].astype(u.dtype), s, v


@computes_op("svd")
def svd(
    x: Any, *, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """(u, s, vh), the singular value decomposition."""
    del hermitian
    x = x if x.dtype.kind == "f" else x.astype(float)
    if not compute_uv:
        return svd(x, full_matrices=False)[1]
    if x.shape[-2] >= x.shape[-1]:
        u, s, v = _hestenes_svd(x, full_matrices)
        return u, s, np.swapaxes(v, -1, -2)
    v, s, u = _hestenes_svd(np.swapaxes(x, -1, -2), full_matrices)
    return u, s, np.swapaxes(v, -1, -2)


@computes_op("svdvals")
def _svdvals(x):
    return svd(x, full_matrices=False)[1]


@computes_op("pinv")
def _pinv(x, cutoff=None, *, hermitian=False, relative=False):
    u, s, vh = svd(x, full_matrices=False)
    if cutoff is None:
        size = max(x.shape[-2:]) * np.finfo(s.dtype).eps if relative else 1e-15
        cutoff = np.asarray(size, s.dtype)
    large = s > cutoff[..., None] * np.max(s, axis=-1, keepdims=True)
    inverse = np.where(large, 1 / np.where(large, s, 1), 0)
    return np.swapaxes(vh, -1, -2) @ (inverse[..., None] * np.swapaxes(u, -1, -2))

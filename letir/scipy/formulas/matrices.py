"""Formulas of ``scipy.linalg``: matrix functions, equations, special matrices."""

from typing import Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.scipy.formulas.formula_table import formula, no_derivative
from letir.scipy.linear_systems import (
    cosm,
    sinm,
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
)
from letir.tracing.operands import traced_or_array

# ---- functions of matrices ----


@formula("linalg.tanm")
def tanm(A: Any) -> Any:
    """The tangent of a matrix."""
    return np.linalg.solve(cosm(A), sinm(A))


def _hyperbolic_pair(A: Any) -> tuple:
    up, down = PRIMITIVES["expm"](A), PRIMITIVES["expm"](-A)
    return (up + down) / 2, (up - down) / 2


@formula("linalg.coshm")
def coshm(A: Any) -> Any:
    """The hyperbolic cosine of a matrix."""
    return _hyperbolic_pair(A)[0]


@formula("linalg.sinhm")
def sinhm(A: Any) -> Any:
    """The hyperbolic sine of a matrix."""
    return _hyperbolic_pair(A)[1]


@formula("linalg.tanhm")
def tanhm(A: Any) -> Any:
    """The hyperbolic tangent of a matrix."""
    return np.linalg.solve(*_hyperbolic_pair(A))


@formula("linalg.expm_frechet")
def expm_frechet(
    A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True
) -> tuple:
    """(exp(A), the derivative of exp at A along E)."""
    n = A.shape[-1]
    dtype = np.result_type(A.dtype, E.dtype)
    A, E = A.astype(dtype), E.astype(dtype)
    block = np.concatenate(
        [
            np.concatenate([A, E], axis=1),
            np.concatenate([np.zeros((n, n), dtype), A], axis=1),
        ]
    )
    result = PRIMITIVES["expm"](block)
    pair = result[:n, :n], result[:n, n:]
    return pair if compute_expm else pair[1:]


# ---- equations ----


@formula("linalg.solve_continuous_are")
def solve_continuous_are(
    a: Any,
    b: Any,
    q: Any,
    r: Any,
    e: Any = None,
    s: Any = None,
    balanced: bool = True,
    *,
    results: tuple,
) -> Any:
    """The solution of A^H X + X A - X B R^-1 B^H X + Q = 0, by one step of Newton's method."""
    if e is not None or s is not None:
        no_derivative("e and s have none")
    (x,) = results
    gain = np.linalg.solve(r, np.conj(b.T) @ x)
    closed = a - b @ gain
    rest = np.conj(a.T) @ x + x @ a - x @ b @ gain + q
    return x + solve_continuous_lyapunov(np.conj(closed.T), -_hermitian(rest))


@formula("linalg.solve_discrete_are")
def solve_discrete_are(
    a: Any,
    b: Any,
    q: Any,
    r: Any,
    e: Any = None,
    s: Any = None,
    balanced: bool = True,
    *,
    results: tuple,
) -> Any:
    """The solution of A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0."""
    if e is not None or s is not None:
        no_derivative("e and s have none")
    (x,) = results
    gain = np.linalg.solve(r + np.conj(b.T) @ x @ b, np.conj(b.T) @ x @ a)
    closed = a - b @ gain
    rest = np.conj(a.T) @ x @ a - x - np.conj(a.T) @ x @ b @ gain + q
    return x + solve_discrete_lyapunov(np.conj(closed.T), _hermitian(rest))


def _hermitian(x: Any) -> Any:
    return (x + np.conj(x.T)) / 2


# ---- special matrices, products ----


@formula("linalg.khatri_rao")
def khatri_rao(a: Any, b: Any) -> Any:
    """The products of columns."""
    product = a[..., :, None, :] * b[..., None, :, :]
    return product.reshape((*product.shape[:-3], -1, product.shape[-1]))


@formula("linalg.companion")
def companion(a: Any) -> Any:
    """The companion matrix of a polynomial."""
    first = -a[..., 1:] / a[..., :1]
    n = first.shape[-1]
    below = np.broadcast_to(np.eye(n - 1, n), (*first.shape[:-1], n - 1, n))
    return np.concatenate([first[..., None, :], below], axis=-2)


@formula("linalg.leslie")
def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of fecundities and survival rates."""
    if f.ndim != 1:
        no_derivative("pass vectors")
    return np.concatenate([f[None, :], np.concatenate([np.diag(s), np.zeros((len(s), 1))], axis=1)])


@formula("linalg.convolution_matrix")
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix of the convolution with a vector."""
    if a.ndim != 1:
        no_derivative("pass a vector")
    chosen: Any = mode
    return np.stack([np.convolve(a, row, chosen) for row in np.eye(n)]).T


@formula("linalg.matmul_toeplitz")
def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = True, workers: Any = None) -> Any:
    """The product of a Toeplitz matrix and ``x``."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, np.conj(c_or_cr))
    c, r = [np.ravel(traced_or_array(part)) for part in (c, r)]
    every = np.concatenate([c[::-1], r[1:]])
    rows, columns = np.arange(c.shape[0])[:, None], np.arange(r.shape[0])
    return every[c.shape[0] - 1 - rows + columns] @ x


@formula("linalg.diagsvd")
def diagsvd(s: Any, M: int, N: int) -> Any:
    """The diagonal matrix of singular values."""
    n = s.shape[0]
    return np.pad(np.diag(s), ((0, M - n), (0, N - n)))


@formula("linalg.orthogonal_procrustes")
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple:
    """(the orthogonal matrix that maps A nearest to B, the sum of singular values)."""
    u, s, vh = np.linalg.svd(np.conj(A.T) @ B, full_matrices=False)
    return u @ vh, s.sum()

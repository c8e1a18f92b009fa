"""Formulas of ``scipy.linalg``: factorisations, least squares and eigenvalues.

Some formulas correct the factors that SciPy has found: with A0, the product of the factors as a
constant, a factor F of A is F + dF(A - A0). The correction is zero, and its derivative is the
derivative of the factor.
"""

from typing import Any

import numpy as np

from letir.ast.attrs import Here
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType
from letir.scipy.formulas.formula_table import formula, no_derivative

# ---- triangular factors ----


def _pivots(a: Any) -> Any:
    """The order p of rows with a[p] = L U, as integers."""
    k = min(a.shape[-2:])
    lead = a.shape[:-2]
    double = np.result_type(a.dtype, np.float32)
    index = np.dtype(np.intp if a.shape[-2:] == (1, 1) else np.int32)  # as SciPy has them
    types = (
        ArrayType(index, a.shape[:-1]),
        ArrayType(double, (*lead, a.shape[-2], k)),
        ArrayType(double, (*lead, k, a.shape[-1])),
    )
    places, _, _ = PRIMITIVES["scipy_call"](
        PRIMITIVES["stop_gradient"](a),
        function="linalg.lu",
        arguments=("tuple", ("tuple", Here()), ("dict", ("p_indices", True))),
        results=("tuple", *types),
    )
    return np.argsort(places, axis=-1)


def _corrected_factors(rows: Any, low: Any, up: Any) -> tuple:
    """(L, U) of the matrix ``rows``, from the factors that SciPy has found."""
    k = low.shape[-1]
    rest = rows - low @ up
    low1, up1 = low[..., :k, :], up[..., :, :k]
    inner = np.linalg.solve(low1, rest[..., :k, :k])
    inner = np.swapaxes(
        np.linalg.solve(np.swapaxes(up1, -1, -2), np.swapaxes(inner, -1, -2)), -1, -2
    )
    new_low, new_up = low1 + low1 @ np.tril(inner, -1), up1 + np.triu(inner) @ up1
    if low.shape[-2] > k:
        change = rest[..., k:, :] - low[..., k:, :] @ (new_up - up1)
        below = np.linalg.solve(np.swapaxes(up1, -1, -2), np.swapaxes(change, -1, -2))
        new_low = np.concatenate([new_low, low[..., k:, :] + np.swapaxes(below, -1, -2)], axis=-2)
    if up.shape[-1] > k:
        change = rest[..., :, k:] - (new_low - low) @ up[..., :, k:]
        new_up = np.concatenate([new_up, up[..., :, k:] + np.linalg.solve(low1, change)], axis=-1)
    return new_low, new_up


@formula("linalg.lu")
def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
    *,
    results: tuple,
) -> tuple:
    """The factors of a matrix with pivoting, whose order of rows is locally constant."""
    if 0 in a.shape:
        return results
    order = _pivots(a)
    rows = np.take_along_axis(a, order[..., None], axis=-2)
    low, up = results[-2:]
    inverse_order = np.argsort(order, axis=-1)[..., None]
    if permute_l:
        low = np.take_along_axis(low, order[..., None], axis=-2)
    low, up = _corrected_factors(rows, low, up)
    if permute_l:
        return np.take_along_axis(low, inverse_order, axis=-2), up
    return results[0], low, up


@formula("linalg.lu_factor")
def lu_factor(
    a: Any, overwrite_a: bool = False, check_finite: bool = True, *, results: tuple
) -> tuple:
    """(both factors in one matrix, pivots)."""
    packed, k = results[0], min(a.shape[-2:])
    if 0 in a.shape:
        return packed, None
    rows = np.take_along_axis(a, _pivots(a)[..., None], axis=-2)
    low = np.tril(packed[..., :k], -1) + np.eye(a.shape[-2], k)
    low, up = _corrected_factors(rows, low, np.triu(packed[..., :k, :]))
    below = np.tril(low, -1)
    if a.shape[-2] >= a.shape[-1]:
        padded = np.concatenate([up, np.zeros_like(below[..., k:, :])], axis=-2)
        return below + padded, None
    wide = np.concatenate([below, np.zeros_like(up[..., k:])], axis=-1)
    return wide + up, None


@formula("linalg.lu_solve")
def lu_solve(
    lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The solution of a linear system, given the factors of its matrix and the pivots."""
    factors, pivots = lu_and_piv
    if factors.ndim != 2:
        no_derivative("the factors are a stack of matrices")
    n = factors.shape[0]
    numbers = PRIMITIVES["scipy_call"](
        np.eye(n),
        pivots,
        np.arange(float(n)),
        function="linalg.lu_solve",
        arguments=("tuple", ("tuple", ("tuple", Here(), Here()), Here()), ("dict",)),
        results=ArrayType(float, (n,)),
    )
    order = (numbers[0] if isinstance(numbers, tuple) else numbers).astype(np.intp)
    low, up = np.tril(factors, -1) + np.eye(n), np.triu(factors)
    if trans == 0:
        return np.linalg.solve(up, np.linalg.solve(low, b[order]))
    low, up = (low.T, up.T) if trans == 1 else (np.conj(low.T), np.conj(up.T))
    return np.linalg.solve(low, np.linalg.solve(up, b))[np.argsort(order)]


# ---- least squares ----


@formula("linalg.lstsq")
def lstsq(
    a: Any,
    b: Any,
    cond: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: Any = None,
    *,
    results: tuple,
) -> tuple:
    """(solution, sums of squared residuals, rank, singular values)."""
    least = float(np.finfo(results[0].dtype).eps) if cond is None else cond
    x = np.linalg.pinv(a, rcond=least) @ b
    squares = results[1]  # empty, unless the rank is full and there are more rows than columns
    if 0 not in squares.shape:
        rest = b - a @ x
        squares = np.sum((np.conj(rest) * rest).real, axis=0)
    singular = [np.linalg.svd(a, compute_uv=False)] if len(results) == 4 else []
    return x, squares, None, *singular


# ---- orthogonal factors, eigenvalues ----


@formula("linalg.qr")
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
    *,
    results: tuple,
) -> tuple:
    """QR factors, also of a matrix with the columns in the order of pivoting."""
    if mode == "raw":
        no_derivative("LAPACK's Householder vectors are for LAPACK only")
    matrix = a[..., results[-1]] if pivoting else a
    names = {"full": "complete", "economic": "reduced", "r": "complete"}
    q, r = np.linalg.qr(matrix, names[mode])  # type: ignore[call-overload]
    k = min(a.shape[-2:])
    found = results[1] if mode != "r" else results[0]
    # SciPy's signs: those of the diagonal of R
    signs = np.sign(_diagonal(found, k).real * _diagonal(r, k).real)
    signs = PRIMITIVES["stop_gradient"](np.where(signs == 0, 1.0, signs))
    full = np.concatenate([signs, np.ones(r.shape[-2] - k)]) if r.shape[-2] > k else signs
    r = full[:, None] * r
    extra = (None,) if pivoting else ()
    if mode == "r":
        return (r, *extra)
    return (q * full, r, *extra)


def _diagonal(x: Any, k: int) -> Any:
    return np.diagonal(x)[:k]


@formula("linalg.rq")
def rq(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    check_finite: bool = True,
    *,
    results: tuple,
) -> tuple:
    """RQ factors of a square matrix, by the QR factors of its rows in reverse order."""
    if a.shape[0] != a.shape[1] or mode == "r":
        no_derivative("the matrix is not square, or mode is 'r'")
    q, r = np.linalg.qr(np.conj(a[::-1].T))
    low, turned = np.conj(r.T)[::-1, ::-1], np.conj(q.T)[::-1]
    signs = np.sign(np.diagonal(results[0]).real * np.diagonal(low).real)
    signs = PRIMITIVES["stop_gradient"](signs)
    return low * signs, signs[:, None] * turned


@formula("linalg.schur")
def schur(
    a: Any,
    output: str = "real",
    lwork: Any = None,
    overwrite_a: bool = False,
    sort: Any = None,
    check_finite: bool = True,
    *,
    results: tuple,
) -> tuple:
    """(T, Z) of a real matrix with real, distinct eigenvalues: T is triangular, Z is real."""
    if a.dtype.kind == "c" or output in ("complex", "c") or len(results) != 2:
        no_derivative("complex Schur vectors are defined up to their phases only")
    t, z = results
    t = PRIMITIVES["triangular_schur_form"](t)
    rest = z.T @ a @ z - t
    n = a.shape[0]
    rows, columns = np.tril_indices(n, -1)
    # X is skew, Z' = Z X, and T' = rest + T X - X T is zero below the diagonal, where it depends
    # on the lower triangle of X only
    operator = np.kron(t, np.eye(n)) - np.kron(np.eye(n), t.T)
    places = rows * n + columns
    below = np.linalg.solve(operator[places][:, places], -rest[rows, columns])
    flat = np.zeros((n * n, len(places)))
    flat[places, np.arange(len(places))] = 1.0
    low = (flat @ below).reshape(n, n)
    turn = low - low.T
    return np.triu(t + rest + t @ turn - turn @ t), z + z @ turn


@formula("linalg.eigh_tridiagonal", "linalg.eigvalsh_tridiagonal")
def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
    *,
    results: tuple,
) -> Any:
    """The eigenvalues of a symmetric tridiagonal matrix, and its eigenvectors."""
    if select != "a":
        no_derivative("only some eigenvalues are selected")
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    return _with_signs_of_results(matrix, results)


def _with_signs_of_results(matrix: Any, results: tuple) -> Any:
    """The eigenvalues, and the eigenvectors with the signs that SciPy has found."""
    if len(results) == 1:
        return np.linalg.eigvalsh(matrix)
    w, v = np.linalg.eigh(matrix)
    signs = PRIMITIVES["stop_gradient"](np.sign(np.sum(v * results[1], axis=0)))
    return w, v * signs


@formula("linalg.eig_banded", "linalg.eigvals_banded")
def eig_banded(
    a_band: Any,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: Any = None,
    max_ev: int = 0,
    check_finite: bool = True,
    *,
    results: tuple,
) -> Any:
    """The eigenvalues of a real symmetric banded matrix, and its eigenvectors."""
    if select != "a" or a_band.dtype.kind == "c":
        no_derivative("only some eigenvalues are selected, or the matrix is complex")
    reach, n = a_band.shape[0] - 1, a_band.shape[1]
    matrix: Any = np.diag(a_band[0 if lower else reach])
    for k in range(1, reach + 1):
        line = a_band[k, : n - k] if lower else a_band[reach - k, k:]
        matrix = matrix + np.diag(line, k) + np.diag(line, -k)
    return _with_signs_of_results(matrix, results)


@formula("linalg.cholesky_banded")
def cholesky_banded(
    ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Any:
    """The Cholesky factor of a banded matrix."""
    reach, n = ab.shape[0] - 1, ab.shape[1]
    matrix: Any = np.diag(ab[0 if lower else reach])
    for k in range(1, reach + 1):
        line = ab[k, : n - k] if lower else ab[reach - k, k:]
        far = np.conj(line)
        matrix = matrix + np.diag(far if lower else line, k) + np.diag(line if lower else far, -k)
    factor = np.linalg.cholesky(matrix, upper=not lower)
    lines = [np.diagonal(factor, -k if lower else k) for k in range(reach + 1)]
    # the elements that are not in the matrix stay as they are
    if lower:
        return np.stack([np.concatenate([x, ab[k, n - k :]]) for k, x in enumerate(lines)])
    rows = [np.concatenate([ab[reach - k, :k], x]) for k, x in enumerate(lines)]
    return np.stack(rows[::-1])

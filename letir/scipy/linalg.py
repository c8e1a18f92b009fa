"""``scipy.linalg`` for traced values: matrix functions, solvers, special matrices."""

from typing import Any

import numpy as np

from letir.ast import entry_point
from letir.ast.primitive import PRIMITIVES
from letir.scipy.linear_systems import (
    circulant as circulant,
)
from letir.scipy.linear_systems import (
    cosm as cosm,
)
from letir.scipy.linear_systems import (
    eigh as eigh,
)
from letir.scipy.linear_systems import (
    eigvalsh as eigvalsh,
)
from letir.scipy.linear_systems import finite_array, matrix_of, vector_of
from letir.scipy.linear_systems import (
    hankel as hankel,
)
from letir.scipy.linear_systems import (
    norm as norm,
)
from letir.scipy.linear_systems import (
    polar as polar,
)
from letir.scipy.linear_systems import (
    sinm as sinm,
)
from letir.scipy.linear_systems import (
    solve_banded as solve_banded,
)
from letir.scipy.linear_systems import (
    solve_continuous_lyapunov as solve_continuous_lyapunov,
)
from letir.scipy.linear_systems import (
    solve_discrete_lyapunov as solve_discrete_lyapunov,
)
from letir.scipy.linear_systems import (
    solve_lyapunov as solve_lyapunov,
)
from letir.scipy.linear_systems import (
    solve_sylvester as solve_sylvester,
)
from letir.scipy.linear_systems import (
    solveh_banded as solveh_banded,
)
from letir.scipy.linear_systems import (
    svd as svd,
)
from letir.scipy.linear_systems import (
    svdvals as svdvals,
)
from letir.scipy.namespace import drop_in, fallback_getattr, find_in_scipy, is_traced, refusal_error
from letir.tracing.operands import traced_or_array

__getattr__ = fallback_getattr("linalg")
_TRANSPOSED = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


@drop_in("linalg")
def expm(A: Any) -> Any:
    """The exponential of square matrices."""
    return PRIMITIVES["expm"](traced_or_array(A))


@drop_in("linalg")
def sqrtm(A: Any) -> Any:
    """The principal square root of square matrices.

    The root of a real matrix may be complex, which a guard records; it is real in abstract traces.
    """
    return PRIMITIVES["sqrtm"](_complex_if_negative(traced_or_array(A)))


@drop_in("linalg")
def logm(A: Any) -> Any:
    """The principal logarithm of square matrices, equal to SciPy's up to rounding.

    As for ``sqrtm``, a guard records whether the logarithm of a real matrix is complex.
    """
    a = traced_or_array(A)
    if a.dtype in (np.float32, np.complex64):
        reason = "whether SciPy's result is complex depends on rounding: pass A.astype(float)"
        raise refusal_error("logm", f"of {a.dtype}, {reason}")
    return PRIMITIVES["logm"](_complex_if_negative(a))


def _complex_if_negative(a: Any) -> Any:
    """A matrix, as a complex one if its square root, and so its logarithm, is complex."""
    value = a.concrete_value() if a.dtype.kind == "f" else None
    if isinstance(value, np.ndarray) and find_in_scipy("linalg", "sqrtm")(value).dtype.kind == "c":
        values = np.linalg.eigvals(a.astype(complex))
        if ((values.imag == 0) & (values.real < 0)).any():  # such eigenvalues make the root complex
            a = a.astype(complex)
    return a


@drop_in("linalg")
def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The solution of a triangular system; ``trans`` as in SciPy."""
    a, b, trans = traced_or_array(a), traced_or_array(b), _TRANSPOSED[trans]
    a = np.conj(a) if trans == 2 else a
    form = {"lower": bool(lower), "unit_diagonal": bool(unit_diagonal)}
    form["check_finite"] = bool(check_finite)
    return PRIMITIVES["solve_triangular"](a, b, transposed=trans > 0, **form)


@drop_in("linalg")
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The Cholesky factor, upper triangular unless ``lower``."""
    return np.linalg.cholesky(finite_array(a, check_finite), upper=not lower)


@drop_in("linalg")
def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple:
    """(factor, lower) for ``cho_solve``; the other triangle is 0, in SciPy it is arbitrary."""
    return np.linalg.cholesky(finite_array(a, check_finite), upper=not lower), lower


@entry_point
def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The solution of a linear system, given the Cholesky factor of its matrix."""
    factor, lower = c_and_lower
    if not is_traced(factor, b):
        return find_in_scipy("linalg", "cho_solve")(c_and_lower, b, overwrite_b, check_finite)
    first, second = (0, 2) if lower else (2, 0)
    half = solve_triangular(factor, b, first, lower, check_finite=check_finite)
    return solve_triangular(factor, half, second, lower, check_finite=False)


@entry_point
def lu_solve(
    lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The solution of a linear system, given the LU factors of its matrix, which is known."""
    (factors, pivots), original = lu_and_piv, find_in_scipy("linalg", "lu_solve")
    if not is_traced(factors, pivots, b):
        return original(lu_and_piv, b, trans, overwrite_b, check_finite)
    if is_traced(pivots):
        raise refusal_error("lu_solve", "the pivots depend on values; use numpy.linalg.solve")
    order = np.arange(len(pivots))
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    b = finite_array(b, check_finite)
    unit = {"lower": True, "unit_diagonal": True}
    if trans == 0:
        half = solve_triangular(factors, b[order], **unit)
        return solve_triangular(factors, half)
    half = solve_triangular(factors, b, trans=trans)
    return solve_triangular(factors, half, trans=trans, **unit)[np.argsort(order)]


@drop_in("linalg")
def block_diag(*arrs: Any) -> Any:
    """A block diagonal matrix of the given matrices."""
    blocks = [matrix_of("block_diag", a) for a in arrs]
    blocks = [a if a.ndim == 2 else a.reshape((1, -1)) for a in blocks]
    width, at, rows = sum(a.shape[1] for a in blocks), 0, []
    for block in blocks:
        after = width - at - block.shape[1]
        rows.append(np.pad(block, ((0, 0), (at, after))))
        at += block.shape[1]
    return np.concatenate(rows)


@drop_in("linalg")
def toeplitz(c: Any, r: Any = None) -> Any:
    """The Toeplitz matrix with first column ``c`` and first row ``r``, by default conj(c)."""
    c = vector_of("toeplitz", c)
    r = c.conjugate() if r is None else vector_of("toeplitz", r)
    every = np.concatenate([c[::-1], r[1:]])
    rows, columns = np.arange(c.shape[0])[:, None], np.arange(r.shape[0])
    return every[c.shape[0] - 1 - rows + columns]


@drop_in("linalg")
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """The solution of a Toeplitz system, by its dense matrix, in double precision."""
    column_and_row = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    matrix, b = finite_array(toeplitz(*column_and_row), check_finite), finite_array(b, check_finite)
    return np.linalg.solve(matrix.astype(np.result_type(matrix.dtype, float)), b)


@drop_in("linalg")
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    *,
    assume_a: str | None = None,
    transposed: bool = False,
    check_finite: bool = True,
    **options: Any,
) -> Any:
    """The solution of a linear system; ``assume_a`` says which elements of the matrix are read."""
    a, b = finite_array(a, check_finite), finite_array(b, check_finite)
    a = _assumed_matrix(a, assume_a, lower)
    return np.linalg.solve(np.swapaxes(a, -1, -2) if transposed else a, b)


def _assumed_matrix(a: Any, assumed: str | None, lower: bool) -> Any:
    """The matrix of which SciPy reads a part, if it is said to have a certain structure."""
    part = np.tril if lower else np.triu
    kind = (assumed or "general")[:3]
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:  # an error of the solution
        return a
    match kind:
        case "sym" | "her" | "pos":
            other = np.swapaxes(part(a, -1 if lower else 1), -1, -2)
            is_hermitian = kind != "sym" and a.dtype.kind == "c"
            whole = part(a) + (np.conj(other) if is_hermitian else other)
            eye = np.eye(a.shape[-1], dtype=bool)
            return np.where(eye, whole.real, whole) if is_hermitian else whole
        case "upp":
            return np.triu(a)
        case "low":
            return np.tril(a)
        case "dia":
            return np.triu(np.tril(a))
        case "tri":
            return np.triu(np.tril(a, 1), -1)
    return a


@drop_in("linalg")
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True, **options: Any) -> Any:
    """The inverse."""
    return np.linalg.inv(finite_array(a, check_finite))


@drop_in("linalg")
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant, in double precision."""
    result = np.linalg.det(finite_array(a, check_finite))
    return result.astype(np.complex128 if result.dtype.kind == "c" else np.float64)

"""Linear systems and matrices of special form in ``scipy.linalg``, for traced values.

Most are written with NumPy's functions: slower than LAPACK's routines for such matrices, but
differentiable.
"""

from typing import Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.scipy.namespace import drop_in, refusal_error
from letir.tracing.operands import traced_or_array


def vector_of(name: str, x: Any) -> Any:
    """An argument of the function ``name`` as a vector; SciPy itself computes with stacks."""
    x = traced_or_array(x)
    if x.ndim > 1:
        raise refusal_error(
            f"linalg.{name}", "stacks of vectors are not supported; call letir.vmap"
        )
    return x.reshape(-1)


def matrix_of(name: str, x: Any) -> Any:
    """An argument of the function ``name``, a matrix; SciPy itself computes with stacks."""
    x = traced_or_array(x)
    if x.ndim > 2:
        raise refusal_error(
            f"linalg.{name}", "stacks of matrices are not supported; call letir.vmap"
        )
    return x


def finite_array(x: Any, check_finite: bool = True) -> Any:
    """An argument as an array, whose elements are tested to be finite unless SciPy is told that
    they are.
    """
    x = traced_or_array(x)
    is_tested = check_finite and x.dtype.kind in "fc" and x.shape
    return PRIMITIVES["checked_finite"](x) if is_tested else x


@drop_in("linalg")
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution X of A X + X B = Q."""
    return PRIMITIVES["solve_sylvester"](*[matrix_of("solve_sylvester", x) for x in (a, b, q)])


@drop_in("linalg")
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The solution X of A X + X A^H = Q."""
    a = matrix_of("solve_continuous_lyapunov", a)
    return solve_sylvester(a, np.conj(a).T, q)


solve_lyapunov = solve_continuous_lyapunov


@drop_in("linalg")
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """The solution X of A X A^H - X + Q = 0; ``method`` is ignored."""
    a, q = [finite_array(matrix_of("solve_discrete_lyapunov", x)) for x in (a, q)]
    system = np.eye(a.shape[0] ** 2) - np.kron(a, np.conj(a))
    return np.linalg.solve(system, q.reshape(-1)).reshape(q.shape)


@drop_in("linalg")
def solve_banded(
    l_and_u: Any,
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The solution of a system whose matrix is given by its diagonals."""
    ab, (below, above) = matrix_of("solve_banded", ab), l_and_u
    ab, b = finite_array(ab, check_finite), finite_array(b, check_finite)
    if below + above + 1 != ab.shape[0]:
        raise ValueError(
            f"invalid values for the number of lower and upper diagonals: l+u+1 "
            f"({below + above + 1}) does not equal ab.shape[0] ({ab.shape[0]})"
        )
    n = ab.shape[-1]
    rows, columns = np.arange(n)[:, None], np.arange(n)
    place = above + rows - columns
    inside = (place >= 0) & (place < ab.shape[0])
    matrix = np.where(inside, ab[np.clip(place, 0, ab.shape[0] - 1), columns], 0.0)
    return np.linalg.solve(matrix, b)


@drop_in("linalg")
def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Any:
    """The solution of a Hermitian system, given by the diagonals on one side."""
    ab = finite_array(matrix_of("solveh_banded", ab), check_finite)
    reach, n = ab.shape[0] - 1, ab.shape[-1]
    rows, columns = np.arange(n)[:, None], np.arange(n)
    place = rows - columns if lower else reach + rows - columns
    one_side = (rows >= columns if lower else rows <= columns) & (np.abs(rows - columns) <= reach)
    half = np.where(one_side, ab[np.clip(place, 0, reach), columns], 0.0)
    matrix = half + np.conj(half).T - np.diag(np.diag(half))
    root = np.linalg.cholesky(matrix)  # raises LinAlgError, as SciPy, if it is not positive
    return np.linalg.solve(np.conj(root.T), np.linalg.solve(root, finite_array(b, check_finite)))


@drop_in("linalg")
def circulant(c: Any) -> Any:
    """The circulant matrix with first column ``c``."""
    c = vector_of("circulant", c)
    n = c.shape[0]
    return c[(np.arange(n)[:, None] - np.arange(n)) % n]


@drop_in("linalg")
def hankel(c: Any, r: Any = None) -> Any:
    """The Hankel matrix with first column ``c`` and last row ``r``, by default zeros."""
    c = vector_of("hankel", c)
    r = np.zeros(c.shape[0], c.dtype) if r is None else vector_of("hankel", r)
    every = np.concatenate([c, r[1:]])
    return every[np.arange(c.shape[0])[:, None] + np.arange(r.shape[0])]


# ---- decompositions ----


@drop_in("linalg")
def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, **options: Any) -> Any:
    """The eigenvalues of a Hermitian matrix, also of a pair of matrices with a definite ``b``."""
    options = {name: value for name, value in options.items() if value is not None}
    unknown = options.keys() - {"overwrite_a", "overwrite_b", "check_finite", "driver"}
    if unknown:
        raise refusal_error("linalg.eigvalsh", f"leave out {', '.join(sorted(unknown))}")
    a = finite_array(a, options.get("check_finite", True))
    if b is not None:
        b = finite_array(b, options.get("check_finite", True))
        factor = np.linalg.inv(np.linalg.cholesky(b))
        a = factor @ a @ np.conj(factor).T
    return np.linalg.eigvalsh(a, "L" if lower else "U")


@drop_in("linalg")
def eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **options: Any
) -> Any:
    """(eigenvalues, eigenvectors) of a Hermitian matrix, also of a pair with a definite ``b``.

    With other options SciPy computes them, without derivatives except for ``subset_by_index``.
    """
    unknown = options.keys() - {"overwrite_a", "overwrite_b", "check_finite"}
    matrices = [traced_or_array(x) for x in (a, b) if x is not None]
    if unknown or any(x.ndim != 2 for x in matrices):
        raise refusal_error("linalg.eigh", f"leave out {', '.join(sorted(unknown))}")
    if eigvals_only:
        return eigvalsh(a, b, lower=lower, **options)
    matrices = [finite_array(x, options.get("check_finite", True)) for x in matrices]
    dtype = np.result_type(*[x.dtype for x in matrices])
    matrices = [x if x.dtype == dtype else x.astype(dtype) for x in matrices]
    return PRIMITIVES["generalized_eigh"](*matrices, lower=bool(lower))


@drop_in("linalg")
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The singular values."""
    return np.linalg.svd(finite_array(a, check_finite), compute_uv=False)


@drop_in("linalg")
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """The singular value decomposition (U, s, Vh)."""
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ValueError(f'lapack_driver must be "gesdd" or "gesvd", not "{lapack_driver}"')
    a = finite_array(a, check_finite)
    result: Any = np.linalg.svd(a, full_matrices, compute_uv)  # type: ignore
    return tuple(result) if compute_uv else result


def _unit_of_squares(a: Any) -> Any:
    """A power of two; the squares of ``a`` times it neither overflow nor vanish all."""
    largest = np.max(np.abs(a), initial=0.0)
    return np.where(largest > 2.0**500, 2.0**-600, np.where(largest < 2.0**-500, 2.0**500, 1.0))


@drop_in("linalg")
def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    """A norm of a matrix or a vector."""
    a = finite_array(a, check_finite)
    is_by_blas = a.dtype.char in "fdFD" and a.ndim == 1 and ord in (None, 2)
    if is_by_blas and axis is None and not keepdims:
        # BLAS adds up squares of single precision in double precision, and scales large numbers
        wide = a.astype(np.result_type(a.dtype, np.float64))
        unit = _unit_of_squares(wide)
        wide_norm = np.linalg.norm(wide * unit) / unit
        rounded = wide_norm.astype(a.real.dtype).astype(np.float64)
        return PRIMITIVES["weaken"](rounded)  # SciPy returns a Python float
    result = np.linalg.norm(a, ord, axis, keepdims)
    is_float = a.dtype.char in "fdFD" and a.ndim == 2 and axis is None and not keepdims
    if is_float and ord in (1, np.inf) and a.flags.c_contiguous != a.flags.f_contiguous:
        return PRIMITIVES["weaken"](result.astype(np.float64))  # by LAPACK: a Python float
    return result


@drop_in("linalg")
def polar(a: Any, side: str = "right") -> tuple:
    """The polar decomposition (U, P)."""
    a = finite_array(a)
    w, s, vh = np.linalg.svd(a, full_matrices=False)
    p = (np.conj(vh).T * s) @ vh if side == "right" else (w * s) @ np.conj(w).T
    return w @ vh, p


@drop_in("linalg")
def cosm(A: Any) -> Any:
    """The cosine of a square matrix."""
    turned = PRIMITIVES["expm"](1j * traced_or_array(A))
    turned_back = PRIMITIVES["expm"](-1j * traced_or_array(A))
    result = (turned + turned_back) / 2
    return result if traced_or_array(A).dtype.kind == "c" else result.real


@drop_in("linalg")
def sinm(A: Any) -> Any:
    """The sine of a square matrix."""
    turned = PRIMITIVES["expm"](1j * traced_or_array(A))
    turned_back = PRIMITIVES["expm"](-1j * traced_or_array(A))
    result = (turned - turned_back) / 2j
    return result if traced_or_array(A).dtype.kind == "c" else result.real

"""Least squares: lstsq, with all four results.

The solution is differentiated as ``pinv(a) @ b`` (Golub and Pereyra 1973), with a constant rank.
"""

import numpy as np

from letir.ast.symbolic_sizes import smaller_size
from letir.ast.types import ArrayType
from letir.errors import GuardError, MatrixError
from letir.ops.define.records import composite
from letir.ops.elementwise.rounding_sign_parts import real_part
from letir.ops.linalg.matrix_parts import (
    conjugate,
    known_value,
    linalg_dtype,
    matrix_shape,
    real_dtype,
)
from letir.ops.linalg.solve_inv_det import is_vector
from letir.ops.linalg.svd import matrix_rank, pinv, svdvals
from letir.ops.reductions.reductions import sum_
from letir.ops.shape.size_numbers import number_from
from letir.ops.shape.unit_axes_and_flip import expand_dims


def _lstsq_prepare(a, b, rcond=None):
    """np.linalg.lstsq. ``full_rank``: the matrix has full column rank.

    NumPy returns an empty array of residuals if the rank is less than the number of columns. A
    matrix whose values are unknown is assumed to have full rank, and every run checks that.
    """
    matrix, rcond = known_value(a) if np.ndim(a) == 2 else None, _rcond_attribute(rcond)
    full = matrix is None or np.linalg.lstsq(matrix, matrix[:, :0], rcond)[2] == np.shape(a)[1]
    return (a, b), {"rcond": rcond, "full_rank": bool(full)}


def _rcond_attribute(rcond):
    """``rcond`` as an attribute: None or a float."""
    return None if rcond is None else float(rcond)


def _lstsq_aval(a, b, *, rcond, full_rank):
    """The types of the solution, the sums of squared residuals, the rank and the singular
    values.
    """
    lead, m, n = matrix_shape("lstsq", a)
    if lead or b.ndim not in (1, 2) or b.shape[0] != m:
        raise MatrixError(
            f"lstsq: arrays of shapes {a.shape} and {b.shape} are not a least-squares problem\n"
            "  pass a of shape (m, n) and b of shape (m,) or (m, k)"
        )
    dtype = linalg_dtype("lstsq", a, b)
    floating = real_dtype(dtype)
    right = b.shape[1:]
    has_residuals = full_rank and m > n
    return (
        ArrayType(dtype, (n, *right)),
        ArrayType(floating, (right or (1,)) if has_residuals else (0,)),
        ArrayType(np.int32),
        ArrayType(floating, (smaller_size(m, n),)),
    )


def _lstsq_impl(xp, a, b, *, rcond=None, full_rank=True):
    """np.linalg.lstsq. Raises GuardError unless the rank is full or deficient as recorded."""
    x, residuals, rank, s = xp.linalg.lstsq(a, b, rcond)
    m, n = a.shape
    if m > n and bool(rank == n) != full_rank:
        recorded = "full" if full_rank else "deficient"
        raise GuardError(
            f"the program was recorded for a matrix of {recorded} rank, "
            f"now the rank is {int(rank)} of {n} columns\n"
            "  trace again with these arguments: whether there are residuals depends on it"
        )
    return x, residuals, xp.asarray(rank)[()], s


def _lstsq_decompose(a, b, *, rcond=None, full_rank=True):
    """The four results by the pseudoinverse of the matrix."""
    m, n = a.shape[-2:]
    dtype = real_dtype(linalg_dtype("lstsq", a.type, b.type))
    if rcond is None:
        longer = m + n - smaller_size(m, n)
        rcond = float(np.finfo(dtype).eps) * number_from(longer, (a,), a.emitter)
    a = a.astype(np.result_type(a.dtype, dtype))
    x = pinv(a, rcond) @ b
    if full_rank and m > n:
        residual = b - a @ x
        squares = sum_(real_part(conjugate(residual) * residual), axis=0)
        residuals = expand_dims(squares, 0) if is_vector(b) else squares
    else:
        residuals = svdvals(a)[:0]
    rank = matrix_rank(a, rtol=rcond).astype(np.int32)
    return x, residuals, rank, svdvals(a)


lstsq = composite(
    "lstsq",
    _lstsq_decompose,
    impl=_lstsq_impl,
    aval=_lstsq_aval,
    results=lambda **_: 4,
    returned=lambda results, **_: results,
    prepare=_lstsq_prepare,
    numpy=(np.linalg.lstsq,),
    source="np.linalg.lstsq({0}, {1}, {rcond})",
    raises=True,
)

"""Covariances and correlation coefficients: cov, corrcoef.

Both are composites computed by NumPy's own functions and differentiated through their
decompositions.
"""

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.errors import ShapeError
from letir.ops.define.records import composite
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.rounding_sign_parts import conj, real
from letir.ops.elementwise.ufuncs import maximum, sqrt
from letir.ops.linalg.matmul_einsum import dot
from letir.ops.reductions.reductions import mean, sum_
from letir.ops.reductions.variance_and_average import drop_trailing_nones, keyword_call
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import Sizes
from letir.ops.shape.unit_axes_and_flip import squeeze

# ---- covariance ----


def _as_matrix(x: Value, rowvar: bool) -> Value:
    """``x`` as a matrix with variables in rows and observations in columns."""
    if x.ndim > 2:
        raise ShapeError(
            f"cov: an array of {x.ndim} axes has more than 2\n"
            "  reshape it to rows of variables and columns of observations"
        )
    if x.ndim < 2:
        return x[None] if x.ndim else reshape(x, (1, 1))
    return x if rowvar else x.T


def _all_variables(m, y, rowvar: bool, dtype) -> Value:
    """The variables of both operands, in rows."""
    dtypes = [a.dtype for a in (m, y) if a is not None]
    aval = np.result_type(*dtypes, np.float64) if dtype is None else dtype
    x = _as_matrix(cast(m, aval), rowvar)
    if y is None:
        return x
    rows = _as_matrix(cast(y, aval), True)
    # as in NumPy, a single row is not transposed
    return concatenate([x, rows if rowvar or rows.shape[0] == 1 else rows.T], 0)


def _no_variable(m: Value, rowvar: bool) -> bool:
    """Whether there are no variables, for which NumPy returns an empty result."""
    return m.ndim == 2 and m.shape[0 if rowvar else 1] == 0


def _empty_covariance(m: Value) -> Value:
    """The empty covariance matrix of no variables, which is real."""
    return reshape(cast(real(m), np.float64), -1)[:0][:, None][:, :0]


def _conjugate_transpose(x: Value) -> Value:
    """The conjugate transpose."""
    return conj(x).T if x.dtype.kind == "c" else x.T


def _cov_decompose(
    m, y=None, fweights=None, aweights=None, *, rowvar=True, bias=False, ddof=None, dtype=None
) -> Value:
    """The mean of the products of deviations for every pair of variables."""
    if _no_variable(m, rowvar):
        return _empty_covariance(m)
    x = _all_variables(m, y, rowvar, dtype)
    weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is not None:
        weights = cast(weights, np.result_type(weights.dtype, np.float64))
    ddof = (0 if bias else 1) if ddof is None else ddof
    total = Sizes.from_value(x)[1] if weights is None else sum_(weights)
    center = mean(x, axis=1) if weights is None else dot(x, weights) / total
    deviations = x - center[:, None]
    other = deviations if weights is None else deviations * weights
    return squeeze(
        dot(deviations, _conjugate_transpose(other)) / _divisor(total, weights, aweights, ddof)
    )


def _divisor(total, weights, aweights, ddof):
    """The divisor of the sums of products: the degrees of freedom, at least 0."""
    if type(total) is int:
        return max(total - ddof, 0)
    if weights is None:  # the number of observations is known when the program runs
        return maximum(total - ddof, 0)
    if ddof == 0:
        return total
    less = ddof if aweights is None else ddof * sum_(weights * aweights) / total
    return maximum(total - less, 0)


def _cov_prepare(
    m,
    y=None,
    rowvar=True,
    bias=False,
    ddof=None,
    fweights=None,
    aweights=None,
    *,
    dtype=None,
):
    """np.cov: the operands are (m, y, fweights, aweights), without trailing Nones."""
    return drop_trailing_nones(m, y, fweights, aweights), {
        "rowvar": bool(rowvar),
        "bias": bool(bias),
        "ddof": ddof,
        "dtype": None if dtype is None else np.dtype(dtype),
    }


def _cov_impl(
    xp, m, y=None, fweights=None, aweights=None, *, rowvar=True, bias=False, ddof=None, dtype=None
):
    """np.cov, whose operands are in another order."""
    arguments = (m, y, rowvar, bias, ddof, fweights, aweights)
    return LATE_BOUND["call_at_user"](xp.cov, *arguments, dtype=dtype)


cov = composite(
    "cov",
    _cov_decompose,
    impl=_cov_impl,
    prepare=_cov_prepare,
    numpy=(np.cov,),
    source=keyword_call("y", "fweights", "aweights"),
)


def _corrcoef_decompose(x, y=None, *, rowvar=True, dtype=None) -> Value:
    """The covariances divided by the standard deviations of both variables.

    NumPy clips coefficients that rounding takes beyond 1; the derivative ignores that.
    """
    if _no_variable(x, rowvar):
        return _empty_covariance(x)
    rows = _all_variables(x, y, rowvar, dtype)
    deviations = rows - mean(rows, axis=1, keepdims=True)
    length = sqrt(sum_(real(deviations * conj(deviations)), axis=1))
    result = dot(deviations, _conjugate_transpose(deviations)) / length[:, None] / length[None, :]
    return squeeze(result)


corrcoef = composite(
    "corrcoef",
    _corrcoef_decompose,
    impl=lambda xp, x, y=None, *, rowvar=True, dtype=None: xp.corrcoef(x, y, rowvar, dtype=dtype),
    prepare=lambda x, y=None, rowvar=True, *, dtype=None: (
        drop_trailing_nones(x, y),
        {"rowvar": bool(rowvar), "dtype": None if dtype is None else np.dtype(dtype)},
    ),
    numpy=(np.corrcoef,),
)

"""NumPy's polynomial functions, with coefficients from the highest power down.

They are written with NumPy's functions, like NumPy's own. A guard is recorded where the length of a
result depends on which coefficients are zero, or its dtype on conjugate pairs of roots
[semantics.md B2].
"""

import operator
from typing import Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.errors import ShapeError
from letir.ops.linalg.eigen import eigvals_real_where_possible
from letir.tracing.operands import traced_or_array
from letir.tracing.source_locations import at_user

# ---- sums and products ----


def _as_coefficients(p):
    """Coefficients as a 1-d array; a number is a constant polynomial."""
    p = traced_or_array(p)
    if p.ndim > 1:
        raise ShapeError(
            f"coefficients of a polynomial must have one axis, found {p.shape}{at_user()}\n"
            "  pass a vector of coefficients"
        )
    return np.reshape(p, (1,)) if not p.ndim else p


def _pad_to_one_length(a1, a2) -> list:
    """Both polynomials padded with zeros to the same length."""
    rows = [np.atleast_1d(traced_or_array(a)) for a in (a1, a2)]
    n = max(len(row) for row in rows)
    return [
        row if len(row) == n else np.concatenate([np.zeros(n - len(row), row.dtype), row])
        for row in rows
    ]


def polymul(a1: Any, a2: Any) -> Any:
    """np.polymul, which removes leading zeros."""
    return np.convolve(*map(_without_leading_zeros, (a1, a2)))


def _without_leading_zeros(p):
    """The coefficients without leading zeros; a single zero if all are zero."""
    p = np.trim_zeros(_as_coefficients(p), "f")
    return p if len(p) else np.zeros(1, p.dtype)


# ---- derivatives and integrals ----


def _derivative_order(m) -> int:
    """The order of a derivative or an integral, as an int."""
    m = operator.index(m)
    if m < 0:
        raise ShapeError(
            f"the order must be positive, found {m}{at_user()}\n"
            "  pass how often to integrate or differentiate"
        )
    return m


def polyder(p: Any, m: int = 1) -> Any:
    """np.polyder."""
    p = traced_or_array(p)
    if p.ndim > 1:
        raise ShapeError(
            f"polyder: coefficients of shape {p.shape} are not those of one polynomial{at_user()}\n"
            "  differentiate one row at a time"
        )
    for _ in range(_derivative_order(m)):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """np.polyint, with constants of integration ``k``."""
    p, m = traced_or_array(p), _derivative_order(m)
    k = _as_coefficients(np.zeros(m) if k is None else k)
    if len(k) == 1 and m > 1:
        k = k[0] * np.ones(m)
    if len(k) < m:
        raise ShapeError(
            f"polyint: k must be a scalar or a rank-1 array of length 1 or >m, found {len(k)}"
            f"{at_user()}\n"
            "  pass one integration constant, or one for each integration"
        )
    for i in range(m):
        p = np.concatenate([p / np.arange(len(p), 0, -1), k[i : i + 1]])
    return p


# ---- roots ----


def poly(seq_of_zeros: Any) -> Any:
    """np.poly: the polynomial with these roots, or with the eigenvalues of a matrix."""
    zeros = traced_or_array(seq_of_zeros)
    if not zeros.shape:
        raise ShapeError(
            f"poly: a sequence of zeros is expected, not a number{at_user()}\n  pass a list: [x]"
        )
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] != 0:
        zeros = np.linalg.eigvals(zeros)
    else:
        zeros = _as_coefficients(zeros)
        zeros = zeros.astype(np.mintypecode(zeros.dtype.char))
    if not len(zeros):
        return 1.0
    result = np.ones(1, zeros.dtype)
    for i in range(len(zeros)):
        factor = np.concatenate([np.ones(1, zeros.dtype), -zeros[i : i + 1]])
        result = np.convolve(result, factor)
    if zeros.dtype.kind == "c" and bool(np.all(np.sort(zeros) == np.sort(zeros.conj()))):
        return result.real.copy()
    return result


def roots(p: Any) -> Any:
    """np.roots: the eigenvalues of the companion matrix."""
    p = _as_coefficients(p)
    inner = np.trim_zeros(p, "f")
    if not len(inner):
        return np.array([])
    count = len(inner)
    inner = np.trim_zeros(inner, "b")
    at_zero = count - len(inner)  # as many roots are 0
    inner = inner if inner.dtype.kind in "fc" else inner.astype(float)
    if len(inner) == 1:
        return np.zeros(at_zero)
    below = np.eye(len(inner) - 1, dtype=inner.dtype)[:-1]
    first = (-inner[1:] / inner[0])[None]
    companion: Any = np.concatenate([first, below])
    values = eigvals_real_where_possible(companion)
    if companion.dtype.kind == "f" and values.dtype.kind == "c" and not values.imag.any():
        values = values.real  # a guard: at other coefficients all roots may be real
    return np.concatenate([values, np.zeros(at_zero, values.dtype)])


# ---- least squares ----


def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: bool = False,
) -> Any:
    """np.polyfit, with its optional further results."""
    x, y, w = traced_or_array(x), traced_or_array(y), None if w is None else traced_or_array(w)
    if not full and not cov:
        return PRIMITIVES["polyfit"](x, y, deg, rcond, w)
    order = operator.index(deg) + 1
    x, y = x + 0.0, y + 0.0
    rcond = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    left, right = np.vander(x, order), y
    if w is not None:
        left, right = left * w[:, None], right * (w if y.ndim == 1 else w[:, None])
    scale = np.sqrt((left * left).sum(axis=0))
    left = left / scale
    result, residuals, rank, singular = np.linalg.lstsq(left, right, rcond)
    result = (result.T / scale).T
    if full:
        return result, residuals, rank, singular, rcond
    base = np.linalg.inv(np.dot(left.T, left)) / (scale[:, None] * scale)
    if cov != "unscaled":
        if len(x) <= order:
            raise ShapeError(
                f"polyfit: {len(x)} points do not give the covariance of {order} coefficients"
                f"{at_user()}\n  give more than that, or cov='unscaled'"
            )
        residuals = residuals / (len(x) - order)
        return result, (base if y.ndim == 1 else base[:, :, None]) * residuals
    return result, base if y.ndim == 1 else base[:, :, None]


FUNCTIONS = {
    np.polyadd: lambda a1, a2: operator.add(*_pad_to_one_length(a1, a2)),
    np.polysub: lambda a1, a2: operator.sub(*_pad_to_one_length(a1, a2)),
    np.polymul: polymul,
    np.polyder: polyder,
    np.polyint: polyint,
    np.poly: poly,
    np.roots: roots,
    np.polyfit: polyfit,
}

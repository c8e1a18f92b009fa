"""Factorisations and systems of linear equations, as loops over columns.

For singular matrices, for which NumPy raises an error, they give infinite numbers or nan.
"""

from typing import Any

import numpy as np

from letir.onnx.exporting.node_graph import computes_op, not_finite_where_raising
from letir.tracing.control_flow.while_and_fori import fori_loop

not_finite_where_raising("cholesky", "inv", "solve")


def unit_like(x: Any, n: int) -> Any:
    """The identity matrix for each matrix of a stack."""
    if not (type(x.shape[-1]) is type(x.shape[-2]) is int and x.shape[-1] and x.shape[-2]):
        return np.broadcast_to(np.eye(n, dtype=x.dtype), (*x.shape[:-2], n, n)) * 1
    return np.eye(n, dtype=x.dtype) + np.zeros_like(x[..., :1, :1])


def _eliminate_columns(a, b):
    """(upper triangle, right-hand sides, sign of the row permutation) with partial pivoting."""
    rows = np.arange(a.shape[-1])

    def step(k, state):
        w, sign = state
        size = np.where(rows >= k, np.abs(w[..., k]), -1)
        pivot = np.argmax(size, axis=-1)[..., None]
        order = np.where(rows == k, pivot, np.where(rows == pivot, k, rows))
        w = np.take_along_axis(w, order[..., None], axis=-2)
        row = w[..., k, :]
        divisor = row[..., k]
        divisor = np.where(divisor == 0, 1, divisor)[..., None]
        factor = np.where(rows > k, w[..., k] / divisor, 0)
        w = w - factor[..., None] * row[..., None, :]
        return w, np.where(pivot[..., 0] == k, sign, -sign)

    n, sign = a.shape[-1], 1 + 0 * a[..., 0, 0]
    w, sign = fori_loop(0, n, step, (np.concatenate([a, b], axis=-1), sign))
    return w[..., :n], w[..., n:], sign


def _back_substituted(u, b, unit: bool = False):
    """x with u @ x = b, for an upper triangle u."""
    n = u.shape[-1]
    rows = np.arange(n)[:, None]

    def step(i, x):
        k = n - 1 - i
        row = np.where(rows[:, 0] > k, u[..., k, :], 0)
        rest = b[..., k, :] - (row[..., None, :] @ x)[..., 0, :]
        column = rest if unit else rest / u[..., k, k][..., None]
        return np.where(rows == k, column[..., None, :], x)

    if u.shape[:-2] != b.shape[:-2]:
        b = b + np.zeros_like(u[..., :1, :1])
    return fori_loop(0, n, step, np.zeros_like(b))


@computes_op("solve")
def solve(a: Any, b: Any) -> Any:
    """x with a @ x = b, by Gaussian elimination."""
    common = np.result_type(a.dtype, b.dtype, np.float32)
    common = np.dtype(float) if a.dtype.kind != "f" or b.dtype.kind != "f" else common
    a, is_vector = a.astype(common), b.ndim == 1
    b = (b[:, None] if is_vector else b).astype(common)
    if a.shape[:-2] != b.shape[:-2]:  # broadcast to stacks of the same shape
        a = a + np.zeros_like(b[..., :1, :1])
        b = b + np.zeros_like(a[..., :1, :1])
    if any(type(n) is int and n == 0 for n in (*a.shape, *b.shape)):
        return b[..., 0] * 1 if is_vector else b * 1
    u, c, _ = _eliminate_columns(a, b)
    x = _back_substituted(u, c)
    return x[..., 0] if is_vector else x


@computes_op("inv")
def _inv(x):
    x = x if x.dtype.kind == "f" else x.astype(float)
    return solve(x, unit_like(x, x.shape[-1]))


def _triangular_diagonal(x):
    """(diagonal of the triangle, sign of the permutation)."""
    x = x if x.dtype.kind == "f" else x.astype(float)
    u, _, sign = _eliminate_columns(x, x[..., :0])
    return np.diagonal(u, axis1=-2, axis2=-1), sign


@computes_op("det")
def _det(x):
    if not x.shape[-1]:
        return np.ones(x.shape[:-2], x.dtype if x.dtype.kind == "f" else float) + x.sum()
    diagonal, sign = _triangular_diagonal(x)
    return sign * np.prod(diagonal, axis=-1)


@computes_op("slogdet")
def _slogdet(x):
    if not x.shape[-1]:
        one = np.ones(x.shape[:-2], x.dtype) + x.sum()
        return one, one - 1
    diagonal, sign = _triangular_diagonal(x)
    return sign * np.prod(np.sign(diagonal), axis=-1), np.sum(np.log(np.abs(diagonal)), axis=-1)


@computes_op("cholesky")
def _cholesky(x, *, upper=False):
    x = x if x.dtype.kind == "f" else x.astype(float)
    x = np.swapaxes(x, -1, -2) if upper else x
    n = x.shape[-1]
    if not n:
        return x * 1
    rows = np.arange(n)

    def step(k, lower):
        row = lower[..., k, :]
        column = x[..., k] - (lower @ row[..., None])[..., 0]
        pivot = column[..., k]
        root = np.sqrt(np.where(pivot > 0, pivot, np.nan))[..., None]
        column = np.where(rows > k, column / root, np.where(rows == k, root, 0))
        return np.where(rows == k, column[..., None], lower)

    result = fori_loop(0, n, step, np.zeros_like(x))
    return np.swapaxes(result, -1, -2) if upper else result


@computes_op("qr")
def orthogonal_triangular(x: Any, *, mode: str = "reduced") -> Any:
    """Q and R by Householder's reflections, with the signs of LAPACK."""
    x = x if x.dtype.kind == "f" else x.astype(float)
    m, n = x.shape[-2:]
    rows, count = np.arange(m), min(m, n)

    def step(k, state):
        q, r = state
        column = r[..., k]
        alpha = column[..., k]
        below = np.where(rows > k, column, 0)
        norm = np.sqrt(np.sum(below * below, axis=-1))
        beta = np.where(norm == 0, alpha, -np.copysign(np.hypot(alpha, norm), alpha))
        plain = (norm == 0)[..., None]
        gap = np.where(plain, 1, (alpha - beta)[..., None])
        v = np.where(rows == k, 1, below / gap)
        tau = np.where(norm == 0, 0, (beta - alpha) / np.where(beta == 0, 1, beta))
        scaled = (tau[..., None] * v)[..., None]
        r = r - scaled * (v[..., None, :] @ r)
        q = q - (q @ scaled) * v[..., None, :]
        return q, np.where((rows[:, None] > k) & (np.arange(n) == k), 0, r)

    q, r = fori_loop(0, count, step, (unit_like(x, m), x * 1))
    if mode == "complete":
        return q, r
    return r[..., :count, :] if mode == "r" else (q[..., :count], r[..., :count, :])


@computes_op("solve_triangular")
def _solve_triangular(
    a, b, *, transposed=False, lower=False, unit_diagonal=False, check_finite=True
):
    if transposed:
        a, lower = np.swapaxes(a, -1, -2), not lower
    common = np.result_type(a.dtype, b.dtype)
    common = common if common.kind == "f" else np.dtype(float)
    a, b = a.astype(common), b.astype(common)
    is_vector = b.ndim == 1 and a.ndim == 2
    b = b[:, None] if is_vector else b
    if not b.shape[-2]:
        return (b[..., 0] if is_vector else b) * 1
    if lower:  # with rows and columns reversed it is an upper triangle
        result = _back_substituted(a[..., ::-1, ::-1], b[..., ::-1, :], unit_diagonal)[..., ::-1, :]
    else:
        result = _back_substituted(a, b, unit_diagonal)
    return result[..., 0] if is_vector else result


# ---- functions of matrices ----

_PADE: tuple[float, ...] = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
)
_PADE = (*_PADE, 129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0)
_PADE = (*_PADE, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0)


@computes_op("expm")
def _expm(x):
    """Scaling and squaring with the Pade approximation of degree 13 (Higham, 2005)."""
    x = x if x.dtype.kind == "f" else x.astype(float)
    if not x.shape[-1]:
        return x * 1
    norm = np.max(np.sum(np.abs(x), axis=-2), axis=-1)
    halvings = np.ceil(np.log2(np.maximum(norm / 5.371920351148152, 1)))
    a = x * np.exp2(-halvings)[..., None, None]
    a2 = a @ a
    a4, eye = a2 @ a2, np.eye(x.shape[-1], dtype=x.dtype)
    a6, b = a4 @ a2, [c / _PADE[0] for c in _PADE]
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2)
    odd = a @ (odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2)
    even = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    approximation = solve(even - odd, even + odd)

    def square(k, y):
        return np.where((k < halvings)[..., None, None], y @ y, y)

    return fori_loop(0, np.max(halvings).astype(np.int64), square, approximation)


@computes_op("sqrtm")
def _sqrtm(x):
    """The product form of the iteration of Denman and Beavers (Higham, 2008, section 6.3)."""
    eye = np.eye(x.shape[-1], dtype=x.dtype)
    m, y = x * 1, x * 1
    for _ in range(20):
        inverse = solve(m, unit_like(m, m.shape[-1]))
        y = 0.5 * y @ (eye + inverse)
        m = 0.5 * eye + 0.25 * (m + inverse)
    return y


@computes_op("solve_sylvester")
def _solve_sylvester(a, b, q):
    """One dense system for all elements of the solution."""
    m, n = q.shape[-2:]
    if not m * n:
        return q * 1
    left = a[..., :, None, :, None] * np.eye(n, dtype=a.dtype)[:, None, :]
    right = (
        np.eye(m, dtype=b.dtype)[:, None, :, None] * np.swapaxes(b, -1, -2)[..., None, :, None, :]
    )
    system = (left + right).reshape(*q.shape[:-2], m * n, m * n)
    return solve(system, q.reshape(*q.shape[:-2], m * n, 1)).reshape(q.shape)

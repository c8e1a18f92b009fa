"""The singular value decomposition and its uses: svd, svdvals, pinv, matrix_rank.

Sources: Townsend, Differentiating the singular value decomposition (2016); Golub and Pereyra, The
differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate
(1973).

The singular vectors of equal singular values are determined only up to a rotation, which the
derivative ignores: it is right for functions that do not depend on the rotation.
"""

import functools

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import smaller_size
from letir.ast.types import WEAK, ArrayType, broadcast_shapes
from letir.errors import DTypeError, ShapeError
from letir.ops.define.batch_rules import (
    batch_first,
    broadcast_batch,
    composite_batch,
    emit_op,
    rank_of,
    widen_rank,
)
from letir.ops.define.records import (
    DISCRETE,
    add_terms,
    composite,
    decomposition,
    define,
    unbroadcast,
)
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import imag, real_part
from letir.ops.linalg.matmul_einsum import swap_last_axes
from letir.ops.linalg.matrix_parts import (
    adjoint,
    columns_times,
    conjugate,
    diagonal_of,
    hermitian_part,
    inverse_or_zero,
    is_on_diagonal,
    linalg_dtype,
    matrix_shape,
    named_tuple,
    real_dtype,
    require_known_types,
    rows_times,
    square_shape,
    stacked_rule,
)
from letir.ops.reductions.reductions import any_, max_, sum_
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.shape_and_creation import ones_like
from letir.ops.shape.unit_axes_and_flip import expand_dims

# ---- svd ----


def _svd_sizes(x, hermitian: bool) -> tuple:
    """(leading axes, rows, columns, number of singular values)."""
    lead, m, n = matrix_shape("svd", x)
    if hermitian:
        square_shape("svd", x)
    if m == n:
        return lead, m, n, m
    return lead, m, n, smaller_size(m, n)


def _svd_aval(x, *, full_matrices, compute_uv, hermitian):
    """The types of U, the singular values and Vh, or of the singular values alone."""
    lead, m, n, k = _svd_sizes(x, hermitian)
    dtype = linalg_dtype("svd", x)
    s = ArrayType(real_dtype(dtype), (*lead, k))
    if not compute_uv:
        return (s,)
    rows, columns = (m, n) if full_matrices else (k, k)
    return ArrayType(dtype, (*lead, m, rows)), s, ArrayType(dtype, (*lead, columns, n))


def _svd_prepare(a, full_matrices=True, compute_uv=True, hermitian=False):
    """np.linalg.svd."""
    return (a,), {
        "full_matrices": bool(full_matrices),
        "compute_uv": bool(compute_uv),
        "hermitian": bool(hermitian),
    }


def _svd_impl(xp, x, *, full_matrices=True, compute_uv=True, hermitian=False):
    """np.linalg.svd, with the results as a tuple. CuPy's function has no ``hermitian``."""
    flags = {"hermitian": True} if hermitian else {}
    result = xp.linalg.svd(x, full_matrices, compute_uv, **flags)
    return tuple(result) if compute_uv else (result,)


def _inverse_square_differences(s: Value) -> Value:
    """1 / (s_j^2 - s_i^2) at row i and column j; 0 for equal singular values."""
    i, j = expand_dims(s, -1), expand_dims(s, -2)
    return inverse_or_zero((j + i) * (j - i))


def _factors_of(outs: tuple, x: Value, attrs: dict) -> tuple[Value, Value, Value]:
    """Thin U, s and Vh of ``x``, taken from the results if they hold U and Vh."""
    if not attrs["compute_uv"]:
        return svd(x, full_matrices=False, hermitian=attrs["hermitian"])
    u, s, vh = outs
    k = s.shape[-1]
    return (u if u.shape[-1] == k else u[..., :k]), s, (vh if vh.shape[-2] == k else vh[..., :k, :])


def _svd_vjp(cts, outs, x, **attrs):
    """Townsend's formulas, transposed; complex phases are assigned to U.

    Further columns of U and rows of Vh (``full_matrices``) rotate with the first ones, but not
    within their own span: the derivative is right for functions that depend on their span only.
    """
    require_known_types("svd", x)
    u, s, vh = _factors_of(outs, x, attrs)
    by_u, by_s, by_vh = cts if attrs["compute_uv"] else (None, *cts, None)
    v, quotient, inverse = adjoint(vh), _inverse_square_differences(s), inverse_or_zero(s)
    inner, terms = [], []
    if by_s is not None:
        terms.append(columns_times(u, by_s) @ vh)
    if by_u is not None:
        by_u = _fold_further_columns(conjugate(by_u), u, outs[0])
        m = adjoint(u) @ by_u
        inner.append(columns_times(quotient * (m - adjoint(m)), s))
        if u.dtype.kind == "c":
            inner.append(where(is_on_diagonal(m), 1j * rows_times(inverse, imag(m)), 0))
        if u.shape[-2] != u.shape[-1]:
            terms.append(columns_times(by_u - u @ m, inverse) @ vh)
    if by_vh is not None:
        by_v = _fold_further_columns(swap_last_axes(by_vh), v, adjoint(outs[2]))
        m = adjoint(v) @ by_v
        inner.append(rows_times(s, quotient * (m - adjoint(m))))
        if v.shape[-2] != v.shape[-1]:
            terms.append(u @ adjoint(columns_times(by_v - v @ m, inverse)))
    if inner:
        terms.append(u @ add_terms(inner) @ vh)
    total = hermitian_part(add_terms(terms)) if attrs["hermitian"] else add_terms(terms)
    return (unbroadcast(conjugate(total), x),)


def _fold_further_columns(by_full: Value, thin: Value, full: Value) -> Value:
    """The cotangent of thin U, including the contribution of the further columns of ``full``."""
    k = thin.shape[-1]
    if by_full.shape[-1] == k:
        return by_full
    # dU2 = -U1 dU1^H U2 keeps U unitary without a rotation of U2 in its own span
    return by_full[..., :k] - full[..., k:] @ (adjoint(by_full[..., k:]) @ thin)


def _svd_jvp(tangents, outs, x, **attrs):
    """The tangents of the results by Townsend's formulas."""
    u, s, vh = _factors_of(outs, x, attrs)
    change = hermitian_part(tangents[0]) if attrs["hermitian"] else tangents[0]
    v, inner = adjoint(vh), adjoint(u) @ change @ adjoint(vh)
    ds = real_part(diagonal_of(inner))
    if not attrs["compute_uv"]:
        return (ds,)
    quotient, inverse = _inverse_square_differences(s), inverse_or_zero(s)
    right, left = columns_times(inner, s), rows_times(s, inner)
    du = u @ (quotient * (right + adjoint(right)))
    dv = v @ (quotient * (left + adjoint(left)))
    if u.dtype.kind == "c":
        du = du + columns_times(u, 1j * (imag(diagonal_of(inner)) * inverse))
    if u.shape[-2] != u.shape[-1]:
        rest = change @ v
        du = du + columns_times(rest - u @ inner, inverse)
    if v.shape[-2] != v.shape[-1]:
        rest = adjoint(change) @ u
        dv = dv + columns_times(rest - v @ adjoint(inner), inverse)
    du, dv = _with_further_columns(du, u, outs[0]), _with_further_columns(dv, v, adjoint(outs[2]))
    return du, ds, adjoint(dv)


def _with_further_columns(change: Value, thin: Value, full: Value) -> Value:
    """The change of thin U, with the change of the further columns of ``full`` appended."""
    k = thin.shape[-1]
    if full.shape[-1] == k:
        return change
    return concatenate([change, -(thin @ (adjoint(change) @ full[..., k:]))], axis=-1)


def _svd_source(write, x, **attrs):
    """A call of np.linalg.svd, as a tuple also without U and Vh."""
    text = write.call("np.linalg.svd", x, **attrs)
    return text if attrs["compute_uv"] else f"({text},)"


svd = define(
    "svd",
    _svd_impl,
    _svd_aval,
    vjp=_svd_vjp,
    jvp=_svd_jvp,
    results=lambda *, compute_uv, **_: 3 if compute_uv else 1,
    returned=lambda results, *, compute_uv, **_: (
        named_tuple(np.linalg.svd)(*results) if compute_uv else results[0]
    ),
    prepare=_svd_prepare,
    numpy=(np.linalg.svd,),
    batch=stacked_rule("svd"),
    source=_svd_source,
    raises=True,
)


def _svdvals_aval(x):
    """The singular values of each matrix."""
    lead, _, _, k = _svd_sizes(x, False)
    return ArrayType(real_dtype(linalg_dtype("svdvals", x)), (*lead, k))


def _svdvals_jvp(tangents, y, x):
    """The real diagonal of U^H dA V."""
    u, _, vh = svd(x, full_matrices=False)
    return real_part(diagonal_of(adjoint(u) @ tangents[0] @ adjoint(vh)))


def _svdvals_vjp(ct, y, x):
    """U diag(ct) Vh."""
    u, _, vh = svd(x, full_matrices=False)
    return (unbroadcast(conjugate(columns_times(u, ct) @ vh), x),)


svdvals = define(
    "svdvals",
    lambda xp, x: xp.linalg.svd(x, compute_uv=False),
    _svdvals_aval,
    vjp=_svdvals_vjp,
    jvp=_svdvals_jvp,
    numpy=(np.linalg.svdvals,),
    batch=stacked_rule("svdvals"),
    raises=True,
)

# ---- pinv ----


def _pinv_aval(x, *cutoff, hermitian, relative):
    """The type of the pseudoinverse, with rows and columns exchanged."""
    lead, m, n = matrix_shape("pinv", x)
    if cutoff and broadcast_shapes(lead, cutoff[0].shape) != lead:
        raise ShapeError(
            f"pinv: cutoffs of shape {cutoff[0].shape} for matrices {x.shape}\n"
            "  pass one cutoff, or one for each matrix"
        )
    if relative and not x.inexact:
        raise DTypeError(
            f"pinv: rtol=None needs floating numbers, found {x}\n"
            "  convert the matrices with .astype(float)"
        )
    # for empty matrices NumPy returns before it converts
    dtype = x.dtype if 0 in (m, n) else linalg_dtype("pinv", x)
    return ArrayType(dtype, (*lead, n, m))


def _pinv_prepare(a, rcond=None, hermitian=False, *, rtol=np._NoValue):
    """np.linalg.pinv, where a given relative cutoff is an operand.

    ``relative``: the cutoff follows from the precision of the dtype, as for ``rtol=None``.
    """
    if rcond is not None and rtol is not np._NoValue:
        raise ShapeError("pinv: rcond and rtol cannot both be given\n  leave one of them out")
    cutoff = rcond if rcond is not None else rtol
    has_cutoff = cutoff is not None and cutoff is not np._NoValue
    relative = rcond is None and rtol is None
    return (a, cutoff) if has_cutoff else (a,), {
        "hermitian": bool(hermitian),
        "relative": relative,
    }


def _pinv_impl(xp, x, *cutoff, hermitian=False, relative=False):
    """np.linalg.pinv with the given cutoff."""
    flags = {"hermitian": True} if hermitian else {}  # CuPy has neither hermitian nor rtol
    return xp.linalg.pinv(x, *cutoff, **flags, **({"rtol": None} if relative else {}))


def _pinv_vjp(ct, y, x, *cutoff, hermitian, relative):
    """Golub and Pereyra's formula, transposed, with a constant rank."""
    require_known_types("pinv", ct, x)
    g, yh = conjugate(ct), adjoint(y)
    first, second = adjoint(g) @ y @ yh, yh @ y @ adjoint(g)
    total = -(yh @ g @ yh) + (first - x @ (y @ first)) + (second - (second @ y) @ x)
    cotangent = conjugate(hermitian_part(total) if hermitian else total)
    return unbroadcast(cotangent, x), *[None] * len(cutoff)


def _pinv_jvp(tangents, y, x, *cutoff, hermitian, relative):
    """Golub and Pereyra's formula, with a constant rank."""
    if tangents[0] is None:  # only the cutoff has a tangent
        return None
    change = hermitian_part(tangents[0]) if hermitian else tangents[0]
    yh = adjoint(y)
    first, second = y @ yh @ adjoint(change), adjoint(change) @ yh @ y
    return -(y @ change @ y) + (first - (first @ x) @ y) + (second - y @ (x @ second))


PINV_RULES = {"vjp": _pinv_vjp, "jvp": _pinv_jvp}  # also of scipy.linalg.pinv and pinvh


@batch_first
def _batched_pinv(args, mapped, **attrs):
    """The batching rule of pinv, whose cutoffs have the leading axes of the matrices."""
    x, *cutoff = args
    if not cutoff:
        return emit_op("pinv", args, **attrs)
    x, (limit,) = broadcast_batch(x, mapped[0], cutoff[0]), cutoff
    if mapped[1]:  # cutoffs cannot have axes that the matrices lack
        limit = widen_rank(limit, rank_of(x, True) - 2)
    return emit_op("pinv", (x, limit), **attrs)


def _pinv_source(write, x, *cutoff, hermitian, relative):
    """A call of np.linalg.pinv with the given arguments."""
    rtol = {"rtol": None} if relative else {}
    return write.call("np.linalg.pinv", x, *cutoff, hermitian=hermitian, **rtol)


pinv = define(
    "pinv",
    _pinv_impl,
    _pinv_aval,
    vjp=_pinv_vjp,
    jvp=_pinv_jvp,
    prepare=_pinv_prepare,
    numpy=(np.linalg.pinv,),
    batch=_batched_pinv,
    source=_pinv_source,
    raises=True,
)

# ---- matrix_rank ----


def _matrix_rank_prepare(A, tol=None, hermitian=False, *, rtol=None):
    """np.linalg.matrix_rank, where a given cutoff is an operand.

    ``relative``: the cutoff is relative to the largest singular value.
    """
    if tol is not None and rtol is not None:
        raise ShapeError("matrix_rank: tol and rtol cannot both be given\n  leave one of them out")
    cutoff = [c for c in (tol, rtol) if c is not None]
    return (A, *cutoff), {"hermitian": bool(hermitian), "relative": rtol is not None}


def _matrix_rank_aval(x, *cutoff, hermitian, relative):
    """One integer for each matrix; a vector has rank 0 or 1, a Python number."""
    if x.ndim < 2:
        return WEAK[int]
    linalg_dtype("matrix_rank", x)
    return ArrayType(np.intp, broadcast_shapes(x.shape[:-2], *[c.shape for c in cutoff]))


def _matrix_rank_impl(xp, x, *cutoff, hermitian=False, relative=False):
    """np.linalg.matrix_rank, which returns a Python number for a vector."""
    flags = {"hermitian": True} if hermitian else {}
    named = {"rtol" if relative else "tol": cutoff[0]} if cutoff else {}
    result = xp.linalg.matrix_rank(x, **named, **flags)
    return int(result) if xp.ndim(x) < 2 else result


def _matrix_rank_decompose(x, *cutoff, hermitian=False, relative=False):
    """The number of singular values above the cutoff."""
    if x.ndim < 2:
        return PRIMITIVES["weaken"](any_(x != 0).astype(int))
    (s,) = svd(x, compute_uv=False, hermitian=hermitian)
    limit = expand_dims(cutoff[0] * ones_like(s[..., 0]), -1) if cutoff else None
    if limit is None or relative:
        rtol = max(x.shape[-2:]) * float(np.finfo(s.dtype).eps) if limit is None else limit
        limit = max_(s, axis=-1, keepdims=True, initial=0) * rtol
    return sum_(s > limit, axis=-1, dtype=np.intp)


def _matrix_rank_source(write, x, *cutoff, hermitian, relative):
    """A call of np.linalg.matrix_rank with the given arguments."""
    named = [f"{'rtol' if relative else 'tol'}={c}" for c in cutoff]
    return write.call("np.linalg.matrix_rank", x, *named, hermitian=hermitian)


matrix_rank = composite(
    "matrix_rank",
    _matrix_rank_decompose,
    impl=_matrix_rank_impl,
    aval=_matrix_rank_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=_matrix_rank_prepare,
    numpy=(np.linalg.matrix_rank,),
    source=_matrix_rank_source,
    batch=composite_batch(functools.partial(decomposition, _matrix_rank_decompose), False),
    raises=True,
)

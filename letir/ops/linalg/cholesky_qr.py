"""Triangular decompositions of matrices: cholesky and qr.

The derivatives hold where the factors are smooth functions of the matrix; each rule says what
happens elsewhere. Derivatives with respect to a Hermitian matrix are taken through its Hermitian
part, as in JAX: NumPy reads one triangle only, but the cotangent is shared by both.

Sources: Murray, Differentiation of the Cholesky decomposition (2016); Walter, Lehmann and Lamour,
On evaluating higher-order derivatives of the QR decomposition (2012), and Seeger et al.,
Auto-differentiating linear algebra (2017).
"""

import numpy as np

from letir.ast.builder import Value
from letir.ast.symbolic_sizes import smaller_size
from letir.ast.types import ArrayType
from letir.errors import MissingRule, mark_unrecorded_code
from letir.ops.define.records import add_terms, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import imag, real_part
from letir.ops.linalg.matmul_einsum import swap_last_axes
from letir.ops.linalg.matrix_parts import (
    adjoint,
    below_diagonal,
    conjugate,
    is_on_diagonal,
    linalg_dtype,
    lower_half_diagonal,
    matrix_shape,
    named_tuple,
    require_known_types,
    shared_cotangent,
    shared_tangent,
    square_aval,
    stacked_rule,
)
from letir.ops.linalg.solve_inv_det import inv
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.shape_and_creation import zeros_like

# ---- cholesky ----


def _cholesky_vjp(ct, y, x, *, upper):
    """Murray's formula: inv(L)^H P inv(L), with P the lower triangle of L^H G and half its
    diagonal.
    """
    require_known_types("cholesky", ct, x)
    factor, g = (adjoint(y), swap_last_axes(ct)) if upper else (y, conjugate(ct))
    inner = lower_half_diagonal(adjoint(factor) @ g)
    inverse = inv(factor)
    by_x = adjoint(inverse) @ inner @ inverse
    return (unbroadcast(conjugate(shared_cotangent(by_x, x, upper)), x),)


def _cholesky_jvp(tangents, y, x, *, upper):
    """L times the lower triangle of inv(L) dA inv(L)^H, with half its diagonal."""
    factor = adjoint(y) if upper else y
    inverse = inv(factor)
    along = shared_tangent(tangents[0], x, upper)
    change = factor @ lower_half_diagonal(inverse @ along @ adjoint(inverse))
    return adjoint(change) if upper else change


cholesky = define(
    "cholesky",
    lambda xp, x, *, upper=False: xp.linalg.cholesky(x, **({"upper": True} if upper else {})),
    square_aval("cholesky"),
    vjp=_cholesky_vjp,
    jvp=_cholesky_jvp,
    prepare=lambda a, /, *, upper=False: ((a,), {"upper": bool(upper)}),
    numpy=(np.linalg.cholesky,),
    batch=stacked_rule("cholesky"),
    raises=True,
)

# ---- qr ----


def _qr_aval(x, *, mode):
    """The types of Q and R, or of R alone; Q is square in mode "complete"."""
    lead, m, n = matrix_shape("qr", x)
    k = m if mode == "complete" or m == n else smaller_size(m, n)
    dtype = linalg_dtype("qr", x)
    r = ArrayType(dtype, (*lead, k if mode != "complete" else m, n))
    return (r,) if mode == "r" else (ArrayType(dtype, (*lead, m, k)), r)


def _qr_prepare(a, mode="reduced"):
    """np.linalg.qr."""
    if mode not in ("reduced", "complete", "r"):
        raise mark_unrecorded_code(
            MissingRule(
                f"qr: mode {mode!r} is not recorded: it returns LAPACK's Householder vectors\n"
                "  use mode='reduced', 'complete' or 'r'"
            )
        )
    return (a,), {"mode": mode}


def _thin_factors(q: Value, r: Value) -> tuple[Value, Value]:
    """The first k columns of Q and the first k rows of R, with k the smaller size of the matrix."""
    if q.shape[-2] == r.shape[-1]:  # square: the sizes may be symbolic
        return q, r
    k = smaller_size(r.shape[-1], q.shape[-2])
    return _first_columns(q, k), _first_rows(r, k)


def _first_columns(x: Value, k) -> Value:
    """The first ``k`` columns."""
    return x if x.shape[-1] == k else x[..., :k]


def _first_rows(x: Value, k) -> Value:
    """The first ``k`` rows."""
    return x if x.shape[-2] == k else x[..., :k, :]


def _qr_factors(outs: tuple, x: Value, mode: str) -> tuple[Value, Value]:
    """Thin Q and R of ``x``, taken from the results if Q is among them."""
    return tuple(qr(x, "reduced")) if mode == "r" else _thin_factors(*outs)


def _qr_vjp(cts, outs, x, *, mode):
    """The VJP of thin Q and square R; the columns of R beyond them are products with Q^H.

    For a tall matrix in mode "complete" the further columns of Q rotate with the first columns, but
    not within their own span. There is no derivative if the first columns lack full rank: R is
    singular.
    """
    require_known_types("qr", x)
    q, r = _qr_factors(outs, x, mode)
    by_q, by_r = (None, *cts) if mode == "r" else cts
    by_q, by_r = [None if ct is None else conjugate(ct) for ct in (by_q, by_r)]
    k, by_rest = q.shape[-1], None
    if by_q is not None and by_q.shape[-1] != k:
        rest = outs[0][..., k:]
        by_q, by_others = by_q[..., :k], by_q[..., k:]
        by_q = by_q - rest @ (adjoint(by_others) @ q)
    if by_r is not None:
        by_r = _first_rows(by_r, k)
    if r.shape[-1] != k:  # wide: R2 = Q^H A2
        by_r2 = zeros_like(r[..., k:]) if by_r is None else by_r[..., k:]
        by_rest = q @ by_r2
        turned = x[..., k:] @ adjoint(by_r2)
        by_q = turned if by_q is None else by_q + turned
        by_r = None if by_r is None else by_r[..., :k]
    cotangent = _qr_square_vjp(by_q, by_r, q, _first_columns(r, k))
    if by_rest is not None:
        cotangent = concatenate([cotangent, by_rest], axis=-1)
    return (unbroadcast(conjugate(cotangent), x),)


def _qr_square_vjp(by_q, by_r, q: Value, r: Value) -> Value:
    """Seeger et al.: (G_Q + Q copyltu(M)) R^-H with M = R G_R^H - G_Q^H Q."""
    terms = [] if by_r is None else [r @ adjoint(by_r)]
    terms += [] if by_q is None else [-(adjoint(by_q) @ q)]
    inner = add_terms(terms)
    below = where(below_diagonal(inner), inner, 0)
    # the real part of the diagonal: the diagonal of R is real
    both = below + adjoint(below) + where(is_on_diagonal(inner), real_part(inner), 0)
    product = q @ both
    return (product if by_q is None else by_q + product) @ adjoint(inv(r))


def _qr_jvp(tangents, outs, x, *, mode):
    """dQ = Q X + (I - Q Q^H) dA inv(R), with X skew-Hermitian, and dR = Q^H dA - X R."""
    q, r = _qr_factors(outs, x, mode)
    change, k = tangents[0], q.shape[-1]
    scaled = _first_columns(change, k) @ inv(_first_columns(r, k))
    inner = adjoint(q) @ scaled
    below = where(below_diagonal(inner), inner, 0)
    skew = below - adjoint(below)
    if q.dtype.kind == "c":
        skew = skew + where(is_on_diagonal(inner), 1j * imag(inner), 0)
    dq = q @ (skew - inner) + scaled
    dr = adjoint(q) @ change - skew @ r
    # elements below the diagonal are rounding errors
    dr = where(below_diagonal(dr), 0, dr)
    if mode == "r":
        return (dr,)
    full = outs[0].shape[-1]
    if full != k:
        dr = concatenate([dr, zeros_like(outs[1][..., k:, :])], axis=-2)
        dq = concatenate([dq, -(q @ (adjoint(dq) @ outs[0][..., k:]))], axis=-1)
    return dq, dr


QR_RULES = {"vjp": _qr_vjp, "jvp": _qr_jvp}  # also of scipy.linalg.qr


def _qr_source(write, x, *, mode):
    """A call of np.linalg.qr, as a tuple also in mode "r"."""
    text = f"np.linalg.qr({x}, mode={mode!r})"
    return f"({text},)" if mode == "r" else text


qr = define(
    "qr",
    lambda xp, x, *, mode="reduced": (
        (xp.linalg.qr(x, mode="r"),) if mode == "r" else tuple(xp.linalg.qr(x, mode=mode))
    ),
    _qr_aval,
    vjp=_qr_vjp,
    jvp=_qr_jvp,
    results=lambda *, mode: 1 if mode == "r" else 2,
    returned=lambda results, *, mode: (
        results[0] if mode == "r" else named_tuple(np.linalg.qr)(*results)
    ),
    prepare=_qr_prepare,
    numpy=(np.linalg.qr,),
    batch=stacked_rule("qr"),
    source=_qr_source,
)

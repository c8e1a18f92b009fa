"""Derivatives of some functions of ``scipy.linalg`` that ``scipy_call`` computes.

A rule takes the results that SciPy found, so that derivatives belong to the signs and phases of
its eigenvectors; ``letir.ops.linalg.eigen`` has the formulas and their sources.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.builder import Value
from letir.ops.define.records import add_terms
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import abs_, real_part
from letir.ops.indexing.take import take_along_axis
from letir.ops.linalg.cholesky_qr import QR_RULES
from letir.ops.linalg.eigen import EIG_RULES, eig, eigh
from letir.ops.linalg.matrix_parts import (
    adjoint,
    columns_times,
    conjugate,
    diagonal_of,
    inverse_or_zero,
    require_known_types,
    shared_cotangent,
    shared_tangent,
)
from letir.ops.linalg.svd import PINV_RULES
from letir.ops.reductions.cumulative import number_along
from letir.ops.reductions.reductions import argmin, max_
from letir.ops.shape.unit_axes_and_flip import expand_dims

_UNIMPORTANT = frozenset(["check_finite", "driver", "lwork", "overwrite_a", "turbo"])
_OF_EIGH = frozenset(["lower", "eigvals_only", "subset_by_index"])


@frozen
class DerivativeRules:
    """``vjp(cts, outs, x, keywords)`` and ``jvp(tangent, outs, x, keywords)`` of a function of one
    matrix; ``keywords``: the arguments for which they hold.
    """

    vjp: Callable[..., Value]
    jvp: Callable[..., tuple]
    keywords: frozenset[str] = frozenset()

    def hold_for(self, positional: Any, keywords: dict) -> bool:
        """Whether a call with these arguments has these rules."""
        known = keywords.keys() <= self.keywords | _UNIMPORTANT
        return known and len(positional) == 1 and keywords.get("mode", "full") in _QR_MODES


# ---- general matrices: eig, eigvals ----


def _as_real(w: Value, v: Value) -> Value:
    """Eigenvalues in the dtype of the eigenvectors: SciPy's are always complex."""
    return w if v.dtype.kind == "c" else real_part(w)


def _eig_vjp(cts, outs, x, keywords) -> Value:
    (by_w, by_v), (w, v) = cts, outs
    by_w = None if by_w is None else _as_real(by_w, v)
    (result,) = EIG_RULES["vjp"]((by_w, by_v), (_as_real(w, v), v), x, real=v.dtype.kind != "c")
    return result


def _eig_jvp(tangent, outs, x, keywords) -> tuple:
    w, v = outs
    dw, dv = EIG_RULES["jvp"]((tangent,), (_as_real(w, v), v), x, real=v.dtype.kind != "c")
    return dw.astype(w.dtype), dv


def _complex_eig(w: Value, x: Value) -> tuple:
    """The eigenvalues ``w`` of a matrix, and complex eigenvectors in their order.

    LAPACK may find the eigenvalues of a real matrix and of its complex copy in different orders.
    """
    found, v = x.emitter.apply(eig, (x.astype(w.dtype),), eig.complete({"real": False}))
    least = float(np.sqrt(np.finfo(w.dtype).eps))
    is_same = abs_(found - w) <= least * max_(abs_(w), axis=-1, keepdims=True)
    nearest = argmin(abs_(expand_dims(found, -2) - expand_dims(w, -1)), axis=-1)
    order = where(is_same, number_along(w, -1) - 1, nearest)
    return w, take_along_axis(v, expand_dims(order, -2), -1)


def _eigvals_vjp(cts, outs, x, keywords) -> Value:
    pair = _complex_eig(outs[0], x)
    (result,) = EIG_RULES["vjp"]((cts[0], None), pair, x.astype(outs[0].dtype), real=False)
    return result if x.dtype.kind == "c" else real_part(result)


def _eigvals_jvp(tangent, outs, x, keywords) -> tuple:
    pair = _complex_eig(outs[0], x)
    return (EIG_RULES["jvp"]((tangent,), pair, x, real=False)[0],)


# ---- Hermitian matrices, some of their eigenvalues by number ----


def _chosen(outs: tuple, x: Value, keywords: dict) -> tuple:
    """(all eigenvectors, the chosen ones as SciPy has them, 1 / (w_j - w_i) for chosen j)."""
    require_known_types("eigh", x)
    w, every = eigh(x, "L" if keywords.get("lower", True) else "U")
    low, high = keywords.get("subset_by_index") or (0, x.shape[-1] - 1)
    chosen = outs[1] if len(outs) > 1 else every[..., low : high + 1]
    gaps = expand_dims(w[..., low : high + 1], -2) - expand_dims(w, -1)
    return every, chosen, inverse_or_zero(gaps)


def _eigh_vjp(cts, outs, x, keywords) -> Value:
    every, v, inverse = _chosen(outs, x, keywords)
    terms = [None if cts[0] is None else columns_times(v, cts[0])]
    if len(cts) > 1 and cts[1] is not None:
        terms.append(every @ (inverse * (adjoint(every) @ conjugate(cts[1]))))
    by_x = add_terms(terms) @ adjoint(v)  # type: ignore[operator]
    return conjugate(shared_cotangent(by_x, x, not keywords.get("lower", True)))


def _eigh_jvp(tangent, outs, x, keywords) -> tuple:
    every, v, inverse = _chosen(outs, x, keywords)
    along = shared_tangent(tangent, x, not keywords.get("lower", True)) @ v
    dw = real_part(diagonal_of(adjoint(v) @ along))
    return (dw, every @ (inverse * (adjoint(every) @ along)))[: len(outs)]


# ---- QR factors, pseudoinverses ----

_QR_MODES = {"full": "complete", "economic": "reduced"}


def _qr_vjp(cts, outs, x, keywords) -> Value:
    (result,) = QR_RULES["vjp"](cts, outs, x, mode=_QR_MODES[keywords.get("mode", "full")])
    return result


def _qr_jvp(tangent, outs, x, keywords) -> tuple:
    return QR_RULES["jvp"]((tangent,), outs, x, mode=_QR_MODES[keywords.get("mode", "full")])


def _pinv_rules(hermitian: bool) -> DerivativeRules:
    form = {"hermitian": hermitian, "relative": False}
    return DerivativeRules(
        lambda cts, outs, x, keywords: PINV_RULES["vjp"](cts[0], outs[0], x, **form)[0],
        lambda tangent, outs, x, keywords: (PINV_RULES["jvp"]((tangent,), outs[0], x, **form),),
        frozenset(["atol", "rtol"]) if not hermitian else frozenset(["atol", "rtol", "lower"]),
    )


RULES = {
    "linalg.qr": DerivativeRules(_qr_vjp, _qr_jvp, frozenset(["mode"])),
    "linalg.pinv": _pinv_rules(hermitian=False),
    "linalg.pinvh": _pinv_rules(hermitian=True),
    "linalg.eig": DerivativeRules(_eig_vjp, _eig_jvp),
    "linalg.eigvals": DerivativeRules(_eigvals_vjp, _eigvals_jvp),
    "linalg.eigh": DerivativeRules(_eigh_vjp, _eigh_jvp, _OF_EIGH),
    "linalg.eigvalsh": DerivativeRules(_eigh_vjp, _eigh_jvp, _OF_EIGH),
}
"""The functions with derivatives."""

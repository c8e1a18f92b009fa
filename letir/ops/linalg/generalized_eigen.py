"""Eigenvalues and eigenvectors of Hermitian matrices as ``scipy.linalg.eigh`` computes them.

``generalized_eigh`` of a pair solves ``A v = w B v`` with a positive definite B. Its derivatives
follow from ``V^H A V = W`` and ``V^H B V = I``; see ``eigen`` for equal eigenvalues.
"""

from typing import Any

from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.record_fields import never
from letir.ast.types import ArrayType
from letir.errors import ShapeError
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.records import add_terms, define
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import real_part
from letir.ops.linalg.eigen import inverse_differences
from letir.ops.linalg.matrix_parts import (
    adjoint,
    columns_times,
    conjugate,
    diagonal_of,
    is_on_diagonal,
    linalg_dtype,
    real_dtype,
    require_known_types,
    shared_cotangent,
    shared_tangent,
    square_shape,
)
from letir.ops.special.define import scipy_or_cupy_function


def _eigh_impl(xp, a, *b, lower=True):
    """scipy.linalg.eigh."""
    return tuple(scipy_or_cupy_function(xp, "linalg", "eigh")(a, *b, lower=lower))


def _eigh_aval(a, *b, lower):
    """The types of the real eigenvalues, and of the eigenvectors as columns."""
    _, n = square_shape("generalized_eigh", a)
    if len(b) > 1 or a.ndim != 2 or any(each.shape != a.shape for each in b):
        raise ShapeError(
            f"eigh: one or two matrices of the same shape are expected, found "
            f"{', '.join(str(each.shape) for each in (a, *b))}\n  pass a and b of shape (n, n)"
        )
    dtype = linalg_dtype("eigh", a, *b)
    return ArrayType(real_dtype(dtype), (n,)), ArrayType(dtype, a.shape)


def _diagonal_part(x: Value) -> Value:
    """A square matrix with zeros off the diagonal."""
    return where(is_on_diagonal(x), x, 0)


def _eigh_vjp(cts, outs, a, *b, lower) -> tuple:
    """``V S V^H`` with ``S = diag(gw) + F * P`` and ``P = V^H gV`` for a, and for b
    ``-V (S diag(w) + diag(P) / 2) V^H``; shared by both triangles.
    """
    require_known_types("eigh", a, *b)
    (by_w, by_v), (w, v) = cts, outs
    inner = None if by_v is None else adjoint(v) @ conjugate(by_v)
    straight = None if by_w is None else _diagonal_matrix(by_w, v)
    turned = None if inner is None else inverse_differences(w) * inner
    by_a = add_terms([straight, turned])
    results = [by_a]
    if b:
        half = None if inner is None else _diagonal_part(inner) * 0.5
        results.append(-add_terms([columns_times(by_a, w), half]))  # type: ignore[arg-type]
    return tuple(
        [
            conjugate(shared_cotangent(v @ s @ adjoint(v), x, not lower))
            for s, x in zip(results, (a, *b), strict=True)
        ]
    )


def _diagonal_matrix(d: Value, v: Value) -> Value:
    """``diag(d)``, of the dtype of ``v``."""
    return columns_times(where(is_on_diagonal(v), 1, v * 0), d)


def _eigh_jvp(tangents, outs, a, *b, lower) -> tuple:
    """The real diagonal of ``M = V^H (dA V - dB V W)``; ``V (F * M - diag(V^H dB V) / 2)``."""
    w, v = outs
    along_a, along_b = [
        None if t is None else adjoint(v) @ shared_tangent(t, x, not lower) @ v
        for t, x in zip((*tangents, None)[:2], (a, *b, None)[:2], strict=True)
    ]
    scaled = None if along_b is None else -columns_times(along_b, w)
    inner: Any = add_terms([along_a, scaled])
    half = None if along_b is None else _diagonal_part(along_b) * -0.5
    turn: Any = add_terms([inverse_differences(w) * inner, half])
    return real_part(diagonal_of(inner)), v @ turn


def _eigh_source(write, *matrices, lower):
    """A call of scipy.linalg.eigh, and its two results."""
    called = write.writer.module.imported("scipy.linalg", "eigh")
    whole = write.named("eigh")
    write.line(f"{whole} = {called}({', '.join(matrices)}, lower={lower})")
    return f"{whole}[0]", f"{whole}[1]"


generalized_eigh: Primitive = define(
    "generalized_eigh",
    _eigh_impl,
    _eigh_aval,
    vjp=_eigh_vjp,
    jvp=_eigh_jvp,
    results=lambda *, lower: 2,
    batch=LoopOverExamples(lambda: generalized_eigh),
    source=_eigh_source,
    onnx=never("ONNX has no eigenvalues of pairs of matrices"),
    raises=True,
)

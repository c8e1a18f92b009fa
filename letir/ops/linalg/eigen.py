"""Eigenvalues and eigenvectors: eigh, eigvalsh, eig, eigvals.

Sources: Giles, Collected matrix derivative results (2008); for complex results Boeddeker,
Hanebrink, Drude, Heymann and Haeb-Umbach, On the computation of complex-valued gradients with
application to statistically optimum beamforming (2017), equation 4.77.

The eigenvectors of equal eigenvalues are determined only up to a rotation, which the derivative
ignores: it is right for functions that do not depend on the rotation, such as a sum over functions
of the eigenvalues, or the projector on the span of the eigenvectors. Second derivatives at a matrix
with equal eigenvalues are wrong even for these.
"""

import numpy as np

from letir.ast.builder import Value
from letir.ast.types import ArrayType
from letir.errors import DTypeError, GuardError, ShapeError, TraceError
from letir.ops.define.records import add_terms, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import abs_, imag, real_part
from letir.ops.linalg.matrix_parts import (
    adjoint,
    columns_times,
    conjugate,
    diagonal_of,
    inverse_or_zero,
    known_value,
    linalg_dtype,
    named_tuple,
    real_dtype,
    require_known_types,
    rows_times,
    shared_cotangent,
    shared_tangent,
    square_shape,
    stacked_rule,
)
from letir.ops.linalg.solve_inv_det import inv, solve
from letir.ops.reductions.cumulative import number_along
from letir.ops.reductions.reductions import argmax, sum_
from letir.ops.shape.unit_axes_and_flip import expand_dims

# ---- Hermitian matrices ----


def inverse_differences(w: Value) -> Value:
    """1 / (w_j - w_i) at row i and column j; 0 for equal eigenvalues."""
    return inverse_or_zero(expand_dims(w, -2) - expand_dims(w, -1))


def _eigh_aval(x, *, UPLO):
    """The types of the real eigenvalues, and of the eigenvectors as columns."""
    lead, n = square_shape("eigh", x)
    dtype = linalg_dtype("eigh", x)
    return ArrayType(real_dtype(dtype), (*lead, n)), ArrayType(dtype, x.shape)


def _eigh_vjp(cts, outs, x, *, UPLO):
    """V (diag(gw) + F * (V^H G)) V^H, shared by both triangles."""
    require_known_types("eigh", x)
    (by_w, by_v), (w, v) = cts, outs
    terms = [] if by_w is None else [columns_times(v, by_w)]
    if by_v is not None:
        terms.append(v @ (inverse_differences(w) * (adjoint(v) @ conjugate(by_v))))
    by_x = shared_cotangent(add_terms(terms) @ adjoint(v), x, UPLO == "U")
    return (unbroadcast(conjugate(by_x), x),)


def _eigh_jvp(tangents, outs, x, *, UPLO):
    """The real diagonal of V^H dA V; V times F * (V^H dA V)."""
    w, v = outs
    inner = adjoint(v) @ shared_tangent(tangents[0], x, UPLO == "U") @ v
    return real_part(diagonal_of(inner)), v @ (inverse_differences(w) * inner)


def _check_uplo(UPLO: str) -> str:
    """``UPLO`` in upper case. Raises ShapeError unless it is 'L' or 'U'."""
    if str(UPLO).upper() not in ("L", "U"):
        raise ShapeError(
            f"UPLO argument must be 'L' or 'U', found {UPLO!r}\n"
            "  write UPLO='L' for the lower triangle, 'U' for the upper"
        )
    return str(UPLO).upper()


eigh = define(
    "eigh",
    lambda xp, x, *, UPLO="L": tuple(xp.linalg.eigh(x, UPLO)),
    _eigh_aval,
    vjp=_eigh_vjp,
    jvp=_eigh_jvp,
    results=lambda *, UPLO: 2,
    returned=lambda results, *, UPLO: named_tuple(np.linalg.eigh)(*results),
    prepare=lambda a, UPLO="L": ((a,), {"UPLO": _check_uplo(UPLO)}),
    numpy=(np.linalg.eigh,),
    batch=stacked_rule("eigh"),
    raises=True,
)


def _eigvalsh_vjp(ct, y, x, *, UPLO):
    """V diag(ct) V^H."""
    _, v = eigh(x, UPLO)
    by_x = shared_cotangent(columns_times(v, ct) @ adjoint(v), x, UPLO == "U")
    return (unbroadcast(conjugate(by_x), x),)


def _eigvalsh_jvp(tangents, y, x, *, UPLO):
    """The real diagonal of V^H dA V."""
    _, v = eigh(x, UPLO)
    along = shared_tangent(tangents[0], x, UPLO == "U")
    return real_part(diagonal_of(adjoint(v) @ along @ v))


eigvalsh = define(
    "eigvalsh",
    lambda xp, x, *, UPLO="L": xp.linalg.eigvalsh(x, UPLO),
    lambda x, *, UPLO: _eigh_aval(x, UPLO=UPLO)[0],
    vjp=_eigvalsh_vjp,
    jvp=_eigvalsh_jvp,
    prepare=lambda a, UPLO="L": ((a,), {"UPLO": _check_uplo(UPLO)}),
    numpy=(np.linalg.eigvalsh,),
    batch=stacked_rule("eigvalsh"),
    raises=True,
)

# ---- all square matrices ----


# since 2.5 NumPy returns complex eigenvalues for every real matrix, before only if some are complex
_ALWAYS_COMPLEX = np.lib.NumpyVersion(np.__version__) >= "2.5.0"


def _has_real_eigenvalues(a) -> bool:
    """Whether all eigenvalues of ``a`` are real. Raises TraceError for a real matrix whose values
    are unknown.
    """
    if a.dtype.kind == "c":
        return False
    value = known_value(a)
    if value is None:
        raise TraceError(
            "eig: whether the eigenvalues of a real matrix are real depends on its values, "
            "which are not known\n  trace with concrete arguments, or make them complex: "
            "numpy.linalg.eig(x.astype(complex))"
        )
    square_shape("eig", value)  # the type rule's error, which newer NumPy reaches first
    return not bool(np.linalg.eigvals(value).imag.any())


def _eig_prepare(a):
    """np.linalg.eig and eigvals. ``real``: the results are real."""
    return (a,), {"real": not _ALWAYS_COMPLEX and _has_real_eigenvalues(a)}


def _eigvals_aval(x, *, real):
    """The type of the eigenvalues: complex unless ``real``."""
    lead, n = square_shape("eig", x)
    dtype = linalg_dtype("eig", x)
    if real and dtype.kind == "c":
        raise DTypeError(
            "eig: the eigenvalues of a complex matrix are complex numbers\n"
            "  make the matrix complex: a.astype(complex)"
        )
    wide = dtype if real or dtype.kind == "c" else np.result_type(dtype, np.complex64)
    return ArrayType(wide, (*lead, n))


def _eig_aval(x, *, real):
    """The types of the eigenvalues, and of the eigenvectors as columns."""
    values = _eigvals_aval(x, real=real)
    return values, ArrayType(values.dtype, x.shape)


def _as_recorded(values, real: bool):
    """Eigenvalues or eigenvectors, real or complex as they were recorded; an empty stack is both.

    Raises GuardError if they were recorded as real and are complex now, or the reverse.
    """
    if real and values.dtype.kind == "c":
        if values.imag.any():
            raise GuardError(
                "the program was recorded where all eigenvalues were real, now some are not\n"
                "  trace again with these arguments, or write numpy.linalg.eig(x.astype(complex))"
            )
        return values.real.copy()
    if real or values.dtype.kind == "c":
        return values
    if values.size == 0:
        return values.astype(np.result_type(values.dtype, np.complex64))
    raise GuardError(
        "the program was recorded where some eigenvalues were not real, now all are\n"
        "  trace again with these arguments, or write numpy.linalg.eig(x.astype(complex))"
    )


def _eig_impl(xp, x, *, real):
    """np.linalg.eig, with real or complex results as recorded."""
    w, v = xp.linalg.eig(x)
    return _as_recorded(w, real), _as_recorded(v, real)


def _project_on_unit_length(by_v: Value, v: Value) -> Value:
    """The cotangent of the eigenvectors, projected on changes that keep their normalisation.

    LAPACK gives eigenvectors length 1, and makes the largest component of complex ones real.
    """
    h = diagonal_of(adjoint(v) @ by_v)
    along = columns_times(v, real_part(h))
    if v.dtype.kind != "c":
        return by_v - along
    largest, size = _real_component(v)
    return by_v - along - where(largest, 1j * expand_dims(imag(h) / size, -2), 0)


def _real_component(v: Value) -> tuple[Value, Value]:
    """(where each eigenvector has its real component, that component)."""
    size = where(imag(v) == 0, abs_(v), -1)
    place = expand_dims(argmax(size, axis=-2), -2)
    largest = number_along(v, -2) == place + 1
    return largest, sum_(where(largest, real_part(v), 0), axis=-2)


def _eig_vjp(cts, outs, x, *, real):
    """V^-H (diag(gw) + conj(F) * (V^H G)) V^H. A defective matrix has no derivative."""
    require_known_types("eig", x)
    (by_w, by_v), (w, v) = cts, outs
    terms = [] if by_w is None else [rows_times(conjugate(by_w), adjoint(v))]
    if by_v is not None:
        g = _project_on_unit_length(conjugate(by_v), v)
        terms.append((conjugate(inverse_differences(w)) * (adjoint(v) @ g)) @ adjoint(v))
    return (unbroadcast(conjugate(solve(adjoint(v), add_terms(terms))), x),)


def _eig_jvp(tangents, outs, x, *, real):
    """The diagonal of inv(V) dA V; V times F * (inv(V) dA V), normalised."""
    w, v = outs
    inner = solve(v, tangents[0] @ v)
    dw, dv = diagonal_of(inner), v @ (inverse_differences(w) * inner)
    length = real_part(diagonal_of(adjoint(v) @ dv))
    if v.dtype.kind != "c":
        return dw, dv - columns_times(v, length)
    largest, size = _real_component(v)
    phase = sum_(where(largest, imag(dv), 0), axis=-2) / size
    return dw, dv - columns_times(v, length + 1j * phase)


EIG_RULES = {"vjp": _eig_vjp, "jvp": _eig_jvp}  # also of scipy.linalg.eig


def _source_of(text: str):
    """The ``source`` of ``eig`` or ``eigvals``: a call of NumPy, and the real part if the
    results were recorded as real.
    """

    def source(write, x, *, real):
        result = text.format(x)
        if not (real and _ALWAYS_COMPLEX):
            return result
        return f"tuple(map(np.real, {result}))" if ".eig(" in text else f"np.real({result})"

    return source


eig = define(
    "eig",
    _eig_impl,
    _eig_aval,
    vjp=_eig_vjp,
    jvp=_eig_jvp,
    results=lambda *, real: 2,
    returned=lambda results, *, real: named_tuple(np.linalg.eig)(*results),
    prepare=_eig_prepare,
    numpy=(np.linalg.eig,),
    batch=stacked_rule("eig"),
    source=_source_of("np.linalg.eig({0})"),
    raises=True,
)


def _eigvals_vjp(ct, y, x, *, real):
    """V^-H diag(ct) V^H."""
    _, v = _eig_of(x, real)
    return (unbroadcast(conjugate(columns_times(adjoint(inv(v)), conjugate(ct)) @ adjoint(v)), x),)


def _eig_of(x: Value, real: bool) -> tuple[Value, Value]:
    """``eig`` with real or complex results."""
    return x.emitter.apply(eig, (x,), eig.complete({"real": real}))


def _eigvals_jvp(tangents, y, x, *, real):
    """The diagonal of inv(V) dA V."""
    _, v = _eig_of(x, real)
    return diagonal_of(solve(v, tangents[0] @ v))


eigvals = define(
    "eigvals",
    lambda xp, x, *, real: _as_recorded(xp.linalg.eigvals(x), real),
    _eigvals_aval,
    vjp=_eigvals_vjp,
    jvp=_eigvals_jvp,
    prepare=_eig_prepare,
    numpy=(np.linalg.eigvals,),
    batch=stacked_rule("eigvals"),
    source=_source_of("np.linalg.eigvals({0})"),
    raises=True,
)


def eigvals_real_where_possible(a: Value) -> Value:
    """The eigenvalues of ``a``, real if all of them are, with any version of NumPy."""
    return a.emitter.apply(eigvals, (a,), eigvals.complete({"real": _has_real_eigenvalues(a)}))

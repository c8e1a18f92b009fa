"""Functions of matrices that NumPy lacks: expm, sqrtm, logm, solve_triangular, checked_finite.

The derivative L(A, E) of an analytic function f at A along E is a block of f at a larger matrix:
f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]] (Mathias, A chain rule for matrix functions, SIAM
J. Matrix Anal. Appl., 1996). The transpose of L(A, .) is L(A.T, .).
"""

from collections.abc import Callable

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import never
from letir.ast.types import ArrayType
from letir.errors import GuardError, ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import (
    batch_first,
    broadcast_batch,
    emit_op,
    first_mapped,
    pointwise_rule,
    rank_of,
)
from letir.ops.define.records import add_terms, composite, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.ufuncs import log
from letir.ops.linalg.matmul_einsum import swap_last_axes
from letir.ops.linalg.matrix_logarithm import logarithms
from letir.ops.linalg.matrix_parts import lapack_dtype, require_known_types, square_shape
from letir.ops.linalg.sylvester import solve_sylvester
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.shape_and_creation import zeros_like
from letir.ops.shape.unit_axes_and_flip import expand_dims, squeeze
from letir.ops.special.define import scipy_or_cupy_function
from letir.ops.special.densities import LOG_ROOT_TWO_PI

# ---- analytic functions ----


def _derivative_of(f, a, e):
    """The derivative of ``f`` at ``a`` along ``e``."""
    n = a.shape[-1]
    above = concatenate([a, e], axis=-1)
    below = concatenate([zeros_like(a), a], axis=-1)
    return f(concatenate([above, below], axis=-2))[..., :n, n:]


def _define_analytic(
    name: str, compute: Callable | None = None, derivative: Callable | None = None, **fields
):
    """Register an analytic function of square matrices.

    ``compute(xp, a)``: the function, by default that of ``scipy.linalg``. ``derivative(y, a, e)``:
    the derivative of ``y``, the function of ``a``, along ``e``.
    """
    along = derivative or (lambda y, a, e: _derivative_of(record, a, e))

    def aval(a):
        square_shape(name, a)
        return ArrayType(lapack_dtype(a), a.shape)

    def impl(xp, a):
        out = compute(xp, a) if compute else scipy_or_cupy_function(xp, "linalg", name)(a)
        if out.dtype.kind == "c" and a.dtype.kind != "c":
            # a GuardError: jit records again, for a complex result
            raise GuardError(
                f"the program was recorded for a real {name}, which is complex for this matrix\n"
                "  trace again with this matrix, or pass a.astype(complex)"
            )
        return out.astype(lapack_dtype(a), copy=False)

    def source(write, a):
        return f"{write.writer.module.imported('scipy.linalg', name)}({a})"

    record = define(
        name,
        impl,
        aval,
        vjp=lambda ct, y, a: (unbroadcast(along(swap_last_axes(y), swap_last_axes(a), ct), a),),
        jvp=lambda t, y, a: along(y, a, t[0]),
        batch=batch_first(lambda args, mapped: emit_op(name, args)),
        source=source,
        raises=name != "expm",
        **fields,
    )
    return record


expm = _define_analytic("expm")
# The derivative of Y Y = A solves Y dY + dY Y = dA. Y is on one branch of the root; the root of a
# larger matrix, with other rounding errors, may be on the other one.
sqrtm = _define_analytic("sqrtm", derivative=lambda y, a, e: solve_sylvester(y, y, e))
logm = _define_analytic("logm", logarithms, onnx=never("ONNX has no Schur form"))

# ---- the test of SciPy's option check_finite ----


def _checked_finite_impl(xp, x):
    """``x`` itself. Raises ValueError unless all elements are finite, as scipy.linalg does."""
    if not xp.isfinite(x).all():
        raise ValueError(
            "array must not contain infs or NaNs\n"
            "  functions of scipy.linalg accept them with check_finite=False"
        )
    return x


checked_finite = define(
    "checked_finite",
    _checked_finite_impl,
    lambda x: x.with_shape(x.shape),
    vjp=lambda ct, y, x: (ct,),
    jvp=lambda tangents, y, x: tangents[0],
    batch=pointwise_rule("checked_finite"),
    onnx="Identity",
    source=arrays.operand_itself,
    memory="may_alias",
    cost="cheap",
    raises=True,
    write_through=lambda parent, new: new,
)

# ---- triangular systems ----


def _triangular_impl(
    xp, a, b, *, transposed=False, lower=False, unit_diagonal=False, check_finite=True
):
    """scipy.linalg.solve_triangular, which reads one triangle only."""
    if not b.size:  # SciPy does not take an empty batch
        return xp.zeros(b.shape, lapack_dtype(a, b))
    solve = scipy_or_cupy_function(xp, "linalg", "solve_triangular")
    form = {"lower": lower, "unit_diagonal": unit_diagonal, "check_finite": check_finite}
    result = solve(a, b, trans=int(transposed), **form)
    return result.astype(lapack_dtype(a, b), copy=False)


def _triangular_aval(a, b, *, transposed, lower, unit_diagonal, check_finite):
    """The shape of the right-hand side; it is a vector only if it has one axis."""
    lead, n = square_shape("solve_triangular", a)
    rows = b.shape[-1:] if b.ndim == 1 else b.shape[-2:-1]
    if rows != (n,) or (b.ndim > 1 and b.shape[:-2] != tuple(lead)):
        raise ShapeError(
            f"solve_triangular: {a.shape} and {b.shape} are not a linear system\n"
            "  pass a of shape (n, n) and b of shape (n,) or (n, k)"
        )
    return ArrayType(lapack_dtype(a, b), b.shape)


def _as_column(x, is_vector: bool):
    """A vector as a matrix of one column."""
    return expand_dims(x, -1) if is_vector else x


def _triangular_part(x, lower: bool, unit_diagonal: bool):
    """The part of a matrix that the solver reads."""
    n = x.shape[-1]
    rows, columns = np.arange(n)[:, None], np.arange(n)
    mask = rows >= columns if lower else rows <= columns
    if unit_diagonal:
        mask = mask & (rows != columns)
    return where(mask, x, 0)


def _triangular_vjp(ct, x, a, b, *, transposed, lower, unit_diagonal, check_finite):
    """The solution of the transposed system, and its outer product with x (Giles, Collected matrix
    derivative results, 2.3). Cotangents may be infinite.
    """
    require_known_types("solve_triangular", ct, a, b)
    form = {"lower": lower, "unit_diagonal": unit_diagonal, "check_finite": False}
    by_b = solve_triangular(a, ct, transposed=not transposed, **form)
    left, right = _as_column(by_b, b.ndim == 1), _as_column(x, b.ndim == 1)
    product = right @ swap_last_axes(left) if transposed else left @ swap_last_axes(right)
    return unbroadcast(-_triangular_part(product, lower, unit_diagonal), a), unbroadcast(by_b, b)


def _triangular_jvp(tangents, x, a, b, *, transposed, lower, unit_diagonal, check_finite):
    """The solution of the same system for the right-hand side ``db - da @ x``, which may be
    infinite.
    """
    by_a, by_b = tangents
    if by_a is not None:
        by_a = _triangular_part(by_a, lower, unit_diagonal)
        by_a = -((swap_last_axes(by_a) if transposed else by_a) @ x)
    right = add_terms(t for t in (by_b, by_a) if t is not None)
    form = {"lower": lower, "unit_diagonal": unit_diagonal, "check_finite": False}
    return solve_triangular(a, right, transposed=transposed, **form)


@batch_first
def _triangular_batch(args, mapped, **form):
    """The batching rule: both operands get the batch, and a vector becomes a column."""
    like = first_mapped(args, mapped)
    a, b = [
        broadcast_batch(arg, is_mapped, like) for arg, is_mapped in zip(args, mapped, strict=True)
    ]
    is_vector = rank_of(args[1], mapped[1]) == 1
    if is_vector and a.ndim > 3:
        raise ShapeError(
            "solve_triangular: stacked matrices need a matrix on the right-hand side\n"
            "  add an axis: b[..., None]"
        )
    out = emit_op("solve_triangular", (a, _as_column(b, is_vector)), **form)
    return squeeze(out, -1) if is_vector else out


solve_triangular = define(
    "solve_triangular",
    _triangular_impl,
    _triangular_aval,
    vjp=_triangular_vjp,
    jvp=_triangular_jvp,
    batch=_triangular_batch,
    source=lambda write, a, b, *, transposed, lower, unit_diagonal, check_finite: (
        f"{write.writer.module.imported('scipy.linalg', 'solve_triangular')}({a}, {b}, "
        f"trans={int(transposed)}, lower={lower}, unit_diagonal={unit_diagonal}, "
        f"check_finite={check_finite})"
    ),
    raises=True,
)


# ---- the normal density of vectors ----


def _normal_logpdf_decompose(x, mean, cov):
    """The log density of the rows of ``x``, by the Cholesky factor of the covariance."""
    n = cov.shape[-1]
    factor = PRIMITIVES["cholesky"](cov)
    centred = swap_last_axes((x - mean).reshape((-1, n)))
    whitened = solve_triangular(factor, centred, lower=True)
    determinant = log(PRIMITIVES["diagonal"](factor)).sum()
    result = -0.5 * (whitened * whitened).sum(0) - (determinant + n * LOG_ROOT_TWO_PI)
    return result.reshape(x.shape[:-1])


multivariate_normal_logpdf = composite(
    "multivariate_normal_logpdf", _normal_logpdf_decompose, raises=True
)

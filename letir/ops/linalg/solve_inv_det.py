"""Linear systems, inverses and determinants: solve, inv, det, slogdet, matrix_power, tensorsolve,
tensorinv.

The rules follow Giles, Collected matrix derivative results for forward and reverse mode algorithmic
differentiation (2008), in the convention of ``matrix_parts.py``. ``solve``, ``inv`` and ``slogdet``
have no derivative at a singular matrix, for which NumPy raises LinAlgError. ``det`` has derivatives
everywhere, by its cofactors.
"""

import math
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.types import ArrayType
from letir.errors import DTypeError, MatrixError, ShapeError
from letir.ops.as_numpy import copied_function
from letir.ops.define.batch_rules import align_ranks, batch_first, emit_op, rank_of
from letir.ops.define.records import add_terms, composite, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import imag, real_part
from letir.ops.linalg.matmul_einsum import outer_product, swap_last_axes
from letir.ops.linalg.matrix_parts import (
    adjoint,
    broadcast_leading,
    conjugate,
    diagonal_of,
    is_on_diagonal,
    linalg_dtype,
    named_tuple,
    real_dtype,
    require_known_types,
    rows_times,
    square_aval,
    square_shape,
    stacked_rule,
)
from letir.ops.linalg.svd import svd
from letir.ops.reductions.cumulative import cumprod, number_along
from letir.ops.reductions.reductions import sum_
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.eye_and_arange import eye
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_size, broadcast_to, ones_like, zeros_like
from letir.ops.shape.transpose import transpose
from letir.ops.shape.unit_axes_and_flip import expand_dims, flip, squeeze

# ---- solve ----


def _solve_aval(a, b):
    """The type of the solution: vectors if ``b`` is a vector, else matrices with as many
    columns.
    """
    lead, n = square_shape("solve", a)
    if not b.shape or b.shape[-1 if b.ndim == 1 else -2] != n:
        raise ShapeError(
            f"solve: {a.shape} and {b.shape} are not a linear system: sizes differ\n"
            "  pass a of shape (n, n) and b of shape (n,) or (n, k)"
        )
    dtype = linalg_dtype("solve", a, b)
    if b.ndim == 1:
        return ArrayType(dtype, (*lead, n))
    return ArrayType(dtype, (*broadcast_leading(a, b), n, b.shape[-1]))


def is_vector(b: Any) -> bool:
    """Whether the right-hand side of a system is a single vector: NumPy takes no stacked
    vectors.
    """
    return b.ndim == 1


def _solve_stacked(a: Value, y: Value, vector: bool) -> Value:
    """``solve(a, y)``, where ``y`` holds stacked vectors if ``vector``."""
    stacked = vector and y.ndim > 1  # NumPy takes one vector, but not several
    return squeeze(solve(a, expand_dims(y, -1)), -1) if stacked else solve(a, y)


def _solve_vjp(ct, x, a, b):
    """The solution of the transposed system for ct, and minus its outer product with x."""
    require_known_types("solve", ct, a, b)
    vector = is_vector(b)
    by_b = _solve_stacked(swap_last_axes(a), ct, vector)
    by_a = -(outer_product(by_b, x) if vector else by_b @ swap_last_axes(x))
    return unbroadcast(by_a, a), unbroadcast(by_b, b)


def _solve_jvp(tangents, x, a, b):
    """The solution of the same system for the right-hand side ``db - da @ x``."""
    by_a, by_b = tangents
    vector = is_vector(b)
    if by_a is not None:
        product = squeeze(by_a @ expand_dims(x, -1), -1) if vector else by_a @ x
        by_a = -product
    return _solve_stacked(
        a, broadcast_to(add_terms(t for t in (by_b, by_a) if t is not None), x), vector
    )


@batch_first
def _batched_solve(args, mapped):
    """The batching rule of solve, in which vectors become columns."""
    a, b = args
    vector = rank_of(b, mapped[1]) == 1
    if vector:
        b = emit_op("expand_dims", (b,), axis=-1) if mapped[1] else b[:, None]
    out = emit_op("solve", align_ranks((a, b), mapped))
    return emit_op("squeeze", (out,), axis=-1) if vector else out


solve = define(
    "solve",
    lambda xp, a, b: xp.linalg.solve(a, b),
    _solve_aval,
    vjp=_solve_vjp,
    jvp=_solve_jvp,
    numpy=(np.linalg.solve,),
    batch=_batched_solve,
    raises=True,
)
inv = define(
    "inv",
    lambda xp, x: xp.linalg.inv(x),
    square_aval("inv"),
    vjp=lambda ct, y, x: (unbroadcast(-(swap_last_axes(y) @ ct @ swap_last_axes(y)), x),),
    jvp=lambda t, y, x: -(y @ t[0] @ y),
    numpy=(np.linalg.inv,),
    batch=stacked_rule("inv"),
    raises=True,
)

# ---- determinants ----


def _cofactors_decompose(x):
    """The cofactors: the derivatives of det with respect to each element, of singular matrices too.

    With x = U diag(s) Vh they are det(U) det(Vh) conj(U) diag(products of all other s) conj(Vh).
    """
    u, s, vh = svd(x, full_matrices=False)
    return _scale_by_dets(u, rows_times(_products_of_others(s), conjugate(vh)), vh)


def _products_of_others(s: Value) -> Value:
    """For each number along the last axis, the product of all others: before it times after it."""
    after = flip(cumprod(_shift_right(flip(s, -1)), axis=-1), -1)
    return cumprod(_shift_right(s), axis=-1) * after


def _shift_right(s: Value) -> Value:
    """The numbers along the last axis shifted by one: 1 first, and without the last."""
    if type(s.shape[-1]) is int:
        return concatenate([ones_like(s[..., :1]), s[..., :-1]], axis=-1)
    # an axis of symbolic size cannot be sliced here: a product with a matrix of 0 and 1 shifts it
    square = outer_product(s, s)
    moves = where(number_along(square, -1) == number_along(square, -2) + 1, 1, zeros_like(square))
    moved = squeeze(expand_dims(s, -2) @ moves, -2)
    return where(number_along(s, -1) == 1, 1, moved)


def _scale_by_dets(u: Value, inner: Value, vh: Value) -> Value:
    """det(U) det(Vh) conj(U) @ inner."""
    scale = expand_dims(det(u) * det(vh), (-2, -1))
    return scale * (conjugate(u) @ inner)


def _cofactors_change(direction, x):
    """The derivative of the cofactors of ``x`` in a direction, also for a singular ``x``.

    The singular value decomposition x = U diag(s) Vh reduces it to a diagonal matrix, for which it
    consists of products of all s but two. The second derivative of det is symmetric, so this
    serves the VJP and the JVP.
    """
    u, s, vh = svd(x, full_matrices=False)
    moved = adjoint(u) @ direction @ adjoint(vh)
    # row i has 1 for the i-th singular value, so that the products leave out both i and j
    without = where(is_on_diagonal(moved), 1, broadcast_to(expand_dims(s, -2), moved))
    pairs = where(is_on_diagonal(moved), 0, _products_of_others(without))
    diagonal_part = squeeze(pairs @ expand_dims(diagonal_of(moved), -1), -1)
    inner = where(
        is_on_diagonal(moved), expand_dims(diagonal_part, -1), -(pairs * swap_last_axes(moved))
    )
    return _scale_by_dets(u, inner @ conjugate(vh), vh)


def _cofactors_of(xp, x):
    """det(x) times the transposed inverse, in a tenth of the time of the singular value
    decomposition, which computes the cofactors of singular and ill-conditioned matrices.
    """
    if not x.size:
        return xp.zeros_like(x)
    number = xp.linalg.det(x)
    is_good = xp.isfinite(number) & (number != 0)
    identity = xp.eye(x.shape[-1], dtype=x.dtype)
    inverse = xp.linalg.inv(xp.where(is_good[..., None, None], x, identity))
    # the condition number for the largest sum of a column: the inverse has most of its digits
    condition = xp.abs(x).sum(-2).max(-1) * xp.abs(inverse).sum(-2).max(-1)
    is_good &= condition < xp.finfo(x.dtype).eps ** -0.4
    scale = xp.where(is_good, number, 1)[..., None, None]
    result = scale * xp.swapaxes(inverse, -1, -2)
    if is_good.all():
        return result
    return xp.where(is_good[..., None, None], result, _cofactors_by_svd(xp, x))


def _cofactors_by_svd(xp, x):
    """``_cofactors_decompose`` of arrays."""
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    ones = xp.ones_like(s[..., :1])
    before = xp.cumprod(xp.concatenate([ones, s[..., :-1]], -1), -1)
    after = xp.cumprod(xp.concatenate([ones, s[..., :0:-1]], -1), -1)[..., ::-1]
    scale = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
    return scale * (xp.conj(u) @ ((before * after)[..., None] * xp.conj(vh)))


cofactors = composite(
    "cofactors",
    _cofactors_decompose,
    impl=_cofactors_of,
    source=copied_function(_cofactors_of, _cofactors_by_svd),
    vjp=lambda ct, y, x, *, transform: (unbroadcast(_cofactors_change(ct, x), x),),
    jvp=lambda t, y, x, *, transform: _cofactors_change(t[0], x),
    batch=stacked_rule("cofactors"),
)


def _det_aval(x):
    """One number for each matrix."""
    lead, _ = square_shape("det", x)
    return ArrayType(linalg_dtype("det", x), lead)


det = define(
    "det",
    lambda xp, x: xp.linalg.det(x),
    _det_aval,
    vjp=lambda ct, y, x: (unbroadcast(expand_dims(ct, (-2, -1)) * cofactors(x), x),),
    jvp=lambda t, y, x: sum_(t[0] * cofactors(x), axis=(-2, -1)),
    numpy=(np.linalg.det,),
    batch=stacked_rule("det"),
)


def _slogdet_aval(x):
    """The types of the sign and of the logarithm of the absolute value."""
    lead, _ = square_shape("slogdet", x)
    dtype = linalg_dtype("slogdet", x)
    return ArrayType(dtype, lead), ArrayType(real_dtype(dtype), lead)


def _slogdet_vjp(cts, outs, x):
    """The transposed inverse times the cotangent, since d log(det) = trace(inv(x) @ dx).

    The real part of the trace changes the logarithm, the imaginary part the angle of the sign.
    """
    require_known_types("slogdet", x)
    (by_sign, by_log), (sign, _) = cts, outs
    if sign.dtype.kind != "c" or by_sign is None:
        total = by_log
    else:
        turned = 1j * imag(by_sign * sign)
        total = turned if by_log is None else by_log + turned
    if total is None:
        return (None,)
    return (unbroadcast(expand_dims(total, (-2, -1)) * swap_last_axes(inv(x)), x),)


def _slogdet_jvp(tangents, outs, x):
    """The tangents from the imaginary and the real part of trace(inv(x) @ dx)."""
    sign, _ = outs
    change = sum_(swap_last_axes(inv(x)) * tangents[0], axis=(-2, -1))
    if sign.dtype.kind != "c":
        return zeros_like(sign), change
    return sign * (1j * imag(change)), real_part(change)


slogdet = define(
    "slogdet",
    lambda xp, x: xp.linalg.slogdet(x),
    _slogdet_aval,
    vjp=_slogdet_vjp,
    jvp=_slogdet_jvp,
    results=lambda: 2,
    returned=lambda results: named_tuple(np.linalg.slogdet)(*results),
    numpy=(np.linalg.slogdet,),
    batch=stacked_rule("slogdet"),
)

# ---- powers ----


def _matrix_power_decompose(x, *, n):
    """The power by repeated squaring, of the inverse if ``n`` is negative."""
    square_shape("matrix_power", x.type)
    if type(n) is not int:
        raise DTypeError(f"matrix_power: the exponent is {n!r}\n  pass an integer")
    if n == 0:
        size = x.shape[-1]
        identity = eye.complete({"n": size, "m": size, "k": 0, "dtype": x.dtype})
        return broadcast_to(x.emitter.apply(eye, (), identity), x)
    base, power, n = (x if n > 0 else inv(x)), None, abs(n)
    while n:
        if n % 2:
            power = base if power is None else power @ base
        n //= 2
        base = base @ base if n else base
    return power


matrix_power = composite(
    "matrix_power",
    _matrix_power_decompose,
    impl=lambda xp, x, *, n: xp.linalg.matrix_power(x, n),
    prepare=lambda a, n: ((a,), {"n": as_size(n)}),
    numpy=(np.linalg.matrix_power,),
    memory="may_alias",
    views=lambda x, *, n: n == 1,
    write_through=lambda parent, new, **_: new,
    raises=True,
)

# ---- tensors as matrices ----


def _tensorsolve_decompose(a, b, *, axes=None):
    """``solve`` with ``a`` as a matrix that has a row for each element of ``b``."""
    if axes is not None:  # moved to the end, in this order
        moved = [i % a.ndim for i in axes]
        a = transpose(a, (*[i for i in range(a.ndim) if i not in moved], *moved))
    shape = a.shape[b.ndim :]
    n = math.prod(shape)
    if a.size != n * n or b.size != n:
        raise MatrixError(
            f"tensorsolve: {a.shape} and {b.shape} are not a linear system: "
            "prod(a.shape[b.ndim:]) must be prod(a.shape[:b.ndim])\n"
            "  reshape a to the shape of b followed by the shape of x"
        )
    return reshape(solve(reshape(a, (n, n)), reshape(b, (n,))), shape)


tensorsolve = composite(
    "tensorsolve",
    _tensorsolve_decompose,
    impl=lambda xp, a, b, *, axes=None: xp.linalg.tensorsolve(a, b, axes),
    prepare=lambda a, b, axes=None: (
        (a, b),
        {"axes": None if axes is None else tuple(map(as_size, axes))},
    ),
    numpy=(np.linalg.tensorsolve,),
    raises=True,
)


def _tensorinv_decompose(a, *, ind=2):
    """``inv`` of ``a`` as a matrix whose rows are its first ``ind`` axes."""
    if ind < 1:
        raise ShapeError(
            f"tensorinv: ind must be positive, found {ind}\n"
            "  pass the number of the first axes that are inverted"
        )
    rows, columns = a.shape[:ind], a.shape[ind:]
    flat = reshape(a, (math.prod(rows), math.prod(columns)))
    return reshape(inv(flat), (*columns, *rows))


tensorinv = composite(
    "tensorinv",
    _tensorinv_decompose,
    impl=lambda xp, a, *, ind=2: xp.linalg.tensorinv(a, ind),
    prepare=lambda a, ind=2: ((a,), {"ind": as_size(ind)}),
    numpy=(np.linalg.tensorinv,),
    raises=True,
)

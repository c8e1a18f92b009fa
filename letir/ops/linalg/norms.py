"""Norms and condition numbers: norm, vector_norm, matrix_norm, cond.

A norm has no derivative at 0; the subgradient 0 is taken there (see docs/semantics.md). Norms that
are an extremum share the cotangent among ties; norms computed from singular values are
differentiated through ``svdvals``. Norms of an order below 1 have infinite slopes at elements of 0,
and these get 0 too.
"""

import math

import numpy as np

from letir.ast.builder import Value
from letir.ast.record_fields import SeveralBinds
from letir.errors import MatrixError, ShapeError
from letir.ops.define.batch_rules import batch_first, emit_op, rank_of, shift_axes
from letir.ops.define.composite_programs import composite_rules
from letir.ops.define.records import composite, unbroadcast
from letir.ops.elementwise.comparisons_and_where import isnan, where
from letir.ops.elementwise.rounding_sign_parts import abs_, real_part
from letir.ops.elementwise.ufuncs import sqrt
from letir.ops.linalg.matrix_parts import conjugate, matrix_shape, stacked_rule
from letir.ops.linalg.solve_inv_det import inv
from letir.ops.linalg.svd import svdvals
from letir.ops.reductions.reductions import any_, broadcast_back, max_, min_, sum_
from letir.ops.shape.shape_and_creation import as_flag
from letir.ops.shape.transpose import int_or_tuple, move_axes, normalize_axes
from letir.ops.shape.unit_axes_and_flip import expand_dims

# ---- the Euclidean norm and its derivative rules ----


def _as_floating(x: Value) -> Value:
    """``x``, cast to float64 if it is an integer."""
    return x if x.type.inexact else x.astype(np.float64)


def _euclidean_norm(x: Value, axis, keepdims: bool) -> Value:
    """The square root of the sum of squares, with the derivative 0 at 0."""
    total = sum_(real_part(conjugate(x) * x), axis=axis, keepdims=keepdims)
    return where(total == 0, 0, sqrt(where(total == 0, 1, total)))


def _divide_by_norm(g: Value, y: Value) -> Value:
    """``g / y`` for the norm ``y``, and 0 where it is 0."""
    return where(y == 0, 0, g / where(y == 0, 1, y))


def _euclidean_vjp(ct, y, x, axis, keepdims) -> tuple:
    """ct * conj(x) / norm, and 0 for a norm of 0."""
    return (
        unbroadcast(broadcast_back(_divide_by_norm(ct, y), x, axis, keepdims) * conjugate(x), x),
    )


def _euclidean_jvp(t, y, x, axis, keepdims) -> Value:
    """The component of the tangent along x / norm."""
    return _divide_by_norm(sum_(real_part(conjugate(x) * t), axis=axis, keepdims=keepdims), y)


def _with_euclidean_rules(name: str, decompose, place, **fields):
    """Register a norm. ``place(x, **attrs)`` is the axis if the norm is Euclidean, else _ABSENT.

    A Euclidean norm is differentiated by its result, other norms through their decompositions.
    """
    by_vjp, by_jvp = composite_rules(decompose, False)

    def vjp(ct, y, x, *, transform, **attrs):
        axis = place(x, **attrs)
        if axis is _ABSENT:
            return by_vjp(ct, y, x, transform=transform, **attrs)
        return _euclidean_vjp(ct, y, x, axis, attrs["keepdims"])

    def jvp(tangents, y, x, *, transform, **attrs):
        axis = place(x, **attrs)
        if axis is _ABSENT:
            return by_jvp(tangents, y, x, transform=transform, **attrs)
        return _euclidean_jvp(tangents[0], y, x, axis, attrs["keepdims"])

    return composite(name, decompose, vjp=vjp, jvp=jvp, reduction="parts", **fields)


_SPECTRAL = (2, -2, "nuc")  # orders that need singular values
_ABSENT = object()

# ---- vector_norm ----


def _vector_norm_decompose(x, *, axis=None, keepdims=False, ord=2):
    """The norm of the given order: an extremum of absolute values, the number of nonzero elements,
    or a root of a sum of powers.
    """
    x, reduced = _as_floating(x), {"axis": axis, "keepdims": keepdims}
    if axis is not None:
        normalize_axes(axis, x.ndim)  # NumPy's norms refuse an axis for a number, unlike its sums
    if isinstance(ord, str):
        raise ShapeError(
            f"norm: the order {ord!r} is for matrices, not for vectors\n"
            "  pass a number, np.inf or -np.inf for a vector"
        )
    if ord is None or ord == 2:
        return _euclidean_norm(x, **reduced)
    size = abs_(x)
    if ord == math.inf:
        return max_(size, **reduced, initial=0)
    if ord == -math.inf:
        return min_(size, **reduced)
    if ord == 0:
        return sum_((x != 0).astype(size.dtype), **reduced)
    if ord == 1:
        return sum_(size, **reduced)
    # 0 is replaced: 0 ** (p - 1) for p < 1, and the root at 0, have infinite derivatives
    powers = where(size == 0, 0 if ord > 0 else math.inf, where(size == 0, 1, size) ** ord)
    total = sum_(powers, **reduced)
    is_end = (total == 0) | (total == math.inf)
    root = where(is_end, 1, total) ** (1 / ord)
    return where(is_end, total if ord > 0 else 1 / total, root)


def _vector_norm_place(x, *, axis, keepdims, ord):
    """The axis if the norm is Euclidean, else _ABSENT."""
    return axis if ord is None or (not isinstance(ord, str) and ord == 2) else _ABSENT


@batch_first
def _batched_vector_norm(args, mapped, *, axis, transform, **attrs):
    """The batching rule of vector_norm."""
    return emit_op("vector_norm", args, axis=shift_axes(axis, rank_of(args[0], True)), **attrs)


vector_norm = _with_euclidean_rules(
    "vector_norm",
    _vector_norm_decompose,
    _vector_norm_place,
    impl=lambda xp, x, *, axis=None, keepdims=False, ord=2: xp.linalg.vector_norm(
        x, axis=axis, keepdims=keepdims, ord=ord
    ),
    prepare=lambda x, /, *, axis=None, keepdims=False, ord=2: (
        (x,),
        {"axis": int_or_tuple(axis), "keepdims": as_flag(keepdims), "ord": _order_attribute(ord)},
    ),
    numpy=(np.linalg.vector_norm,),
    batch=_batched_vector_norm,
)


def _order_attribute(ord):
    """The order of a norm as an attribute: a Python number, a string or None."""
    return ord.item() if isinstance(ord, np.generic) else ord


# ---- matrix_norm ----

_BY_SUMS = {1: (-2, max_), math.inf: (-1, max_), -1: (-2, min_), -math.inf: (-1, min_)}
_BY_SINGULAR_VALUES = {2: max_, -2: min_, "nuc": sum_}


def _matrix_norm_decompose(x, *, keepdims=False, ord="fro"):
    """The Frobenius norm, an extremum of sums of rows or columns, or a norm of singular values."""
    x = _as_floating(x)
    normalize_axes((-2, -1), x.ndim)
    if ord in (None, "fro", "f"):
        return _euclidean_norm(x, (-2, -1), keepdims)
    start = {"initial": 0} if ord in (1, math.inf, 2) else {}
    if ord in _BY_SINGULAR_VALUES:
        result = _BY_SINGULAR_VALUES[ord](svdvals(x), axis=-1, **start)
    elif ord in _BY_SUMS:
        axis, reduce = _BY_SUMS[ord]
        result = reduce(sum_(abs_(x), axis=axis), axis=-1, **start)
    else:
        raise ShapeError(
            f"norm: {ord!r} is not an order of a matrix norm\n"
            "  matrix norms are 'fro', 'nuc', 1, -1, 2, -2, np.inf, -np.inf"
        )
    return expand_dims(result, (-2, -1)) if keepdims else result


matrix_norm = _with_euclidean_rules(
    "matrix_norm",
    _matrix_norm_decompose,
    lambda x, *, keepdims, ord: (-2, -1) if ord in (None, "fro", "f") else _ABSENT,
    impl=lambda xp, x, *, keepdims=False, ord="fro": xp.linalg.matrix_norm(
        x, keepdims=keepdims, ord=ord
    ),
    prepare=lambda x, /, *, keepdims=False, ord="fro": (
        (x,),
        {"keepdims": as_flag(keepdims), "ord": _order_attribute(ord)},
    ),
    numpy=(np.linalg.matrix_norm,),
    raises=lambda x, *, ord, **_: ord in _SPECTRAL,
    batch=stacked_rule("matrix_norm"),
)

# ---- norm ----


def _axes_of_norm(ndim: int, ord, axis):
    """The axis of a vector norm, or the two axes of a matrix norm; None for the flattened array."""
    if axis is None:
        if ord is None:
            return None
        axis = tuple(range(ndim))
    if type(axis) is tuple and len(axis) == 1:
        return axis[0]
    if type(axis) is tuple and len(axis) != 2:
        raise ShapeError(
            f"norm: needs one axis or two, found {len(axis)}\n  write axis=0, or axis=(0, 1)"
        )
    return axis


def _norm_decompose(x, *, ord=None, axis=None, keepdims=False):
    """A vector norm along one axis, a matrix norm along two axes."""
    axis = _axes_of_norm(x.ndim, ord, axis)
    if type(axis) is not tuple:
        return vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    axes, last = normalize_axes(axis, x.ndim), (x.ndim - 2, x.ndim - 1)
    matrices = x if axes == last else move_axes(x, axis, (-2, -1))
    result = matrix_norm(matrices, ord="fro" if ord is None else ord)
    return expand_dims(result, axes) if keepdims else result


def _norm_place(x, *, ord, axis, keepdims):
    """The axes if the norm is Euclidean, else _ABSENT."""
    axis = _axes_of_norm(x.ndim, ord, axis)
    if type(axis) is tuple:
        return axis if ord in (None, "fro", "f") else _ABSENT
    return axis if ord is None or ord == 2 else _ABSENT


@batch_first
def _batched_norm(args, mapped, *, ord, axis, keepdims, transform):
    """The batching rule of norm. The norm of a flattened example becomes a vector_norm, which takes
    any number of axes.
    """
    ndim = rank_of(args[0], True)
    axis = _axes_of_norm(ndim, ord, axis)
    if axis is None:
        return emit_op("vector_norm", args, axis=shift_axes(None, ndim), keepdims=keepdims, ord=2)
    return emit_op("norm", args, ord=ord, axis=shift_axes(axis, ndim), keepdims=keepdims)


def _norm_prepare(x, ord=None, axis=None, keepdims=False):
    """np.linalg.norm, also of a traced floating order."""
    if isinstance(ord, Value) and not ord.shape and ord.dtype.kind == "f":
        raise SeveralBinds(lambda: _norm_of_traced_order(x, ord, int_or_tuple(axis), keepdims))
    attrs = {"ord": _order_attribute(ord), "axis": int_or_tuple(axis)}
    return (x,), attrs | {"keepdims": as_flag(keepdims)}


def _norm_of_traced_order(x, ord: Value, axis, keepdims):
    """The norm as NumPy computes it: guards decide which formula holds for the order."""
    axes = _axes_of_norm(np.ndim(x), ord, axis)
    for order in _ORDERS_OF_MATRICES if type(axes) is tuple else _ORDERS_OF_VECTORS:
        if ord == order:  # with a guard
            return norm(x, order, axis, keepdims)
    if type(axes) is tuple:
        raise ValueError("Invalid norm order for matrices.")
    size = abs_(x) if np.result_type(x).kind in "fc" else abs_(x).astype(np.float64)
    empty = 0 if ord > 0 else math.inf  # an element of 0 has no slope with respect to the order
    powers = where(size == 0, empty, where(size == 0, 1, size) ** ord).astype(size.dtype)
    total = sum_(powers, axis=axes, keepdims=as_flag(keepdims))
    return total ** (1 / ord.astype(total.dtype))


_ORDERS_OF_VECTORS = (math.inf, -math.inf, 0, 1, 2)
_ORDERS_OF_MATRICES = (2, -2, 1, math.inf, -1, -math.inf)

norm = _with_euclidean_rules(
    "norm",
    _norm_decompose,
    _norm_place,
    impl=lambda xp, x, *, ord=None, axis=None, keepdims=False: xp.linalg.norm(
        x, ord, axis, keepdims
    ),
    prepare=_norm_prepare,
    numpy=(np.linalg.norm,),
    raises=lambda x, *, ord, **_: ord in _SPECTRAL,
    batch=_batched_norm,
)

# ---- condition_number ----


def _condition_number_decompose(x, *, p=None):
    """The ratio of the extreme singular values, or the product of the norms of the matrix and its
    inverse.
    """
    _, rows, columns = matrix_shape("cond", x.type)
    if 0 in (rows, columns):
        raise MatrixError(
            f"cond: a matrix of shape {x.shape} has no condition number\n"
            "  pass a matrix with at least one row and one column"
        )
    if p is None or p in (2, -2):
        s = svdvals(x)
        first, last = s[..., 0], s[..., -1]
        number = last / first if p == -2 else first / last
    else:
        number = norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))
    is_own = isnan(number) & ~any_(isnan(x), axis=(-2, -1))
    return where(is_own, math.inf, number)


condition_number = composite(
    "condition_number",
    _condition_number_decompose,
    impl=lambda xp, x, *, p=None: xp.linalg.cond(x, p),
    prepare=lambda x, p=None: ((x,), {"p": _order_attribute(p)}),
    numpy=(np.linalg.cond,),
    raises=True,
)

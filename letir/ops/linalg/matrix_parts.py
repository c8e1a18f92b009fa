"""Types and parts of stacked matrices, shared by the operations of linear algebra.

Cotangents follow the convention of JAX and autograd (see ``elementwise/ufuncs.py``). Most papers
write formulas for the inner product ``Re(sum(conj(G) * dZ))``: a rule that uses one conjugates the
cotangent first, and its result at the end.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import DTypeError, MatrixError, MissingRule
from letir.ops.define.batch_rules import batch_first, emit_op
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import abs_, conj
from letir.ops.linalg.matmul_einsum import einsum, swap_last_axes
from letir.ops.reductions.cumulative import number_along
from letir.ops.reductions.reductions import all_, sum_
from letir.ops.shape.unit_axes_and_flip import expand_dims

# ---- types ----


def linalg_dtype(name: str, *types: ArrayType) -> np.dtype:
    """The dtype of a result of numpy.linalg: single or double precision, integers as double.

    Raises DTypeError for half precision, which LAPACK lacks.
    """
    if any(aval.dtype.char == "e" for aval in types):
        raise DTypeError(
            f"{name}: float16 is not supported in numpy.linalg; cast it with astype\n"
            "  write x.astype(np.float32)"
        )
    single = all(aval.dtype.char in "fF" for aval in types)
    if any(aval.dtype.kind == "c" for aval in types):
        return np.dtype(np.complex64 if single else np.complex128)
    return np.dtype(np.float32 if single else np.float64)


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the real parts of ``dtype``."""
    return np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype


def matrix_shape(name: str, x: ArrayType) -> tuple:
    """(leading axes, rows, columns) of stacked matrices. Raises MatrixError for fewer than 2
    axes.
    """
    if x.ndim < 2:
        raise MatrixError(
            f"{name}: an array of shape {x.shape} is not a matrix or a stack of them\n"
            "  pass an array with at least two axes"
        )
    return x.shape[:-2], *x.shape[-2:]


def square_shape(name: str, x: ArrayType) -> tuple:
    """(leading axes, n) of stacked square matrices. Raises MatrixError if they are not square."""
    lead, rows, columns = matrix_shape(name, x)
    if rows != columns:
        raise MatrixError(
            f"{name}: the last two axes of shape {x.shape} are not a square matrix\n"
            "  pass matrices of shape (n, n), or see pinv and lstsq"
        )
    return lead, rows


def square_aval(name: str) -> Callable:
    """The type rule of a function from square matrices to matrices of the same shape."""

    def aval(x, *_, **attrs):
        square_shape(name, x)
        return ArrayType(linalg_dtype(name, x), x.shape)

    return aval


def broadcast_leading(*arrays: ArrayType) -> tuple:
    """The broadcast shape of the axes before the last two."""
    return broadcast_shapes(*[x.shape[:-2] for x in arrays])


def require_known_types(name: str, *args: Any) -> None:
    """Raise MissingRule if the type of an operand is unknown: rules need ranks and dtypes."""
    if any(isinstance(arg, Value) and arg.type is None for arg in args):
        raise MissingRule(
            f"{name}: its derivative needs the type of its operand\n"
            "  give the program types: letir.retype"
        )


@functools.cache
def named_tuple(function: Callable) -> type:
    """The class of the named tuple that a function of numpy.linalg returns; NumPy hides it."""
    return type(function(np.eye(1)))


def known_value(x: Any) -> Any:
    """The array that ``x`` is or stands for; None for a traced value without a concrete one."""
    result = x.concrete_value() if hasattr(x, "concrete_value") else getattr(x, "array", x)
    return result if hasattr(result, "dtype") and not isinstance(result, Value) else None


# ---- batching ----


def stacked_rule(name: str) -> Callable:
    """The batching rule of an operation with one operand that accepts stacked matrices."""

    def rule(args, mapped, transform=None, **attrs):
        return emit_op(name, args, **attrs)

    return batch_first(rule)


# ---- parts and transposes ----


def conjugate(x: Value) -> Value:
    """The complex conjugate of ``x``; ``x`` itself if it is real."""
    return conj(x) if x.dtype.kind == "c" else x


def adjoint(x: Value) -> Value:
    """The conjugate transpose of each matrix."""
    return conjugate(swap_last_axes(x))


def hermitian_part(x: Value) -> Value:
    """The Hermitian part: half of the sum of ``x`` and its conjugate transpose."""
    return (x + adjoint(x)) * 0.5


def _read_triangle(x: Value, upper: bool) -> Value:
    """Twice the triangle of each matrix, and its diagonal once; 0 in the other triangle."""
    rows, columns = number_along(x, -2), number_along(x, -1)
    return where(rows == columns, x, where(rows < columns if upper else rows > columns, 2 * x, 0))


def _is_hermitian(x: Value) -> Value:
    """Whether each matrix is Hermitian up to rounding."""
    bound = sum_(abs_(x), axis=(-2, -1), keepdims=True) * (4 * np.finfo(x.dtype).eps)
    return all_(abs_(x - adjoint(x)) <= bound, axis=(-2, -1), keepdims=True)


def shared_cotangent(ct: Value, x: Value, upper: bool = False) -> Value:
    """The cotangent of a matrix ``x`` of which LAPACK reads one triangle: the Hermitian part of
    ``ct``, shared by both triangles, if ``x`` is Hermitian. Otherwise the triangle that is read,
    the lower one unless ``upper``, has all of it.
    """
    shared = hermitian_part(ct)
    if x.dtype.kind not in "fc":  # a matrix of integers has no cotangent
        return shared
    return where(_is_hermitian(x), shared, _read_triangle(shared, upper))


def shared_tangent(t: Value, x: Value, upper: bool = False) -> Value:
    """The change of the Hermitian matrix that LAPACK reads in ``x`` along the tangent ``t``."""
    if x.dtype.kind not in "fc":
        return hermitian_part(t)
    return hermitian_part(where(_is_hermitian(x), t, _read_triangle(t, upper)))


def diagonal_of(x: Value) -> Value:
    """The diagonals of square matrices."""
    return einsum("...ii->...i", x)


def columns_times(x: Value, d: Value) -> Value:
    """``x @ diag(d)``."""
    return x * expand_dims(d, -2)


def rows_times(d: Value, x: Value) -> Value:
    """``diag(d) @ x``."""
    return expand_dims(d, -1) * x


def is_on_diagonal(x: Value) -> Value:
    """Whether an element of these matrices is on the diagonal."""
    return number_along(x, -2) == number_along(x, -1)


def below_diagonal(x: Value) -> Value:
    """Whether an element of these matrices is below the diagonal."""
    return number_along(x, -2) > number_along(x, -1)


def lower_half_diagonal(x: Value) -> Value:
    """The lower triangle of each matrix, with half of the diagonal."""
    part = where(number_along(x, -2) >= number_along(x, -1), x, 0)
    return where(is_on_diagonal(x), part * 0.5, part)


def inverse_or_zero(x: Value) -> Value:
    """1 / x, and 0 where x is 0."""
    return where(x == 0, 0, 1 / where(x == 0, 1, x))


def lapack_dtype(*operands: Any) -> np.dtype:
    """The dtype in which SciPy computes with these arrays or types; single precision stays."""
    result = np.result_type(*[x.dtype for x in operands])
    if result.kind in "biu":
        return np.dtype(float)
    return np.dtype(np.float32) if result == np.float16 else result

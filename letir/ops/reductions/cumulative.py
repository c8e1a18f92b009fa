"""Cumulative sums and products: cumsum, cumprod.

The derivative of an element of cumprod with respect to a factor is the product of the other
factors, which is right where factors are zero, unlike y / x. Both derivatives of cumprod are linear
recurrences (``_solve_recurrence``).
"""

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import Primitive
from letir.ast.types import ArrayType, number_dtype
from letir.errors import MissingRule
from letir.ops.define.batch_rules import along_axis_rule, emit_op
from letir.ops.define.records import cast_cotangent, define, unbroadcast
from letir.ops.elementwise.rounding_sign_parts import real
from letir.ops.reductions.reductions import sum_, sum_dtype
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_size, ones_like, zeros_like
from letir.ops.shape.transpose import move_axes, normalize_axes
from letir.ops.shape.unit_axes_and_flip import flip


def _cumsum_aval(x, *, axis, dtype):
    """The operand's shape, or one axis of all its elements if ``axis`` is None."""
    if axis is not None:
        normalize_axes(axis, max(x.ndim, 1))
    # NumPy turns a 0-d array into an array of one element, whatever the axis
    return ArrayType(
        dtype or sum_dtype(x.dtype), (x.size,) if axis is None or not x.shape else x.shape
    )


def _cumsum_vjp(ct, y, x, *, axis, dtype):
    """The cumulative sum of the cotangent from the other end."""
    along = 0 if axis is None else axis
    # element i is in all sums from i on; ct.sum() - cumsum(ct) would cancel
    total = flip(cumsum(flip(ct, along), along), along)
    return (unbroadcast(reshape(total, x) if axis is None else total, x),)


cumsum: Primitive = define(
    "cumsum",
    lambda xp, x, *, axis=None, dtype=None: xp.cumsum(x, axis=axis, dtype=dtype),
    _cumsum_aval,
    vjp=_cumsum_vjp,
    jvp=lambda t, y, x, *, axis, dtype: cumsum(t[0], axis, y.dtype),
    prepare=lambda a, axis=None, dtype=None, out=None: (
        (a,),
        {
            "axis": None if axis is None else as_size(axis),
            "dtype": None if dtype is None else number_dtype(dtype),
        },
    ),
    numpy=(np.cumsum,),
    batch=along_axis_rule("cumsum"),
    onnx="CumSum",
    odd_in=(0,),
    only_float_warnings=True,
    order="all",
    cost="moderate",
    out_takes_part=True,
    scalar="cumsum",
)


def number_along(x: Value, axis: int) -> Value:
    """The position of each element along ``axis``, from 1. The size may be symbolic."""
    ones = ones_like(real(x) if x.dtype.kind == "c" else x)
    return cumsum(ones, axis=axis, dtype=np.int64)  # half precision counts to 2048 only


def _solve_recurrence(a: Value, b: Value) -> Value:
    """y with ``y[i] = a[i] * y[i - 1] + b[i]`` along the last axis, and ``y[-1] = 0``.

    By recursive doubling: log2(n) steps on whole arrays (Hillis and Steele, Data parallel
    algorithms, CACM 1986). There is no division, so it is right where ``a`` is 0.
    """
    shift, n = 1, b.shape[-1]
    if type(n) is not int:
        return _recurrence_by_scan(a, b)
    while shift < n:
        rest = a[..., shift:]
        b = concatenate([b[..., :shift], b[..., shift:] + rest * b[..., :-shift]], -1)
        if 2 * shift < n:
            a = concatenate([a[..., :shift], rest * a[..., :-shift]], -1)
        shift *= 2
    return b


def _recurrence_by_scan(a: Value, b: Value) -> Value:
    """``_solve_recurrence`` along an axis of symbolic size, one element after the other."""
    builder = LetBuilder()
    aval = b.type.with_shape(b.shape[:-1])
    y, *row = [builder.param(aval) for _ in range(3)]
    result = row[0] * y + row[1]
    body = builder.build([result, result])
    rows = [move_axes(x, (-1,), (0,)) for x in (a, b)]
    start = zeros_like(sum_(b, axis=-1))
    steps = {"n_carry": 1, "n_xs": 2, "length": None, "reverse": False}
    _, ys = emit_op("scan", (start, *rows), body=body, **steps)
    return move_axes(ys, (0,), (-1,))


def _axis_last(x: Value, axis) -> Value:
    """``x`` with the cumulated axis moved to the end.

    Raises MissingRule if its size is unknown: the number of steps of a recurrence depends on it.
    """
    if x.type is None:
        raise MissingRule(
            "cumprod: its derivative needs the size of the axis\n"
            "  give the program types with known sizes: letir.retype"
        )
    flat = axis is None or not x.shape
    return reshape(x, -1) if flat else move_axes(x, (axis,), (-1,))


def _axis_restored(rows: Value, x: Value, axis) -> Value:
    """``rows`` with the last axis moved back: the inverse of ``_axis_last`` for the shape of
    ``x``.
    """
    if axis is None or not x.shape:
        return reshape(rows, x)
    return move_axes(rows, (-1,), (axis,))


def _products_before(y: Value) -> Value:
    """The exclusive products before each element: ``y`` shifted by one, starting with 1."""
    return concatenate([ones_like(y[..., :1]), y[..., :-1]], -1)


def _cumprod_vjp(ct, y, x, *, axis, dtype):
    """The cotangent of factor i: the product of the factors before i, times the sum over j >= i of
    ``ct[j]`` and the product of the factors from i + 1 to j.
    """
    # factors in the dtype in which they are multiplied, real for a real dtype
    row, cts = _axis_last(cast_cotangent(x, y.dtype), axis), _axis_last(ct, axis)
    if 0 in x.shape:
        return (None,)
    factors = concatenate([row[..., 1:], ones_like(row[..., :1])], -1)
    later = flip(_solve_recurrence(flip(factors, -1), flip(cts, -1)), -1)
    return (unbroadcast(_axis_restored(_products_before(_axis_last(y, axis)) * later, x, axis), x),)


def _cumprod_jvp(tangents, y, x, *, axis, dtype):
    """The tangents by the product rule, from element to element."""
    row, along = (_axis_last(cast_cotangent(v, y.dtype), axis) for v in (x, tangents[0]))
    if 0 in x.shape:
        return reshape(cast_cotangent(tangents[0], y.dtype), y)
    result = _solve_recurrence(row, _products_before(_axis_last(y, axis)) * along)
    return _axis_restored(result, y, axis)


cumprod = define(
    "cumprod",
    lambda xp, x, *, axis=None, dtype=None: xp.cumprod(x, axis=axis, dtype=dtype),
    _cumsum_aval,
    vjp=_cumprod_vjp,
    jvp=_cumprod_jvp,
    prepare=cumsum.prepare,
    numpy=(np.cumprod,),
    batch=along_axis_rule("cumprod"),
    order="all",
    out_takes_part=True,
)

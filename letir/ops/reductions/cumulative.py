"""Scans: cumsum, and the numbers of places that it makes.

The cumulative product, and linear recurrences, which its derivatives are.

Each element of y = cumprod(x) is a product; its derivative by one factor is the product of the
others, which is right where factors are zero, unlike y / x.
"""

import numpy as np

from letir.ast.builder import Value
from letir.ast.types import ArrayType
from letir.errors import MissingRule
from letir.ops.define.batch_rules import along_axis_rule
from letir.ops.define.records import define, recast, unbroadcast
from letir.ops.elementwise.ufuncs import real
from letir.ops.reductions.reductions import sum_dtype
from letir.ops.shape.shape_and_creation import as_size, ones_like, reshape
from letir.ops.shape.transpose_join_split import concatenate, flip, move_axes, normalize_axes


def _cumsum_aval(x, *, axis, dtype):
    """The shape of the operand, or its elements in a row without an axis."""
    if axis is not None:
        normalize_axes(axis, max(x.ndim, 1))
    # of a 0-d array NumPy makes one of one element, whatever the axis
    return ArrayType(
        dtype or sum_dtype(x.dtype), (x.size,) if axis is None or not x.shape else x.shape
    )


def _cumsum_vjp(ct, y, x, *, axis, dtype):
    """The cumulative sum from the other end."""
    along = 0 if axis is None else axis
    # element i is in all sums from i on; no ct.sum() - cumsum, which would cancel
    total = flip(cumsum(flip(ct, along), along), along)
    return (unbroadcast(reshape(total, x) if axis is None else total, x),)


cumsum = define(
    "cumsum",
    lambda xp, x, *, axis=None, dtype=None: xp.cumsum(x, axis=axis, dtype=dtype),
    _cumsum_aval,
    vjp=_cumsum_vjp,
    jvp=lambda t, y, x, *, axis, dtype: cumsum(t[0], axis, y.dtype),
    prepare=lambda a, axis=None, dtype=None, out=None: (
        (a,),
        {
            "axis": None if axis is None else as_size(axis),
            "dtype": None if dtype is None else np.dtype(dtype),
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
)


def number_along(x: Value, axis: int) -> Value:
    """For each element its place along ``axis``, from 1: without the size, which may be a name."""
    ones = ones_like(real(x) if x.dtype.kind == "c" else x)
    return cumsum(ones, axis=axis, dtype=np.int64)  # half precision counts to 2048 only


def _recurrence(a: Value, b: Value) -> Value:
    """y with ``y[i] = a[i] * y[i - 1] + b[i]`` along the last axis, from 0.

    By doubling: log2(n) steps on whole arrays (Hillis and Steele, Data parallel algorithms, CACM
    1986). Nothing is divided, so that it is right where ``a`` is 0.
    """
    shift, n = 1, b.shape[-1]
    while shift < n:
        rest = a[..., shift:]
        b = concatenate([b[..., :shift], b[..., shift:] + rest * b[..., :-shift]], -1)
        if 2 * shift < n:
            a = concatenate([a[..., :shift], rest * a[..., :-shift]], -1)
        shift *= 2
    return b


def _axis_last(x: Value, axis) -> Value:
    """``x`` with the axis of the cumulation as its last.

    Raises MissingRule if its size is unknown: how many steps a recurrence has depends on it.
    """
    rows = None
    if x.type is not None:
        flat = axis is None or not x.shape
        rows = reshape(x, -1) if flat else move_axes(x, (axis,), (-1,))
    if rows is None or type(rows.shape[-1]) is not int:
        raise MissingRule(
            "cumprod: its derivative needs the size of the axis; retype the program first"
        )
    return rows


def _axis_restored(rows: Value, x: Value, axis) -> Value:
    """What ``_axis_last`` made of an array of the shape of ``x``, undone."""
    if axis is None or not x.shape:
        return reshape(rows, x)
    return move_axes(rows, (-1,), (axis,))


def _exclusive(y: Value) -> Value:
    """The products before each element: ``y`` moved on by one, from 1."""
    return concatenate([ones_like(y[..., :1]), y[..., :-1]], -1)


def _cumprod_vjp(ct, y, x, *, axis, dtype):
    """The product before each factor, times the sum of the cotangents of all later products, each
    divided by all that came before.
    """
    # of the factors as they are multiplied, which are real for a real dtype
    row, cts = _axis_last(recast(x, y.dtype), axis), _axis_last(ct, axis)
    if 0 in x.shape:
        return (None,)
    factors = concatenate([row[..., 1:], ones_like(row[..., :1])], -1)
    later = flip(_recurrence(flip(factors, -1), flip(cts, -1)), -1)
    return (unbroadcast(_axis_restored(_exclusive(_axis_last(y, axis)) * later, x, axis), x),)


def _cumprod_jvp(tangents, y, x, *, axis, dtype):
    """The product rule from element to element."""
    row, along = (_axis_last(recast(v, y.dtype), axis) for v in (x, tangents[0]))
    if 0 in x.shape:
        return reshape(recast(tangents[0], y.dtype), y)
    found = _recurrence(row, _exclusive(_axis_last(y, axis)) * along)
    return _axis_restored(found, y, axis)


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

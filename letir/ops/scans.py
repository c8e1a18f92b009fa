"""Scans: cumsum, and the numbers of places that it makes."""

import numpy as np

from letir.ast.builder import Value
from letir.ast.types import ArrayType
from letir.ops.batching import along_axis
from letir.ops.elementwise import real
from letir.ops.makers import match, op
from letir.ops.reductions import widened
from letir.ops.shaping import flip, normalized
from letir.ops.sizes import as_size, ones_like, reshape


def cumsum_aval(x, *, axis, dtype):
    """The shape of the operand, or its elements in a row without an axis."""
    if axis is not None:
        normalized(axis, max(x.ndim, 1))
    # of a 0-d array NumPy makes one of one element, whatever the axis
    return ArrayType(
        dtype or widened(x.dtype), (x.size,) if axis is None or not x.shape else x.shape
    )


def cumsum_vjp(ct, y, x, *, axis, dtype):
    """The cumulative sum from the other end."""
    along = 0 if axis is None else axis
    # element i is in all sums from i on; no ct.sum() - cumsum, which would cancel
    total = flip(cumsum(flip(ct, along), along), along)
    return (match(reshape(total, x) if axis is None else total, x),)


cumsum = op(
    "cumsum",
    lambda xp, x, *, axis=None, dtype=None: xp.cumsum(x, axis=axis, dtype=dtype),
    cumsum_aval,
    vjp=cumsum_vjp,
    jvp=lambda t, y, x, *, axis, dtype: cumsum(t[0], axis, y.dtype),
    prepare=lambda a, axis=None, dtype=None, out=None: (
        (a,),
        {
            "axis": None if axis is None else as_size(axis),
            "dtype": None if dtype is None else np.dtype(dtype),
        },
    ),
    numpy=(np.cumsum,),
    batch=along_axis("cumsum"),
    onnx="CumSum",
)


def numbered(x: Value, axis: int) -> Value:
    """For each element its place along ``axis``, from 1: without the size, which may be a name."""
    ones = ones_like(real(x) if x.dtype.kind == "c" else x)
    return cumsum(ones, axis=axis, dtype=np.int64)  # half precision counts to 2048 only

"""dynamic_slice: a slice of fixed length along one axis, whose start is an operand."""

import operator
from typing import Any

import numpy as np

from letir.ast.primitive import Primitive
from letir.errors import BoundsError, DTypeError, ShapeError
from letir.ops.define.records import composite
from letir.ops.indexing.basic import index, index_set
from letir.ops.indexing.index_expressions import item_with_places
from letir.ops.shape.transpose import normalize_axes


def _slice_places(start: Any, size: int, step: int, axis: int) -> tuple:
    """The index expression that reads the elements of the slice one by one."""
    return (*[slice(None)] * axis, start + np.arange(size) * step)


def _slice_decompose(x, start, *, size, step=1, axis=0):
    """``x`` indexed by an array of places."""
    if start.type is not None and (start.dtype.kind not in "iu" or start.shape):
        raise DTypeError(
            f"dynamic_slice: the start must be an integer, found {start.type}\n"
            "  convert it with .astype(int)"
        )
    return index(x, _slice_places(start, size, step, axis))


def _slice_impl(xp, x, start, *, size, step=1, axis=0):
    """The view ``x[start : start + size * step : step]`` along ``axis``."""
    first, n = int(start), x.shape[axis]  # int(): an array of CuPy has no __index__
    last = first + (size - 1) * step
    if size and not (0 <= first < n and 0 <= last < n):
        raise BoundsError(
            f"dynamic_slice: elements {first} to {last} of an axis of size {n}\n"
            "  start where the whole slice is inside of the array"
        )
    stop = last + (1 if step > 0 else -1)
    return x[(*[slice(None)] * axis, slice(first, stop if stop >= 0 else None, step))]


def _slice_prepare(x, start, size, step=1, axis=0):
    """(operands, attributes) of a call, with ``axis`` counted from the front."""
    size, step = operator.index(size), operator.index(step)
    if size < 0 or not step:
        raise ShapeError(
            f"dynamic_slice: a size from 0 and a step other than 0 are needed, found {size}, {step}"
            "\n  a negative step reads backwards"
        )
    ndim = getattr(x, "ndim", None)
    axis = operator.index(axis) if ndim is None else normalize_axes(axis, ndim)[0]
    return (x, start), {"size": size, "step": step, "axis": axis}


def _slice_write(parent, new, start, *, size, step, axis):
    """``parent`` after ``new`` was written into the slice."""
    arrays, item = item_with_places(_slice_places(start, size, step, axis))
    return index_set(parent, item, new, arrays)


def _slice_source(write, x, start, *, size, step, axis):
    """An index expression: a slice, or the places of one that reads backwards."""
    lead = ":, " * axis
    if step < 0:
        return f"{x}[{lead}{start} + np.arange({size}) * {step}]"
    end = f"{start} + {size * step}"
    return f"{x}[{lead}{start}:{end}{f':{step}' if step > 1 else ''}]"


dynamic_slice: Primitive = composite(
    "dynamic_slice",
    _slice_decompose,
    impl=_slice_impl,
    prepare=_slice_prepare,
    source=_slice_source,
    memory="view",
    views=lambda x, start, **_: True,
    write_through=_slice_write,
    raises=True,
)

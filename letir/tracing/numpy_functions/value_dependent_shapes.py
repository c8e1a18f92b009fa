"""NumPy functions whose result shapes depend on values.

Each reads the value of its argument, records operations for the lengths found, and guards them
[semantics.md B2]. An abstract trace refuses them.
"""

import functools
import operator
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.errors import DTypeError, ShapeError
from letir.eval.evaluator import compute
from letir.ops.shape.transpose import normalize_axes
from letir.tracing.checks.abstract_values import unanswered_error
from letir.tracing.numpy_protocols.dispatch import write_into_out
from letir.tracing.operands import stack_traced, take_along
from letir.tracing.trace_state import ABSENT


def _select_counted(name: str, x, **attrs) -> tuple:
    """The results of the operation ``name`` on ``x``, whose ``count`` is read and guarded."""
    op = PRIMITIVES[name]
    if not isinstance(x, Value):
        return compute(op, [np.asarray(x)], op.complete({"count": None, **attrs}))[:-1]
    value = x.concrete_value()
    if value is ABSENT:
        raise unanswered_error(x, f"the length of numpy.{name}")
    count = compute(op, [value], op.complete({"count": None, **attrs}))[-1]
    *results, length = x.emitter.apply(op, (x,), op.complete({"count": int(count), **attrs}))
    operator.index(length)  # records a guard if it is traced
    return tuple(results)


def nonzero(a: Any) -> tuple:
    """np.nonzero."""
    if not np.ndim(a):  # NumPy's own words
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() "
            "instead. If the context of this error is of the form `arr[nonzero(cond)]`, just use "
            "`arr[cond]`."
        )
    return _select_counted("nonzero", stack_traced(a), rank=np.ndim(a))


def flatnonzero(a: Any) -> Any:
    """np.flatnonzero."""
    return nonzero(np.ravel(a))[0]


def argwhere(a: Any) -> Any:
    """np.argwhere: a row for each position."""
    if not np.ndim(a):
        return argwhere(a.reshape(1))[:, :0]
    return np.transpose(np.stack(nonzero(a)))


def extract(condition: Any, arr: Any) -> Any:
    """np.extract: the elements where the condition is true."""
    return take_along(np.ravel(arr), nonzero(np.ravel(condition))[0])


def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """np.compress: the slices along an axis where the condition is true."""
    if np.ndim(condition) != 1:
        raise ShapeError(
            f"compress: the condition must have one axis, found {np.ndim(condition)}\n"
            "  ravel the condition"
        )
    a = stack_traced(a)
    if axis is None or not np.ndim(a):
        a, axis = np.ravel(a), 0 if axis is None else axis
    (place,) = normalize_axes(axis, np.ndim(a))
    result = take_along(a, nonzero(condition)[0], place)
    return result if out is None else write_into_out(np.compress, a, result, out)


# ---- sets ----


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """np.unique: the values, or a tuple with the requested further results."""
    flags = [bool(flag) for flag in (return_index, return_inverse, return_counts)]
    attrs = {
        **dict(zip(("return_index", "return_inverse", "return_counts"), flags, strict=True)),
        "axis": None if axis is None else operator.index(axis),
        "equal_nan": bool(equal_nan),
        "sorted": bool(sorted),
    }
    result = _select_counted("unique", stack_traced(ar), **attrs)
    return result if any(flags) else result[0]


def unique_values(x: Any, /) -> Any:
    """np.unique_values, in NumPy's own order."""
    return unique(x, equal_nan=False, sorted=False)


def _unique_parts(function, **flags):
    """np.unique_all and similar functions, with NumPy's named tuples as results."""
    # not called while importing
    result_class = functools.cache(lambda: type(function(np.zeros(1))))
    return lambda x, /: result_class()(*unique(x, equal_nan=False, **flags))


def _values_where(values, mask):
    """The values where a mask is true; either may be an ordinary array."""
    return take_along(values, nonzero(mask)[0])


def union1d(ar1: Any, ar2: Any) -> Any:
    """np.union1d."""
    return unique(np.concatenate((stack_traced(ar1), stack_traced(ar2)), axis=None))


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """np.intersect1d: the sorted unique common values."""
    if assume_unique:
        return _equal_neighbours(stack_traced(ar1), stack_traced(ar2), return_indices)
    (u1, *i1), (u2, *i2) = [
        unique(ar, return_index=True) if return_indices else (unique(ar),) for ar in (ar1, ar2)
    ]
    mask = np.isin(u1, u2)
    values = _values_where(u1, mask).astype(np.result_type(u1.dtype, u2.dtype), copy=False)
    if not return_indices:
        return values
    return values, _values_where(i1[0], mask), _values_where(i2[0], np.isin(u2, u1))


def _equal_neighbours(left, right, return_indices: bool):
    """np.intersect1d with ``assume_unique``, which gives a value for each pair of neighbours that
    are equal once both arrays are sorted.
    """
    both = np.concatenate((left, right), axis=None)
    order = np.argsort(both, kind="stable")
    both = take_along(both, order)
    mask = both[1:] == both[:-1]
    values = _values_where(both[:-1], mask)
    if not return_indices:
        return values
    return values, _values_where(order[:-1], mask), _values_where(order[1:], mask) - np.size(left)


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """np.setdiff1d: in the given order with ``assume_unique``, else sorted."""
    left = np.ravel(stack_traced(ar1)) if assume_unique else unique(ar1)
    return _values_where(left, np.isin(left, stack_traced(ar2), invert=True))


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """np.setxor1d, sorted."""
    u1, u2 = [np.ravel(stack_traced(ar)) if assume_unique else unique(ar) for ar in (ar1, ar2)]
    parts = (
        _values_where(u1, np.isin(u1, u2, invert=True)),
        _values_where(u2, np.isin(u2, u1, invert=True)),
    )
    return unique(np.concatenate(parts), equal_nan=False)


# ---- counts ----


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """np.bincount, with a guard on its length, which depends on the largest number."""
    x, weights = stack_traced(x), stack_traced(weights)
    x = x if isinstance(x, Value) else np.asarray(x)
    if x.ndim != 1:
        raise ShapeError(f"bincount: the numbers must have one axis, found {x.ndim}\n  ravel them")
    if x.dtype == np.uint64:
        np.bincount(np.zeros(1, np.uint64))  # a TypeError of NumPy's older versions
        x = x.astype(np.int64)
    x = x.astype(np.int64) if x.dtype == bool else x
    if x.dtype.kind not in "iu":
        raise DTypeError(
            f"bincount: numbers of {x.dtype} cannot be cast to int64 without loss\n"
            "  convert them with .astype(int)"
        )
    least = operator.index(minlength)
    if least < 0:
        raise ShapeError(
            f"bincount: 'minlength' must not be negative, found {least}\n  pass minlength from 0"
        )
    # the guard is on the longer of the two, which is the same for all numbers below minlength
    length = np.maximum(x.max().astype(np.int64) + 1, least) if x.shape[0] != 0 else least
    emitter = next((v.emitter for v in (x, weights) if isinstance(v, Value)), None)
    if emitter is None:  # only ``minlength`` is traced
        return np.bincount(x, weights, least)
    op = PRIMITIVES["bincount"]
    operands = (x,) if weights is None else (x, weights)
    return emitter.apply(op, operands, op.complete({"length": operator.index(length)}))


FUNCTIONS = {
    np.nonzero: nonzero,
    np.where: nonzero,  # np.where(condition)
    np.flatnonzero: flatnonzero,
    np.argwhere: argwhere,
    np.extract: extract,
    np.compress: compress,
    np.unique: unique,
    np.unique_values: unique_values,
    np.unique_counts: _unique_parts(np.unique_counts, return_counts=True),
    np.unique_inverse: _unique_parts(np.unique_inverse, return_inverse=True),
    np.unique_all: _unique_parts(
        np.unique_all, return_index=True, return_inverse=True, return_counts=True
    ),
    np.union1d: union1d,
    np.intersect1d: intersect1d,
    np.setdiff1d: setdiff1d,
    np.setxor1d: setxor1d,
    np.bincount: bincount,
}

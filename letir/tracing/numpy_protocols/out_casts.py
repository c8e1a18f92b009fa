"""How NumPy's functions cast a result to the dtype of ``out=``, where it is not their own.

Ufuncs cast as their argument ``casting`` says. Sums, products and ``choose`` cast to any dtype;
functions that select elements require that ``out`` could be one of their operands.
"""

from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.symbolic_sizes import is_static_shape
from letir.errors import DTypeError, LetirError, mark_unrecorded_code
from letir.tracing.mutation.memory_order import ensure_memory_order
from letir.tracing.operands import Casting, traced_or_array
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user, error_at_user_line

_INDICES = frozenset([np.argmax, np.argmin, np.nanargmax, np.nanargmin])
# functions that write into `out` by a cast to its dtype and back
_SELECTIONS = frozenset([np.take, np.compress])
# functions that compute in the dtype of `out=`
_IN_OUT_DTYPE = frozenset(
    [
        *(np.var, np.std, np.median, np.quantile, np.percentile, np.trace),
        *(np.nanmean, np.nanvar, np.nanstd, np.nanmedian, np.nanquantile, np.nanpercentile),
    ]
)
# the functions above that do so for integers too
_INTEGERS_IN_OUT_DTYPE = frozenset([np.einsum, np.ptp, np.round, np.around])
_DOTS = frozenset([np.dot, np.linalg.multi_dot])
_SUMS = frozenset([np.sum, np.prod, np.nansum, np.nanprod])
_ACCUMULATIONS = frozenset([np.cumsum, np.cumprod, np.nancumsum, np.nancumprod])


def casting_into_out(func: Any, name: str, x: Any, result: Value, out: Value) -> Casting:
    """The cast rule with which NumPy writes the result of a function of ``x`` into ``out``.

    ``name``: the function's name, for errors. Raises DTypeError, or ValueError for a product, if
    NumPy refuses this ``out``, or if its result is not the cast of ``result``.
    """
    if func in _DOTS and result.shape == out.shape:
        _check_out_of_dot(result, out)
    if result.dtype == out.dtype:
        return "same_kind"
    if func in _INDICES or func in _SELECTIONS:
        if not np.can_cast(out.dtype, result.dtype, "safe"):
            raise _wrong_out_dtype_error(name, result, out)
        return "unsafe"
    is_in_out_dtype = func in _IN_OUT_DTYPE or func.__module__ == "numpy.fft"
    if (is_in_out_dtype and result.type.inexact) or func in _INTEGERS_IN_OUT_DTYPE:
        raise note_refusal(mark_unrecorded_code(_wrong_out_dtype_error(name, result, out)))
    if func in _SUMS:
        return casting_of_fold(x, result, out)
    return "unsafe" if func is np.choose or func in _ACCUMULATIONS else "same_kind"


def casting_of_fold(x: Any, result: Value, out: Value) -> Casting:
    """The cast rule of a sum or product of the elements of ``x`` into ``out``.

    NumPy casts to any dtype, but longer sums several times, whenever its buffer is full.
    """
    is_static = is_static_shape(x.shape) and is_static_shape(result.shape)
    terms = x.size // max(result.size, 1) if is_static else np.inf
    is_real = result.dtype.kind != "c" or out.dtype.kind == "c"  # otherwise NumPy warns
    return "unsafe" if terms <= np.getbufsize() and is_real else "same_kind"


def mean_into_out(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = False,
    *,
    out: Any,
    where: Any = True,
) -> Value:
    """np.mean with ``out`` of any dtype: NumPy sums into ``out``, and divides there."""
    a = traced_or_array(a)
    # NumPy sums half precision in single, integers in double, others in the dtype of ``out``
    is_half, is_integer = a.dtype.char == "e", a.dtype.kind in "biu"
    wider = out.dtype if np.can_cast(a.dtype, out.dtype) else a.dtype
    kind = np.float32 if is_half else np.float64 if is_integer else wider
    kind = np.dtype(kind if dtype is None else dtype)
    if out.dtype == kind:
        return out.assign(np.mean(a, axis, kind, keepdims=keepdims, where=where))
    np.sum(a, axis, kind, out=out, keepdims=keepdims, where=where)
    if where is True:
        count = np.intp(a.size // max(out.size, 1))
    else:
        count = np.sum(np.broadcast_to(where, a.shape), axis, np.intp, keepdims=keepdims)
    return np.true_divide(out, count, out=out, casting="unsafe")


def _check_out_of_dot(result: Value, out: Value) -> None:
    """Raise NumPy's ValueError unless np.dot can compute in the memory of ``out``."""
    is_so = result.dtype == out.dtype and ensure_memory_order(out, "C") is out
    if not is_so:
        raise ValueError(
            "output array is not acceptable (must have the right datatype, number of dimensions, "
            f"and be a C-Array): dot of type {result.type} into {out.type}{at_user()}"
        )


def _wrong_out_dtype_error(name: str, result: Value, out: Value) -> LetirError:
    """The error for ``out`` of a dtype in which letir does not compute the function."""
    return error_at_user_line(
        DTypeError(
            f"{name}: the result is {result.dtype}, the array for it {out.dtype}\n"
            f"  pass out= of dtype {result.dtype}, or assign: out[...] = {name}(x)"
        )
    )


LATE_BOUND["casting_into_out"] = casting_into_out
LATE_BOUND["casting_of_fold"] = casting_of_fold
LATE_BOUND["mean_into_out"] = mean_into_out

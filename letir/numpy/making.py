"""The functions of ``letir.numpy`` that make arrays.

Inside a trace they return traced arrays, into which traced values can be written. Outside they are
NumPy's.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ops.shape.shape_and_creation import shape_from_call
from letir.tracing.mutation.views import Memory
from letir.tracing.operands import first_traced, stack_traced, strong_element
from letir.tracing.trace_state import ACTIVE, Trace

ORDINARY = "copy it first: letir.numpy.array(a)"  # the remedy for a write into an ordinary array


def active_trace() -> Trace | None:
    """The trace that is active in this thread and not paused."""
    active = ACTIVE.get()
    return active if isinstance(active, Trace) else None


def _make_array(name: str, function: Callable, *args, **kwargs):
    """Call NumPy's ``function``, or record the operation ``name`` if a trace is active."""
    trace = active_trace()
    if trace is None:
        return function(*args, **kwargs)
    op = PRIMITIVES[name]
    operands, attrs = op.prepare(*args, **kwargs)
    made = trace.apply(op, operands, op.complete(attrs))
    if not made.shape:
        made.sharing = Memory(made.arg)  # marks it as a 0-d array, not a scalar
    in_columns = made.ndim > 1 and args[2:3] == ("F",)
    return PRIMITIVES["copy"](made, "F") if in_columns else made


def zeros(
    shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """numpy.zeros; traced in a trace."""
    return _make_array("zeros", np.zeros, shape_from_call(shape), dtype, order)


def ones(
    shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """numpy.ones; traced in a trace."""
    return _make_array("ones", np.ones, shape_from_call(shape), dtype, order)


def empty(
    shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """numpy.empty; zeros in a trace, as programs are deterministic."""
    return _make_array("zeros", np.empty, shape_from_call(shape), dtype, order)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """numpy.full, of a traced value too; traced in a trace."""
    fill = stack_traced(fill_value)
    return _make_array(
        "full",
        np.full,
        shape_from_call(shape),
        np.asarray(fill) if type(fill) is list else fill,
        dtype,
    )


def eye(
    N: Any,
    M: Any = None,
    k: int = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """numpy.eye; traced in a trace."""
    return _make_array("eye", np.eye, N, M, k, dtype)


def identity(n: Any, dtype: Any = float, *, like: Any = None) -> Any:
    """numpy.identity; traced in a trace."""
    return eye(n, dtype=dtype)


def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """numpy.arange; traced in a trace. The length is guarded if a bound is traced; the result is
    differentiable in traced floating bounds.
    """
    bounds = [start, stop, step]
    if any(isinstance(b, Value) and b.dtype.kind not in "iu" for b in bounds):
        first, last = (0, start) if stop is None else (start, stop)
        return _floating_range(first, last, step, float if dtype is None else dtype)
    return _make_array("arange", np.arange, *map(_range_bound, bounds), dtype=dtype)


def _range_bound(number):
    """A bound of a range as a Python number; a traced integer is guarded."""
    return number.__index__() if isinstance(number, Value) else number


def _floating_range(start, stop, step, dtype):
    """The numbers of numpy.arange, with its rounding: from the first two numbers in ``dtype``."""
    count = max(int(np.ceil((stop - start) / step)), 0)  # int records a guard
    first, second = array(start, dtype), array(start + step, dtype)
    made = first + np.arange(count, dtype=dtype) * (second - first)
    if count > 1:
        made[1] = second
    return made


def zeros_like(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """numpy.zeros_like; traced in a trace."""
    return _make_like(zeros, np.zeros_like, a, dtype, order, subok, shape)


def ones_like(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """numpy.ones_like; traced in a trace."""
    return _make_like(ones, np.ones_like, a, dtype, order, subok, shape)


def empty_like(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """numpy.empty_like; zeros in a trace."""
    return _make_like(zeros, np.empty_like, a, dtype, order, subok, shape)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """numpy.full_like, of a traced value too; traced in a trace."""
    fill = stack_traced(fill_value)
    make, function = functools.partial(full, fill_value=fill), np.full_like
    return _make_like(
        make, functools.partial(function, fill_value=fill), a, dtype, order, subok, shape
    )


def _make_like(make: Callable, function: Callable, a, dtype, order, subok, shape):
    """NumPy's ``function``, or ``make`` with the shape and dtype of ``a`` if a trace is active."""
    a = stack_traced(a)
    if isinstance(a, Value) or active_trace() is None:  # NumPy's protocol records it for a Value
        return function(a, dtype=dtype, order=order, subok=subok, shape=shape)
    a = np.asarray(a)
    return make(a.shape if shape is None else shape, dtype=a.dtype if dtype is None else dtype)


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    """numpy.array of numbers, arrays and traced values in nested lists; traced in a trace."""
    trace = active_trace()
    if trace is not None:
        made = _as_traced_array(trace, object, dtype)
    elif first_traced(object) is not None:  # a Variable
        made = strong_element(stack_traced(object))
        made = made if dtype is None else made.astype(dtype, copy=False)
    else:
        return np.array(object, dtype, copy=copy, order=order, ndmin=ndmin)
    for _ in range(made.ndim, ndmin):  # in front, as NumPy adds axes
        made = made[None]
    # a stacked list is a new array; only if object is a traced value would memory be shared
    return made.copy(order) if copy and made is object else made


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """numpy.asarray of numbers, arrays and traced values in nested lists; traced in a trace.

    The traced array made of an ordinary array is read-only: the ordinary array is not copied.
    """
    trace = active_trace()
    if trace is None and first_traced(a) is None:
        return np.asarray(a, dtype, order, copy=copy)
    made = array(a, dtype, copy=copy)
    if trace is None:
        return made
    is_ordinary = isinstance(a, np.ndarray) and not isinstance(a, Value)
    if is_ordinary and a.dtype == made.dtype and not copy:
        made.sharing = Memory(made.arg, reason=(f"{made.type} of an ordinary array", ORDINARY))
    return made


def _as_traced_array(trace: Trace, object: Any, dtype: Any) -> Any:
    """``object`` as a traced array of this dtype: itself if it is one."""
    made: Any = strong_element(stack_traced(object))
    is_traced = isinstance(made, Value)
    if not is_traced:
        frozen_copy, local = trace.frozen(made)
        made = trace.make_tracer(trace, local, frozen_copy)
    elif made.is_scalar():
        made = full((), made)  # NumPy makes a 0-d array of a scalar
    return made if dtype is None or made.dtype == dtype else made.astype(dtype)


# ---- conversions ----


def asanyarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """numpy.asanyarray: the same as asarray, as subclasses of arrays are not recorded."""
    return asarray(a, dtype, order, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """numpy.ascontiguousarray: at least 1-d; the evaluator chooses the memory order."""
    made = asarray(a, dtype, "C")
    return made if np.ndim(made) else made.reshape(1)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """numpy.asfortranarray; the evaluator chooses the memory order of a traced array."""
    return asarray(a, dtype, "F")


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """numpy.require; for a traced array the dtype only, the evaluator chooses the memory order."""
    if active_trace() is None and first_traced(a) is None:
        return np.require(a, dtype, requirements)
    return asarray(a, dtype)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """numpy.asarray_chkfinite; a traced array is guarded to be finite."""
    made = asarray(a, dtype, order)
    if made.dtype.kind in "fc" and not np.isfinite(made).all():
        raise ValueError("array must not contain infs or NaNs")
    return made


def fromiter(iter: Iterable, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """numpy.fromiter, of traced values too."""
    items = list(iter)
    if first_traced(items) is None and active_trace() is None:
        return np.fromiter(items, dtype, count)
    if count > len(items):
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)}")
    return array(items if count < 0 else items[:count], dtype)


def as_traced_constant(found: Any) -> Any:
    """An array made by NumPy, as a traced constant if a trace is active."""
    trace = active_trace()
    is_array = trace is not None and isinstance(found, np.ndarray)
    return _as_traced_array(trace, found, None) if is_array else found

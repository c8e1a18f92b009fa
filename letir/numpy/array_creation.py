"""The functions of ``letir.numpy`` that make arrays.

Inside a trace they return arrays into which traced values can be written; outside they are NumPy's.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import has_sizes
from letir.ast.terms import Local
from letir.ast.types import requested_dtype
from letir.ops.shape.shape_and_creation import shape_from_call
from letir.tracing.mutation.buffers import (
    NUMBERS,
    Recipe,
    as_buffer,
    has_traced,
    new_buffer,
    unwrap_buffers,
)
from letir.tracing.mutation.memory_order import ensure_memory_order
from letir.tracing.mutation.views import Memory, is_in_same_memory, mark_as_array
from letir.tracing.operands import (
    array_of_object,
    converted_list,
    first_traced,
    stack_traced,
    strong_element,
)
from letir.tracing.source_locations import user_place
from letir.tracing.trace_state import ACTIVE, Trace

_ORDINARY = "copy it first: letir.numpy.array(a)"  # the remedy for a write into an ordinary array


def _unpaused_trace() -> Trace | None:
    """The trace that is active in this thread and not paused."""
    active = ACTIVE.get()
    return active if isinstance(active, Trace) else None


def _make_array(name: str, function: Callable, *args, **kwargs):
    """Call NumPy's ``function``, in a trace as a buffer that is recorded by the operation ``name``.

    With traced arguments the operation is recorded immediately.
    """
    trace = _unpaused_trace()
    if trace is None:
        return function(*args, **kwargs)
    if has_traced((args, kwargs)):
        op = PRIMITIVES[name]
        operands, attrs = op.prepare(*args, **kwargs)
        if has_sizes(attrs, op.sizes_in):
            new = LATE_BOUND["sized_call"](op, operands, op.complete(attrs))
        else:
            new = trace.apply(op, operands, op.complete(attrs))
        new = mark_as_array(new)
        return PRIMITIVES["copy"](new, "F") if _is_in_columns(new, kwargs) else new
    make = functools.partial(function, *unwrap_buffers(args), **unwrap_buffers(kwargs))
    recipe = Recipe(
        make, functools.partial(_record_maker, trace, name, args, kwargs, user_place(3))
    )
    result = make()
    if result.dtype.names:
        return LATE_BOUND["structured_buffer"](trace, result)
    return new_buffer(trace, result, recipe) if result.dtype.char in NUMBERS else result


def _record_maker(trace: Trace, name: str, args: tuple, kwargs: dict, place: tuple) -> Local:
    """The local of an array that an operation makes, recorded with the line that made it."""
    op = PRIMITIVES[name]
    operands, attrs = op.prepare(*args, **kwargs)
    trace.source = place[0]
    local = trace.emit(op, tuple(map(trace.enter, operands)), op.complete(attrs))[0]
    local.name = place[1]
    if _is_in_columns(local.type, kwargs):
        local = trace.emit(PRIMITIVES["copy"], (local,), Attrs(order="F"))[0]
    return local


def _is_in_columns(aval: Any, kwargs: dict) -> bool:
    """Whether a call asks for an array of ``aval`` in Fortran order."""
    return len(aval.shape) > 1 and kwargs.get("order") in ("F", "f")


def zeros(
    shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """numpy.zeros; traced in a trace."""
    return _make_array("zeros", np.zeros, shape_from_call(shape), dtype, order=order)


def ones(
    shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """numpy.ones; traced in a trace."""
    return _make_array("ones", np.ones, shape_from_call(shape), dtype, order=order)


def empty(
    shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """numpy.empty; zeros in a trace, as programs are deterministic."""
    function = np.empty if _unpaused_trace() is None else np.zeros
    return _make_array("zeros", function, shape_from_call(shape), dtype, order=order)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """numpy.full, also of a traced value; traced in a trace."""
    fill, shape = stack_traced(fill_value), shape_from_call(shape)
    rank = len(shape) if isinstance(shape, tuple) else 1
    if isinstance(fill, Value) and fill.ndim > rank and fill.shape[: fill.ndim - rank].count(1):
        fill = fill.reshape(fill.shape[fill.ndim - rank :])  # an assignment drops such axes
    fill = np.asarray(fill) if type(fill) is list else fill
    fill = fill.number() if type(fill) is Size else fill
    return _make_array("full", np.full, shape, fill, dtype, order=order)


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
    return _make_array("eye", np.eye, N, M, k, dtype, order=order)


def identity(n: Any, dtype: Any = float, *, like: Any = None) -> Any:
    """numpy.identity; traced in a trace."""
    return eye(n, dtype=dtype)


def arange(
    start: Any = 0,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """numpy.arange; traced in a trace. The length is guarded if a bound is traced; the result is
    differentiable in traced floating bounds.
    """
    bounds = [start, stop, 1 if step is None else step]
    if any(isinstance(b, Value) and b.dtype.kind not in "iub" for b in bounds):
        first, last = (0, start) if stop is None else (start, stop)
        kind = requested_dtype(float if dtype is None else dtype)
        return _floating_range(first, last, bounds[-1], kind)
    return _make_array("arange", np.arange, *map(_range_bound, bounds), dtype=dtype)


def _range_bound(number):
    """A bound of a range as a number that decides on the dtype; a traced integer is guarded."""
    if not isinstance(number, Value):
        return number
    concrete = int(number)
    return concrete if number.type.weak else number.dtype.type(concrete)


def _floating_range(start, stop, step, dtype):
    """numpy.arange of floating bounds, rounded as by NumPy: in steps from number 0 to number 1."""
    count = max(int(np.ceil((stop - start) / step)), 0)  # int records a guard
    first, second = array(start, dtype), array(start + step, dtype)
    values = first + np.arange(count, dtype=dtype) * (second - first)
    if count > 1:
        values[1] = second
    return values


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
    """numpy.full_like, also of a traced value; traced in a trace."""
    fill = stack_traced(fill_value)
    make, numpys = [functools.partial(f, fill_value=fill) for f in (full, np.full_like)]
    return _make_like(make, numpys, a, dtype, order, subok, shape)


def _make_like(make: Callable, function: Callable, a, dtype, order, subok, shape):
    """NumPy's ``function``, or ``make`` with the shape and dtype of ``a`` if a trace is active."""
    a = stack_traced(a)
    a = a.as_constant() if isinstance(a, Value) else a
    if isinstance(a, Value) or _unpaused_trace() is None:  # NumPy's protocol records it for a Value
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
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    """numpy.array of numbers, arrays and traced values in nested lists; traced in a trace."""
    trace = _unpaused_trace()
    object = array_of_object(object)
    if ndmax:
        _refuse_deeper(object, dtype, ndmin, ndmax)
    if isinstance(object, Sequence) and not isinstance(object, str | bytes | range | Value):
        object = list(object)  # also a deque
    if isinstance(dtype, Value):
        requested_dtype(dtype)  # refuses an array
    if dtype is not None and trace is not None and "float_texts" in vars(trace):
        LATE_BOUND["refuse_texts"](object, dtype)
    if trace is not None and not isinstance(object, Value) and not has_traced(object):
        result = np.array(unwrap_buffers(object), dtype, copy=copy, order=order, ndmin=ndmin)
        if not (isinstance(object, np.ndarray) and is_in_same_memory(result, object)):
            return as_buffer(trace, result)
    if trace is not None:
        if type(dtype) in (list, np.dtype) and np.dtype(dtype).names:
            return LATE_BOUND["structured_rows"](trace, object, np.dtype(dtype))
        result = _as_traced_array(trace, object, dtype)
    elif first_traced(object) is not None:  # a Variable
        result = strong_element(stack_traced(object))
        result = result if dtype is None else result.astype(dtype, copy=False)
    else:
        return np.array(object, dtype, copy=copy, order=order, ndmin=ndmin)
    if type(copy) is str or (copy is False and result is not object):
        np.array(0.0, copy=copy)  # raises NumPy's ValueError
    is_shared = result is object and copy in (True, np._CopyMode.ALWAYS)
    result = result.copy(order) if is_shared else result
    for _ in range(result.ndim, ndmin):  # in front, as NumPy adds axes
        result = result[None]
    return result


def _refuse_deeper(object: Any, dtype: Any, ndmin: int, ndmax: int) -> None:
    """Raise NumPy's error if a list is nested more deeply than ``ndmax``."""
    depth = 0 if isinstance(object, Value | np.ndarray) else np.ndim(stack_traced(object))
    np.array(np.zeros((1,) * depth).tolist(), ndmin=ndmin, ndmax=ndmax)  # type: ignore[call-overload]  # since 2.4


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

    A traced array made from an ordinary array is read-only, because the array is not copied.
    """
    trace = _unpaused_trace()
    if trace is None and first_traced(a) is None:
        return np.asarray(a, dtype, order, copy=copy)
    value: Any = array(a, dtype, copy=copy)
    if trace is None or not issubclass(type(value), Value):  # a structured array
        return value
    if order in ("C", "F") and isinstance(value, Value) and value.ndim:
        # whether a row is contiguous is decided when the program runs
        value = ensure_memory_order(value, order) if value.ndim > 1 else value.ravel()
    is_ordinary = isinstance(a, np.ndarray) and not isinstance(a, Value)
    if is_ordinary and a.dtype == value.dtype and not copy:
        value.sharing = Memory(value.arg, reason=(f"{value.type} of an ordinary array", _ORDINARY))
    return value


def _as_traced_array(trace: Trace, object: Any, dtype: Any) -> Any:
    """``object`` as a traced array of this dtype: itself if it is one."""
    result: Any = strong_element(stack_traced(object))
    if type(object) is list and dtype is not None:
        result = converted_list(trace, object, result, np.dtype(dtype))
    is_traced = isinstance(result, Value)
    if not is_traced:
        frozen_copy, local = trace.frozen(result)
        result = trace.make_tracer(trace, local, frozen_copy)
    elif result.is_scalar():
        is_real = dtype is not None and np.dtype(dtype).kind in "biuf"
        if is_real and object.type.weak and result.dtype.kind == "c":  # as NumPy says it
            raise TypeError("float() argument must be a string or a real number, not 'complex'")
        result = full((), result)  # NumPy makes a 0-d array of a scalar
    return result if dtype is None or result.dtype == dtype else result.astype(dtype)


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
    """numpy.ascontiguousarray: at least 1-d; a copy if the array is not in C order."""
    result = asarray(a, dtype, "C")
    return result if np.ndim(result) else result.reshape(1)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """numpy.asfortranarray: at least 1-d; a copy if the array is not in Fortran order."""
    result = asarray(a, dtype, "F")
    return result if np.ndim(result) else result.reshape(1)


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """numpy.require; for a traced array the dtype and the memory order."""
    if _unpaused_trace() is None and first_traced(a) is None:
        return np.require(a, dtype, requirements)
    np.require(np.zeros(()), None, requirements)  # raises for unknown ones
    names = [] if requirements is None else [str(n).upper()[:1] for n in requirements]
    return asarray(a, dtype, "C" if "C" in names else "F" if "F" in names else None)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """numpy.asarray_chkfinite; for a traced array a guard checks that it is finite."""
    result = asarray(a, dtype, order)
    if result.dtype.kind in "fc" and not np.isfinite(result).all():
        raise ValueError("array must not contain infs or NaNs")
    return result


def as_traced_constant(value: Any) -> Any:
    """A new array made by NumPy, as a buffer if a trace is active."""
    return value if (trace := _unpaused_trace()) is None else as_buffer(trace, value)

"""``letir.numpy``: NumPy's namespace, with what its protocols cannot hand to a trace.

Inside a trace the functions that make arrays return traced values, into which traced values can be
written; every other function that is recorded also takes lists that hold traced values. Outside a
trace, and for everything else, it is NumPy.

>>> import letir, numpy as np
>>> import letir.numpy as lnp
>>> def ramp(t):
...     buffer = lnp.zeros(3)
...     buffer[1:] = lnp.array([t, 2 * t])
...     return buffer
>>> letir.trace(ramp, 1.0)(5.0), ramp(5.0)
(array([ 0.,  5., 10.]), array([ 0.,  5., 10.]))
"""

import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType

import numpy as np
from attrs import frozen

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.tracing.dispatch import call_function, recorder_of
from letir.tracing.lists import first_traced, gathered, strong
from letir.tracing.recorder import ACTIVE, Trace

JOINS = frozenset([np.concatenate, np.stack])  # of a list of arrays, each of which may be a list
FUNCTIONS = (np.ufunc, type(np.concatenate), FunctionType, BuiltinFunctionType)


def active_trace() -> Trace | None:
    """The trace that is under way in this thread and not paused."""
    active = ACTIVE.get()
    return active if isinstance(active, Trace) else None


# ---- functions that make arrays ----


def _made(name: str, function: Callable, *args, **kwargs):
    """``function`` of NumPy's, or the record ``name`` where a trace is active."""
    trace = active_trace()
    if trace is None:
        return function(*args, **kwargs)
    op = PRIMITIVES[name]
    operands, attrs = op.prepare(*args, **kwargs)
    return trace.apply(op, operands, op.complete(attrs))


def zeros(shape, dtype=float, order="C", *, device=None, like=None):
    """numpy.zeros; traced in a trace."""
    return _made("zeros", np.zeros, shape, dtype, order)


def ones(shape, dtype=float, order="C", *, device=None, like=None):
    """numpy.ones; traced in a trace."""
    return _made("ones", np.ones, shape, dtype, order)


def empty(shape, dtype=float, order="C", *, device=None, like=None):
    """numpy.empty; zeros in a trace, where nothing is left to chance."""
    return _made("zeros", np.empty, shape, dtype, order)


def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    """numpy.full, of a traced value too; traced in a trace."""
    fill = gathered(fill_value)
    return _made("full", np.full, shape, np.asarray(fill) if type(fill) is list else fill, dtype)


def eye(N, M=None, k=0, dtype=float, order="C", *, device=None, like=None):
    """numpy.eye; traced in a trace."""
    return _made("eye", np.eye, N, M, k, dtype)


def identity(n, dtype=float, *, like=None):
    """numpy.identity; traced in a trace."""
    return eye(n, dtype=dtype)


def arange(start, stop=None, step=1, dtype=None, *, device=None, like=None):
    """numpy.arange; traced in a trace. Traced integers among its arguments record a guard."""
    return _made("arange", np.arange, *map(_bound, (start, stop, step)), dtype=dtype)


def _bound(number):
    """A bound of a range, on which a shape depends: a traced integer is asked for its value."""
    if not isinstance(number, Value):
        return number
    if number.dtype.kind not in "iu":
        raise number.refused("arange()", "its length would depend on the value: pass integers")
    return number.__index__()  # records the guard


def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """numpy.zeros_like; traced in a trace."""
    return _like(zeros, np.zeros_like, a, dtype, order, subok, shape)


def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """numpy.ones_like; traced in a trace."""
    return _like(ones, np.ones_like, a, dtype, order, subok, shape)


def empty_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """numpy.empty_like; zeros in a trace."""
    return _like(zeros, np.empty_like, a, dtype, order, subok, shape)


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """numpy.full_like, of a traced value too; traced in a trace."""
    fill = gathered(fill_value)
    make, function = functools.partial(full, fill_value=fill), np.full_like
    return _like(make, functools.partial(function, fill_value=fill), a, dtype, order, subok, shape)


def _like(make: Callable, function: Callable, a, dtype, order, subok, shape):
    """``function`` of NumPy's, or ``make`` of the shape and dtype of ``a`` if a trace is active."""
    a = gathered(a)
    if isinstance(a, Value) or active_trace() is None:  # NumPy asks a Value by its protocol
        return function(a, dtype=dtype, order=order, subok=subok, shape=shape)
    a = np.asarray(a)
    return make(a.shape if shape is None else shape, dtype=a.dtype if dtype is None else dtype)


def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None):
    """numpy.array of numbers, arrays and traced values in nested lists; traced in a trace."""
    trace = active_trace()
    if trace is not None:
        made = _traced(trace, object, dtype)
    elif first_traced(object) is not None:  # a Variable
        made = strong(gathered(object))
        made = made if dtype is None else made.astype(dtype, copy=False)
    else:
        return np.array(object, dtype, copy=copy, order=order, ndmin=ndmin)
    for _ in range(made.ndim, ndmin):  # in front, as NumPy adds axes
        made = made[None]
    # a traced list is a new array already; only a traced value itself could be shared
    return made.copy() if copy and made is object else made


def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """numpy.asarray of numbers, arrays and traced values in nested lists; traced in a trace.

    What stands for an ordinary array cannot be written into: the array is not this function's.
    """
    trace = active_trace()
    if trace is None and first_traced(a) is None:
        return np.asarray(a, dtype, order, copy=copy)
    made = array(a, dtype, copy=copy)
    if trace is None:
        return made
    if isinstance(a, np.ndarray) and a.dtype == made.dtype and not copy:
        # a view without a part, which Tracer.unchangeable refuses to write into
        made.base, made.part = trace.make_tracer(trace, made.arg, made.value), ()
    return made


def _traced(trace: Trace, object, dtype) -> Value:
    """``object`` as a traced array of this dtype: itself if it is one."""
    made = strong(gathered(object))
    if not isinstance(made, Value):
        frozen_copy, local = trace.frozen(made)
        made = trace.make_tracer(trace, local, frozen_copy)
    elif made.is_scalar():
        made = full((), made)  # NumPy makes a 0-d array of a scalar
    return made if dtype is None or made.dtype == dtype else made.astype(dtype)


# ---- all other functions ----


@frozen
class Recorded:
    """A NumPy function that also takes lists of traced values where it takes arrays."""

    function: Callable

    def __call__(self, *args, **kwargs):
        traced = first_traced((*args, *kwargs.values()))
        if traced is None:
            return self.function(*args, **kwargs)
        if isinstance(self.function, np.ufunc):
            return self.function(*map(gathered, args), **kwargs)
        recorded = recorder_of(self.function) is not None
        # only the first argument: lists in others are shapes, axes and sections
        if args and self.function not in JOINS and (recorded or type(args[0]) is list):
            args = (gathered(args[0]), *args[1:])
        if recorded:
            return call_function(traced, self.function, args, kwargs)
        return self.function(*args, **kwargs)  # NumPy asks the traced value, which refuses

    def __getattr__(self, name):
        # copy and pickle ask before it is there: it would ask itself for ever
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)


_recorded = functools.cache(Recorded)  # one object a function: lnp.sin is lnp.sin


def __getattr__(name: str):
    if name.startswith("__"):  # doctest and copy ask modules for such names
        raise AttributeError(f"module 'letir.numpy' has no attribute {name!r}")
    try:
        found = getattr(np, name)
    except AttributeError:
        raise AttributeError(f"numpy has no {name!r}, and neither has letir.numpy") from None
    return _recorded(found) if isinstance(found, FUNCTIONS) else found


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(np)})

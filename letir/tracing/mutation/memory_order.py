"""The memory order of traced arrays, as far as a program can know it.

The memory order decides whether a reshape is a view or a copy. It depends on the memory order of
the arguments: in a concrete trace the order of the given arrays, otherwise C order. If a write
makes the difference visible, the program gets a guard.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Local
from letir.errors import TraceError
from letir.ops.effects.writes_to_arguments import order_of
from letir.tracing.mutation.views import Memory, index_entries, ravel_in_order
from letir.tracing.source_locations import at_user

if TYPE_CHECKING:
    from letir.tracing.trace_state import Trace
    from letir.tracing.tracer import Tracer


def _order_sources(trace, local: Local) -> frozenset:
    """The arguments whose memory order may decide the memory order of ``local``."""
    result, done = trace.orders
    # continues where the last call ended, so that all calls together take linear time
    for bind in trace.binds[done:]:
        if bind.op.order == "C":
            continue
        from_these = frozenset().union(*[result[arg] for arg in bind.locals() if arg in result])
        if from_these:
            # a new 1-d array is contiguous, a view of a column is not
            least = 1 if bind.op.write_through is None else 0
            result.update((b, from_these) for b in bind.binders if len(b.type.shape) > least)
    trace.orders = result, len(trace.binds)
    return result.get(local, frozenset())


def fix_order(trace: "Trace", local: Local) -> None:
    """Record a guard on the current memory order of these arguments."""
    for param in _order_sources(trace, local) - trace.fixed:
        trace.fixed.add(param)
        trace.emit(PRIMITIVES["guard_order"], (param,), Attrs(order=trace.arguments[param]))


def given_order(argument: Any) -> "str | tuple":
    """The memory order of an argument; C for an abstract one."""
    argument = (
        argument.known_value()
        if hasattr(argument, "known_value")
        else getattr(argument, "array", argument)
    )
    return order_of(argument) if isinstance(argument, np.ndarray) else "C"


def array_like(trace: "Trace", base: "Tracer", local: Local) -> "np.ndarray | None":
    """An array with the memory layout of ``base`` (initially ``local``); None if it is unknown."""
    another = trace.as_another.get(local)
    value = trace.demand(local if another is None else another)
    if isinstance(value, np.ndarray):
        return value if another is None else np.empty_like(value)
    if not is_static_shape(base.shape) or not _is_in_c_order(trace, local):
        return None
    size = base.dtype.itemsize
    strides = [size * math.prod(base.shape[i + 1 :]) for i in range(base.ndim)]
    # the elements do not exist, and are never read
    return np.lib.stride_tricks.as_strided(np.empty(1, base.dtype), base.shape, strides)


def _is_in_c_order(trace, local: Local) -> bool:
    """Whether a value certainly has C order if all arguments do."""
    visited = _visited(trace, local, trace.known_in_c_order, _values_that_decide)
    trace.known_in_c_order |= visited or set()
    return visited is not None


def _visited(trace, local: Local, known: set, deciding_values: Callable) -> "set[Local] | None":
    """The values on which the order of ``local`` depends, up to ``known`` ones, by the function
    ``deciding_values(bind, local)``; None if it returns None for one of them.
    """
    makers, todo = _makers(trace), [local]
    visited: set[Local] = set()
    while todo:
        current = todo.pop()
        current = trace.as_another.get(current, current)
        if current in visited or current in known:
            continue
        visited.add(current)
        deciding = deciding_values(makers.get(current), current)
        if deciding is None:
            return None
        todo += deciding
    return visited


def _makers(trace) -> dict:
    """The bind of each local of a trace."""
    makers, done, last = trace.makers
    if done > len(trace.binds) or (done and trace.binds[done - 1] is not last):
        makers, done = {}, 0  # binds were taken back
    # continues where the last call ended, so that all calls together take linear time
    makers.update((b, bind) for bind in trace.binds[done:] for b in bind.binders)
    trace.makers = makers, len(trace.binds), trace.binds[-1] if trace.binds else None
    return makers


def _values_that_decide(bind, local: Local) -> "list[Local] | None":
    """The values whose C order implies C order of ``local``; None if nothing implies it."""
    if bind is None or bind.op.order == "C":
        return []
    if bind.op.role == "constant":
        return [] if order_of(bind.attrs["value"]) == "C" else None
    if bind.op.order == "first":
        first = bind.args[0]
        if type(first) is not Local or math.prod(first.type.shape) != math.prod(local.type.shape):
            return None  # the axes of a broadcast operand may have any order in memory
        return [first] if bind.attrs.get("order", "C") in ("C", "K") else None
    if bind.op.role == "index" and len(bind.args) == 1 and _takes_rows(bind.attrs["item"]):
        return [bind.args[0]]
    if bind.op.order != "all":
        return None  # a view may skip elements, or go backwards; others may give a transpose
    if local.type.ndim < 2:
        return []  # a new array of one axis
    return [arg for arg in bind.locals() if arg.type.ndim > 1 or not bind.op.elementwise]


def _takes_rows(item) -> bool:
    """Whether an index of a C-order array selects contiguous elements: x[2:], x[0, 1], x[None]."""
    entries = [e for e in index_entries(item) if e is not None]
    last = entries[-1] if entries and type(entries[-1]) is slice else None
    numbers = entries if last is None else entries[:-1]
    return all(type(e) is int for e in numbers) and (last is None or last.step in (None, 1))


def may_differ_in_order(base: "Tracer", new: "Tracer") -> bool:
    """Whether ``new``, which replaces the contents of ``base``, may have another memory order."""
    trace = base.emitter
    bind = _makers(trace).get(new.arg)
    is_own = bind is not None and bind.op.elementwise and base.arg in bind.args
    if is_own and all(arg is base.arg or arg.type.ndim < 2 for arg in bind.locals()):
        return False  # computed of the base alone, as by x *= 2
    return not trace.in_c_order or any(_may_have_other_order(trace, x.arg) for x in (base, new))


def _may_have_other_order(trace: "Trace", local: Local) -> bool:
    """Whether a value may have another memory order than C order, if all arguments have C order.

    Unlike for ``_is_in_c_order``, a view that skips elements counts as in C order if the array has
    it: what is computed of the view has C order.
    """
    others = trace.with_other_order

    def deciding_values(bind, current: Local) -> "list[Local] | None":
        deciding = _values_that_may_reorder(bind, current)
        return deciding if deciding is None or others.isdisjoint(deciding) else None

    visited = _visited(trace, local, trace.without_other_order, deciding_values)
    if visited is None:
        others.add(local)
        return True
    trace.without_other_order |= visited
    return False


def _values_that_may_reorder(bind, local: Local) -> "list[Local] | None":
    """The values of which another order than C may give ``local`` another; None if it may have one
    in any case.
    """
    if bind is None or bind.op.order == "C" or local.type.ndim < 2:
        return []
    if bind.op.role == "constant":
        return [] if order_of(bind.attrs["value"]) == "C" else None
    if bind.op.order == "first":
        return [bind.args[0]] if bind.attrs.get("order", "C") in ("C", "K") else None
    if bind.op.elementwise:
        # NumPy prefers C order where the orders of operands differ
        same = [arg for arg in bind.locals() if arg.type.shape == local.type.shape]
        return same[:1] or [*bind.locals()]
    is_permuted = bind.op.memory == "view" and "axes" in bind.attrs
    return [*bind.locals()] if bind.op.memory in ("new", "view") and not is_permuted else None


def ordered_like(value: Any, like: Any, order: str = "K") -> Any:
    """``value`` with the memory order of NumPy's ``zeros_like``."""
    trace = value.emitter
    if not hasattr(trace, "orders"):  # the value is a Variable
        return value
    if not value.shape:
        # certainly an array, not a scalar, also in abstract traces
        value.sharing = Memory(value.arg)
    if value.ndim < 2 or order == "C":
        return value
    if order == "F":
        return PRIMITIVES["copy"](value, "F")
    if value.shape != like.shape:
        return value
    # it has no operand that would determine the order
    trace.orders[0][value.arg] = _order_sources(trace, like.arg)
    array = like.known_value()
    if array is None:
        is_certain = trace.in_c_order and _is_in_c_order(trace, like.arg)
        # no array in an abstract trace, where C order is assumed
        array = None if is_certain else like.concrete_value()
        if not isinstance(array, np.ndarray):
            trace.as_another[value.arg] = like.arg
            return value
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return value
    axes = _axes_in_memory(np.empty_like(array))
    return value if axes == sorted(axes) else _transposed_to(value, axes, like.arg)


def copy_in_order_of(result: Any, sample: np.ndarray) -> Any:
    """``result`` with the memory order of ``sample``, NumPy's own result."""
    value = result.concrete_value()
    if not hasattr(result.emitter, "orders") or not isinstance(value, np.ndarray):
        return result  # a Variable, or a value of an abstract trace, where C order is assumed
    if order_of(value) == order_of(sample):
        return result
    return _transposed_to(result, _axes_in_memory(sample), result.arg)


def _axes_in_memory(array: np.ndarray) -> list[int]:
    """The axes of an array, the one with the longest step in memory first."""
    return sorted(range(array.ndim), key=lambda i: -array.strides[i])


def _transposed_to(value: Any, axes: list[int], source: Local) -> Any:
    """A copy of ``value`` with its axes in this order in memory.

    If the memory order of ``source`` depends on arguments, a guard fixes their memory order.
    """
    fix_order(value.emitter, source)
    rows = PRIMITIVES["copy"](PRIMITIVES["transpose"](value, tuple(axes)), "C")
    return PRIMITIVES["transpose"](rows, tuple(sorted(range(value.ndim), key=axes.__getitem__)))


def copy_to_order(result: Any, order: str = "C") -> Any:
    """A new array in C or Fortran order: ``result``, or a copy if it has another memory order."""
    trace = result.emitter
    if result.ndim < 2 or not hasattr(trace, "orders"):  # a Variable is not an argument
        return result
    if order == "F":
        return PRIMITIVES["copy"](result, "F")
    if trace.in_c_order and _is_in_c_order(trace, result.arg):
        return result
    value = result.concrete_value()  # none in an abstract trace, where C order is assumed
    if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return result
    return PRIMITIVES["copy"](result, "C")


def ravel_in_memory_order(a: Any, order: str = "C") -> Any:
    """np.ravel with order A or K, which depends on the memory layout: a guard fixes it."""
    if order not in ("A", "K"):
        return ravel_in_order(a, order)
    value, trace = a.concrete_value(), a.emitter
    if isinstance(value, np.ndarray):
        steps = [-abs(s) if n > 1 else 0 for s, n in zip(value.strides, value.shape, strict=True)]
        in_columns = value.flags.f_contiguous and not value.flags.c_contiguous
    elif _is_in_c_order(trace, a.arg):
        steps, in_columns = [], False
    else:
        raise TraceError(
            f"ravel(order={order!r}) of {a.type}, whose memory order is not known{at_user()}\n"
            "  pass C or F, or trace with concrete arrays"
        )
    if hasattr(trace, "orders"):  # a Variable is not an argument
        fix_order(trace, a.arg)
    if order == "A" or in_columns or a.ndim < 2:
        return ravel_in_order(a, "F" if in_columns else "C")
    axes = tuple(sorted(range(len(steps)), key=steps.__getitem__))
    is_sorted = axes == tuple(range(len(axes)))
    return ravel_in_order(a if is_sorted else PRIMITIVES["transpose"](a, axes))


ravel_in_memory_order.__qualname__ = "ravel"  # Python's errors about arguments show it


def ensure_memory_order(array: Any, order: str) -> Any:
    """A traced array in C or Fortran order: itself if it has that order, else a copy."""
    try:
        flags = LATE_BOUND["layout_of"](array).flags
    except TraceError:  # unknown, in an abstract trace: C order is assumed
        return array
    is_so = flags.c_contiguous if order == "C" else flags.f_contiguous
    return array if is_so else PRIMITIVES["copy"](array, order)


def keep_order_of_written(base: "Tracer", new: "Tracer") -> Any:
    """``new`` in the memory order of ``base``, which a write preserves.

    The rounding of sums, and which operations give views, depend on that order.
    """
    old, value = base.concrete_value(), new.concrete_value()
    if not isinstance(old, np.ndarray) or _steps_of(old) == _steps_of(value):
        return new
    if _steps_of(old) == _steps_of(np.empty_like(old)):  # a copy has the same layout
        return base.at[...].set(new)
    trace, memory = new.emitter, np.empty_like(old, shape=_extent_of(old), dtype=np.uint8)
    lowest = sum(min(0, (n - 1) * step) for n, step in zip(old.shape, old.strides, strict=True))
    written = np.ndarray(old.shape, old.dtype, memory, -lowest, old.strides)
    written[...] = value
    if new.arg in trace.concrete:
        trace.concrete[new.arg] = written
    return trace.make_tracer(trace, new.arg, written)


def _steps_of(array) -> list:
    """The strides of an array along axes of more than one element."""
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1 and array.size]


def _extent_of(array) -> int:
    """The number of bytes that an array spans in memory."""
    pairs = zip(array.strides, array.shape, strict=True)
    return array.itemsize + sum(abs(s) * (n - 1) for s, n in pairs) if array.size else 0

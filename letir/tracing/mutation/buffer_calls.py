"""Calls and operations on buffers, the arrays that a recorded function makes.

NumPy computes them, unless another argument is traced."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive, results_tuple
from letir.eval.evaluator import compute
from letir.tracing.mutation.buffers import (
    Buffer,
    has_traced,
    new_buffer,
    record_contents,
    unwrap_buffers,
    wrap_known,
)
from letir.tracing.mutation.views import (
    MAX_INDEX_CHAIN,
    Memory,
    SharedView,
    is_in_same_memory,
    shorten_views,
    view_base,
)
from letir.tracing.numpy_functions.registry import CALLING_BACK
from letir.tracing.numpy_protocols.dispatch import call_function, out_position
from letir.tracing.trace_state import NOT_COMPUTED, Trace
from letir.tracing.tracer import Tracer

# NumPy's functions that write into their first argument
_WRITERS = frozenset([np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal])
# functions that return their arguments or views of them, traced or not
_MIXED_VIEWS = frozenset([np.broadcast_arrays, np.atleast_1d, np.atleast_2d, np.atleast_3d])


# ---- calls ----


def _buffers_in(value: Any) -> Iterable[Buffer]:
    """The buffers in nested lists, tuples and dicts."""
    kind = type(value)
    if kind is Buffer:
        yield value
    elif kind in (tuple, list, dict):
        for item in value.values() if kind is dict else value:
            yield from _buffers_in(item)


def call_with_buffers(traced: Tracer, func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """The result of a NumPy function of which some arguments may be buffers.

    NumPy computes it if nothing else is traced. Otherwise buffers enter as ordinary arrays, unless
    the function writes into them.
    """
    buffers = list(_buffers_in((args, kwargs)))
    if not buffers or func in CALLING_BACK:
        return call_function(traced, func, args, kwargs)
    if has_traced((args, kwargs)):
        if func not in _MIXED_VIEWS:
            written = 0 if func in _WRITERS else out_position(func)
            args = tuple([x if i == written else unwrap_buffers(x) for i, x in enumerate(args)])
            out = {name: value for name, value in kwargs.items() if name == "out"}
            kwargs = unwrap_buffers(kwargs) | out
        return call_function(traced, func, args, kwargs)
    result = func(*unwrap_buffers(args), **unwrap_buffers(kwargs))
    if "out" not in kwargs and any(_is_view_of_buffer(result, buffer) for buffer in buffers):
        return call_function(traced, func, args, kwargs)  # a view must refer to its base
    return wrap_known(result, buffers, traced.emitter)


def _is_view_of_buffer(result: Any, buffer: Buffer) -> bool:
    """Whether a result, or an element of a sequence of results, is a view of a buffer."""
    if isinstance(result, tuple | list):
        return any(_is_view_of_buffer(item, buffer) for item in result)
    return isinstance(result, np.ndarray) and is_in_same_memory(result, buffer.held_value)


# ---- operations ----


def compute_known(trace: Trace, op: Primitive, operands: tuple, attrs: Attrs) -> Any:
    """The result of an operation on buffers, arrays and numbers, computed without recording it.

    ``NOT_COMPUTED`` if an operand is traced, or if the operation does more than compute.
    """
    if Buffer not in map(type, operands):
        return NOT_COMPUTED
    if has_traced(operands) or op.effect or op.random or op.holds_lambdas:
        # the result may be a view of a place that depends on an argument
        if op.write_through is not None and type(operands[0]) is Buffer:
            record_contents(operands[0])
        return NOT_COMPUTED
    out = results_tuple(op, compute(op, [_array_of(operand) for operand in operands], attrs))
    results = tuple([_known_result(trace, v, op, operands, attrs, i) for i, v in enumerate(out)])
    return results if op.results is not None else results[0]


def _array_of(operand):
    """The array of a buffer; other operands unchanged."""
    return operand.held_value if type(operand) is Buffer else operand


def _known_result(
    trace: Trace, value: Any, op: Primitive, operands: tuple, attrs: Attrs, place: int
):
    """A result in NumPy's form: a scalar, a new buffer, or a view of an operand that is a buffer.

    ``place``: the position among the results.
    """
    if not isinstance(value, np.ndarray):
        return value
    result, parent = new_buffer(trace, value), operands[0]
    if type(parent) is not Buffer or not is_in_same_memory(value, parent.held_value):
        return wrap_known(value, operands, trace)
    if op.part is not None:
        op, part_attrs = op.part(parent.type, place, **attrs)
        attrs = Attrs(part_attrs)
    depth = 1 if type(parent.sharing) is not SharedView else parent.sharing.depth + 1
    view = SharedView(parent, op, operands[1:], attrs, depth)
    result.sharing = shorten_views(view) if depth > MAX_INDEX_CHAIN else view
    base = view_base(parent)
    if base.sharing is None:
        base.sharing = Memory(None)
    base.sharing.add(result)
    return result


LATE_BOUND["call_with_buffers"] = call_with_buffers
LATE_BOUND["compute_known"] = compute_known

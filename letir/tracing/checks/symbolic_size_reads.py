"""Reads of symbolic sizes during a trace [semantics.md B10].

Arithmetic turns symbolic sizes into traced numbers; code whose result depends on the value of a
size raises an error with its line.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.builder import LetBuilder, Value
from letir.ast.sizes.size import Size
from letir.ast.sizes.size_reads import SIZE_READS, SizeReads
from letir.ast.types import ShapeDtype
from letir.errors import TraceError
from letir.ops.shape.size_numbers import number_from
from letir.tracing.numpy_protocols.dispatch import call_function
from letir.tracing.source_locations import at_user
from letir.tracing.trace_state import ACTIVE, LAZY, Trace


def watch_size_reads(trace: Trace) -> None:
    """Refuse reads of sizes until ``trace``, which has a parameter with symbolic sizes, is closed.

    An existing watch stays: ``jit`` then gives up symbolic sizes, and uses the numbers.
    """
    if SIZE_READS.get() is None:
        SIZE_READS.set(SizeReads(partial(_refuse_size_read, trace)))
        trace.watches_sizes = True


def _refuse_size_read(trace, place: str, needed: str, is_decided: bool) -> None:
    """Raise TraceError for a read whose answer depends on the value of a symbolic size."""
    if is_decided:
        return
    error = TraceError(
        f"{needed}: the size has a name but no value while this is traced\n"
        f"  at {place}\n"
        "  make the choice where the number is known, pass the number as a static argument,\n"
        "  or trace with concrete arrays"
    )
    trace.refusal = trace.refusal or str(error)  # raised again if the function catches it
    raise error


# ---- sizes as traced numbers ----


def number_of_size(size: Size, emitter: LetBuilder | None = None) -> Value:
    """The number of a size, as a Python integer of a program: by default of the active trace.

    Raises TraceError if no parameter of the program has the size.
    """
    active = ACTIVE.get()
    program = emitter or (active if isinstance(active, Trace) else None)
    result = None if program is None else number_from(size, [], program)
    if result is None:
        raise TraceError(
            f"the number {size} is not known: no argument here has this size{at_user()}\n"
            "  pass the number as a static argument, or trace with concrete arrays"
        )
    return result


def answer_by_guard(size: Size, compare: Callable[[Any, Any], Any], other: Any) -> bool | None:
    """``compare(size, other)`` for the values at hand, with a guard; None without values.

    The guard belongs to the outermost trace that has the size: a body may run at other times.
    """
    active = ACTIVE.get()
    traces = [active, *active.enclosing()] if isinstance(active, Trace) else []
    for trace in reversed(traces):
        if trace.mode is LAZY and _has_values(trace, size) and _has_values(trace, other):
            outside = ACTIVE.set(trace)
            try:
                other = other.number() if type(other) is Size else other
                return bool(compare(size.number(), other))
            finally:
                ACTIVE.reset(outside)
    return None


def _has_values(trace: Trace, size: Any) -> bool:
    """Whether parameters of a trace that have values determine a size."""
    shapes = [
        p.type.shape for p in trace.params if not isinstance(trace.concrete.get(p), ShapeDtype)
    ]
    names = {name for shape in shapes for n in shape if type(n) is Size for name in n.names}
    return type(size) is not Size or size.names <= names


def numpy_call_on_size(size: Size, func: Callable, args: tuple, kwargs: dict) -> Any:
    """NumPy's function on arguments of which ``size`` is the first that it dispatches on."""
    number = size.number()
    args = tuple([number if arg is size else arg for arg in args])
    named = {name: number if arg is size else arg for name, arg in kwargs.items()}
    return call_function(number, func, args, named)


LATE_BOUND["watch_size_reads"] = watch_size_reads
LATE_BOUND["number_of_size"] = number_of_size
LATE_BOUND["answer_by_guard"] = answer_by_guard
LATE_BOUND["numpy_call_on_size"] = numpy_call_on_size

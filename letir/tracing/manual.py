"""The low-level tracing API: ``tracer_enter``, ``tracer_exit``, ``pause_tracing`` ...."""

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from letir.ast import entry_point
from letir.ast.pytrees import flatten
from letir.ast.signatures import R
from letir.ast.terms import Const, Lambda, Local
from letir.errors import TraceError
from letir.tracing.entry import add_parameter, finish_trace, open_trace, with_result_guards
from letir.tracing.trace_state import ABSTRACT, ACTIVE, EAGER, Paused, Trace
from letir.tracing.tracer import Tracer


@entry_point
def tracer_enter(inputs: R, abstract: bool = False) -> R:
    """Begin a trace in this thread; returns traced values for ``inputs``, with the same nesting.

    End it with ``tracer_exit``, in a ``finally`` block: until then this thread is tracing. Traces
    may be nested.

    >>> import numpy as np
    >>> x, y = tracer_enter((np.ones(2), 3.0))
    >>> print(tracer_exit(x * y).listing(), end="")
    %2 = mul %0, %1
    return %2
    """
    leaves, spec = flatten(inputs)
    new = open_trace(ABSTRACT if abstract else EAGER)
    new.writes, new.root = True, sys._getframe(1).f_code
    tracers = [add_parameter(new, leaf, None) for leaf in leaves]
    ACTIVE.set(new)
    entered: Any = spec.unflatten(tracers)
    return entered


@entry_point
def tracer_exit(outputs: Any) -> Lambda:
    """End the trace that was begun last, and return its program with these results (a pytree).

    The program takes the leaves of the inputs as flat arguments.

    >>> import numpy as np
    >>> x = tracer_enter(np.ones(2))
    >>> tracer_exit({"twice": 2 * x})(np.ones(2))
    {'twice': array([2., 2.])}
    """
    active = ACTIVE.get()
    if not isinstance(active, Trace):
        raise TraceError(
            "tracer_exit: no trace is active in this thread\n  begin one with tracer_enter"
        )
    try:
        outputs = with_result_guards(active, outputs)
        active.write_back()
        return finish_trace(active, outputs, None)[0]
    finally:
        active.close()
        ACTIVE.set(active.parent)  # tracing ends, whatever fails


def is_tracing(*values: Any) -> bool:
    """Whether a trace is active in this thread and, if values are given, one of them is traced.

    >>> import numpy as np
    >>> from letir import trace
    >>> f = trace(lambda x: print(is_tracing(), is_tracing(x)) or x, np.ones(2))
    True True
    >>> is_tracing()
    False
    """
    active = ACTIVE.get()
    if not isinstance(active, Trace):
        return False
    leaves = flatten(values)[0]
    return not values or any(isinstance(leaf, Tracer) and leaf.emitter is active for leaf in leaves)


@contextmanager
def pause_tracing() -> Iterator[Trace | None]:
    """A context in which operations on traced values compute without being recorded.

    Yields the paused trace, whose ``emit(op, args, attrs)`` records by hand; None without a trace.

    >>> import numpy as np
    >>> from letir import trace
    >>> def f(x):
    ...     with pause_tracing():
    ...         print(np.sin(x))
    ...     return x * 2
    >>> len(trace(f, np.zeros(2)))
    [0. 0.]
    1
    """
    outer = ACTIVE.get()
    trace = outer.trace if isinstance(outer, Paused) else outer
    try:
        ACTIVE.set(None if trace is None else Paused(trace))
        yield trace
    finally:
        ACTIVE.set(outer)


@entry_point
def local_of(value: Any) -> Any:
    """The local (or constant) of ``value`` in the active trace; also for nested containers.

    >>> import numpy as np
    >>> x = tracer_enter(np.ones(2))
    >>> local = local_of(x)
    >>> local is tracer_exit(x + 1).params[0]
    True
    """
    active = _active_trace("local_of")
    leaves, spec = flatten(value)
    return spec.unflatten([active.enter(leaf) for leaf in leaves])


@entry_point
def set_local(value: R, local: Any) -> R:
    """Traced values with the arrays of ``value`` and the locals ``local`` of the active trace.

    Also for containers of the same nesting.

    >>> import numpy as np
    >>> x = tracer_enter(np.ones(2))
    >>> same = set_local(np.ones(2), local_of(x))
    >>> print(tracer_exit(same * 2).listing(), end="")
    %1 = mul %0, 2
    return %1
    """
    active = _active_trace("set_local")
    leaves, spec = flatten(value)
    locals_ = flatten(local)[0]
    if len(leaves) != len(locals_) or not all(isinstance(arg, Local | Const) for arg in locals_):
        raise TraceError(
            f"set_local: {len(leaves)} values need as many locals, found {local!r}\n"
            "  pass locals nested like the values, as local_of returns them"
        )
    arrays = [leaf.concrete_value() if isinstance(leaf, Tracer) else leaf for leaf in leaves]
    pairs = zip(locals_, arrays, strict=True)
    result: Any = spec.unflatten([Tracer(active, *pair) for pair in pairs])
    return result


def _active_trace(caller: str) -> Trace:
    """This thread's active or paused trace; a TraceError if there is none."""
    active = ACTIVE.get()
    active = active.trace if isinstance(active, Paused) else active
    if active is None:
        raise TraceError(
            f"{caller}: no trace is active in this thread\n"
            "  call it while a function is traced: is_tracing() says so"
        )
    return active


@entry_point
def concrete(x: Any) -> Any:
    """The NumPy value of a traced ``x``, recorded as a guard; other values unchanged.

    Of a pytree, the same tree with such leaves. The program then holds for these values only, and
    no derivative flows through them.

    >>> import numpy as np
    >>> from letir import trace
    >>> f = trace(lambda x, n: x[: int(concrete(n))], np.arange(4.0), np.int64(2))
    >>> f(np.ones(4), np.int64(2))
    array([1., 1.])
    """
    leaves, structure = flatten(x)
    if not any(isinstance(leaf, Tracer) for leaf in leaves):
        return x
    return structure.unflatten([_concrete_leaf(leaf) for leaf in leaves])


def _concrete_leaf(leaf: Any) -> Any:
    """The value of a traced ``leaf``, with a guard; other leaves as they are."""
    # two copies: the guard keeps one, and the user may write into the other
    return copy.copy(leaf.guarded(copy.copy, "the value")) if isinstance(leaf, Tracer) else leaf

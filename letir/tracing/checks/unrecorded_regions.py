"""``no_grad`` inside of a recorded function: values that are computed there have no gradient.

A trace records the operations of such a region like all others. When the trace ends, the values of
the region that are used outside of it get a ``stop_gradient``.
"""

from collections.abc import Sequence

from letir.ast import LATE_BOUND
from letir.ast.attrs import NO_ATTRS
from letir.ast.terms import Bind, Local
from letir.errors import TraceError
from letir.ops.elementwise.casting import stop_gradient
from letir.tracing.source_locations import error_at_user_line
from letir.tracing.trace_state import Trace


def begin_region(trace: Trace) -> None:
    """Mark the beginning of a region without gradients."""
    vars(trace)["region_start"] = len(trace.binds)
    if "stopped" not in vars(trace):
        vars(trace)["stopped"] = set()
        vars(trace).setdefault("at_end", []).append(stop_gradients)


def end_region(trace: Trace, *, after_error: bool = False) -> bool:
    """Mark the end of a region and record its values; returns whether there was a region.

    Raises TraceError for a write to a value from outside, unless an exception is under way: in
    eager mode the value would keep its gradient.
    """
    start = vars(trace).pop("region_start", None)
    if start is None:
        return False
    results = {binder for bind in trace.binds[start:] for binder in bind.binders}
    for bind in () if after_error else trace.binds[start:]:
        if (
            bind.op.update is not None
            and type(bind.args[0]) is Local
            and bind.args[0] not in results
        ):
            raise error_at_user_line(
                TraceError(
                    f"a value from outside of no_grad() is changed in place inside of it: {bind.op}"
                    ", and a recorded function would lose its gradient\n"
                    "  write into a copy, or outside of no_grad() with letir.stop_gradient(value)"
                )
            )
    vars(trace)["stopped"].update(results)
    return True


def stop_gradients(trace: Trace, results: Sequence) -> None:
    """Insert a ``stop_gradient`` after each bind of a region whose results are used outside, also
    as ``results`` of the program.
    """
    end_region(trace)
    stopped = vars(trace)["stopped"]
    outside = {getattr(result, "arg", result) for result in results}
    for bind in trace.binds:
        if stopped.isdisjoint(bind.binders):
            outside.update(bind.locals())
    binds = []
    for bind in trace.binds:
        ends = [b for b in bind.binders if b in stopped and _may_leave(b, outside)]
        inner = {b: Local(b.type, b.name) for b in ends}
        binds.append(bind.replace(binders=tuple([inner.get(b, b) for b in bind.binders])))
        binds += [
            Bind((b,), stop_gradient, (own,), NO_ATTRS, bind.source) for b, own in inner.items()
        ]
    trace.binds[:] = binds


def _may_leave(local: Local, outside: set[Local]) -> bool:
    """Whether a value could carry a gradient out of its region."""
    return local in outside and (local.type is None or local.type.inexact)


LATE_BOUND.update(begin_region=begin_region, end_region=end_region)

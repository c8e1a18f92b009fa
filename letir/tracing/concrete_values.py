"""Values of traced operations: on demand in a lazy trace, and outside of the active trace.

Loaded when the first such value is needed.
"""

from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import Primitive, results_tuple
from letir.ast.terms import Local
from letir.errors import TraceError
from letir.eval.evaluator import compute
from letir.eval.float_warnings import QUIET, in_state
from letir.ops.autodiff.checkpoint_and_custom_jvp import attrs_without_effects
from letir.tracing.trace_state import ABSENT, Paused, Trace


def demanded_value(trace: Trace, local: Local) -> Any:
    """The value of ``local`` in a lazy trace, computed on first demand.

    ABSENT if it depends on an argument without a value.
    """
    needed, todo = set() if local in trace.concrete else {local}, []
    # find the needed binds backwards, compute forwards: linear, without recursion
    for bind in reversed(trace.binds):
        if not needed:
            break
        if not needed.isdisjoint(bind.binders):
            needed.difference_update(bind.binders)
            todo.append(bind)
            needed.update([arg for arg in bind.locals() if arg not in trace.concrete])
    for bind in reversed(todo):
        values = [trace.known_value(a) if type(a) is Local else a.value for a in bind.args]
        if any(value is ABSENT for value in values):
            return ABSENT
        attrs = attrs_without_effects(bind.attrs) if bind.op.holds_lambdas else bind.attrs
        try:
            # without warnings: the program runs after the recording, and warns then
            out = in_state(QUIET, compute, bind.op, values, attrs)
        except BaseException:
            trace.failed = bind
            raise
        trace.concrete.update(zip(bind.binders, results_tuple(bind.op, out), strict=True))
    return trace.known_value(local)


def apply_elsewhere(
    trace: Trace, active: Trace | Paused | None, op: Primitive, operands: Any, attrs: Attrs
) -> Any:
    """An operation on values of ``trace`` while another trace, none, or a pause is active."""
    if isinstance(active, Trace):
        return active.apply(op, operands, attrs)
    operands = tuple([o.as_constant() if isinstance(o, Value) else o for o in operands])
    escaped = next((o for o in operands if isinstance(o, Value) and o.emitter is trace), None)
    if escaped is not None and (active is None or not trace.is_open):
        raise LATE_BOUND["escaped_error"](escaped)
    values = [o.concrete_value() if isinstance(o, Value) else o for o in operands]
    if any(value is ABSENT for value in values):
        raise TraceError(
            "while tracing is paused, operations compute their results: trace with "
            "concrete arguments"
        )
    return compute(op, values, attrs)


LATE_BOUND.update(apply_elsewhere=apply_elsewhere, demanded_value=demanded_value)

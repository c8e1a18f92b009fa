"""Tests that an argument into which a recorded function writes shares no memory with another value
that the function reads: the program would not see the write there.

What is not known while recording is tested at each call, by ``guard_separate``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Local
from letir.eval.evaluator import compute
from letir.ops.effects.writes_to_arguments import has_memory, overlap_error, share_memory
from letir.tracing.mutation.views import Memory, SharedView, view_base
from letir.tracing.source_locations import error_at_user_line, user_place
from letir.tracing.trace_state import Trace
from letir.tracing.tracer import Tracer


def require_separate(trace: Trace, inputs: Sequence, written: Sequence[int]) -> None:
    """Raise TraceError if an input at a position in ``written`` shares memory with another one, or
    with a traced value from outside that the recorded function reads.

    ``inputs``: arrays, numbers and traced values. Arguments of enclosing traces are tested at each
    call, by an operation that is recorded there.
    """
    names = [param.name or f"argument {i}" for i, param in enumerate(trace.params)]
    values = [*inputs, *[outer for outer, _ in trace.lifted.values()]]
    _test_separation(trace.parent, values, names, written)


def inlined_effect(trace: Trace, op: Primitive, operands: Sequence, attrs: Attrs) -> Any:
    """The result of an operation that a program contains for its arguments, which is inlined in
    ``trace``: a write changes the traced value now, a test is made for what ``operands`` are.
    """
    if op.role == "guard_separate":
        _test_separation(trace, operands, attrs["names"], range(attrs["written"]))
        return ()
    if not isinstance(operands[0], Value):
        raise LATE_BOUND["lost_change_error"]()
    return operands[0].written_back(operands[1])


def _test_separation(
    trace: Trace | None, values: Sequence, names: Sequence[str], written: Sequence[int]
) -> None:
    """Test that values at positions in ``written`` share no memory with another value: now, or, if
    that is not known yet, by an operation in ``trace``.
    """
    first: dict[Local, Tracer] = {}  # arguments of enclosing traces
    others: dict[Local, Tracer] = {}
    for i in written:
        for j, other in enumerate(values):
            shares = _share_memory(values[i], other) if j != i else False
            if shares:
                raise error_at_user_line(overlap_error(names[i], names[j]))
            if shares is None:
                first.update(_argument_of(values[i]))
                others.update(_argument_of(other))
    if first and trace is not None:
        arguments = {**first, **others}
        args = tuple([trace.enter(x) for x in arguments.values()])
        texts = tuple([local.name or "an argument" for local in arguments])
        trace.source, _ = user_place(2)
        attrs = Attrs(written=len(first), names=texts)
        trace.emit(PRIMITIVES["guard_separate"], args, attrs)


def refuse_captured(trace: Trace, inputs: Sequence, written: Sequence[int]) -> None:
    """Raise TraceError if an array from outside that the recorded function has read shares memory
    with an input at a position in ``written``.
    """
    captured = [reference() for reference, *_ in trace.captured_arrays()]
    arrays = [array for array in captured if array is not None]
    for i in written:
        if type(inputs[i]) is np.ndarray and any(share_memory(inputs[i], x) for x in arrays):
            name = trace.params[i].name or f"argument {i}"
            raise error_at_user_line(overlap_error(name, "an array that it reads from outside"))


def _share_memory(value: Any, other: Any) -> bool | None:
    """Whether two values share memory; None for arguments of enclosing traces, which may."""
    is_traced = [issubclass(type(x), Tracer) for x in (value, other)]
    if not all(is_traced):
        arrays = [
            _array_of_argument(x) if t else x
            for x, t in zip((value, other), is_traced, strict=True)
        ]
        return all(map(has_memory, arrays)) and share_memory(*arrays)
    if value is other:
        return not value.is_scalar()
    base = view_base(value)
    if base is view_base(other):
        return _views_overlap(value, other, base)
    return None if _argument_of(value) and _argument_of(other) else False


def _argument_of(value: Tracer) -> dict[Local, Tracer]:
    """The argument of an enclosing trace whose memory a traced value has, {} for other values."""
    base = view_base(value)
    trace = base.emitter
    origin: Any = base.sharing.origin if type(base.sharing) is Memory else base.arg
    if origin not in trace.arguments or trace.lifts_variables:  # in the body of a loop
        return {}
    return {origin: Tracer(trace, origin)}


def _array_of_argument(value: Tracer) -> Any:
    """The array that the caller passed for a traced value, or for the base of a view; None if the
    value is not an argument, or an argument without a value.
    """
    return view_base(value).known_value() if _argument_of(value) else None


def _views_overlap(value: Tracer, other: Tracer, base: Tracer) -> bool:
    """Whether two views of ``base`` have an element in common; True if it is not known."""
    if not is_static_shape(base.shape):
        return True
    memory = np.empty(base.shape, base.dtype)  # whose elements are never read
    views = [_view_in(memory, x) for x in (value, other)]
    return any(x is None or not np.may_share_memory(x, memory) for x in views) or share_memory(
        *views
    )


def _view_in(memory: np.ndarray, value: Tracer) -> np.ndarray | None:
    """The view ``value`` of an array in place of its base; None if its place is not known."""
    chain: list[SharedView] = []
    while type(value.sharing) is SharedView:
        chain.append(value.sharing)
        value = value.sharing.parent
    for view in reversed(chain):
        if view.op is None or view.extra:
            return None
        memory = compute(view.op, (memory,), view.attrs)
    return memory


LATE_BOUND.update(
    inlined_effect=inlined_effect,
    refuse_captured=refuse_captured,
    require_separate=require_separate,
)

"""``record_limited``: ends recordings of many decisions, or of many operations on few numbers.

Recording a loop over thousands of numbers takes hundreds of times as long as the loop.
If there is an ``if`` for each number, the plan would be no faster, and other arguments would need
another plan.
"""

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from letir.ast import LATE_BOUND
from letir.ast.process_state import TemporaryChange
from letir.ast.symbolic_sizes import elementwise_size
from letir.ast.terms import Bind, Const
from letir.tracing.refusals import MustRunAsPython
from letir.tracing.trace_state import TESTED_LENGTH, Trace

# a recording ends after so many guards, or twice or four times as many ..., if there are at most so
# many operations, and numbers computed by elementwise operations, for each of them
_DECISIONS, _OPERATIONS_EACH, _NUMBERS_EACH = 512, 32, 32
# or after so many operations, twice or four times as many ..., if elementwise operations compute
# at most so many numbers for each of them; a decision on an array's values counts as several
# operations, because each makes it less likely that later calls can use the plan
_OPERATIONS, _NUMBERS_IN_EACH, _AS_OPERATIONS = 1 << 16, 1 << 13, 32
_NUMBERS_AS_OPERATION = 4  # operations on Python numbers, which take time to be recorded only
_TESTED_EVERY = 1 << 13  # operations
T = TypeVar("T")


class EndedEarly(MustRunAsPython):
    """Raised for a function whose recording for arguments of these types has ended early."""

    letir_is_python_kind = True


class _EndOfRecording(BaseException):
    """Ends the recorded function. Not an Exception: the function may catch those."""


class RecordingLimit(TemporaryChange):
    """A context in which a recording ends when it has many decisions or many small operations.

    What has been recorded decides, not time. ``reason``: why the recording has ended.
    """

    __slots__ = ("decisions", "guards", "next_decisions", "next_operations", "outer", "reason")

    def __init__(self) -> None:
        self.guards, self.decisions, self.reason = 0, 0, ""
        self.next_decisions, self.next_operations = _DECISIONS, _OPERATIONS
        self.outer = _LIMIT.get(), TESTED_LENGTH.get()

    def make(self) -> "RecordingLimit":
        _LIMIT.set(self)
        TESTED_LENGTH.set(_TESTED_EVERY)
        return self

    def undo(self) -> None:
        limit, length = self.outer
        _LIMIT.set(limit)
        TESTED_LENGTH.set(length)

    def add_guard(self, trace: Trace) -> None:
        """Count a guard; raises an error that ends the recording if the limit is exceeded."""
        self.guards += 1
        self.decisions += not _are_numbers(trace.binds[-1], trace)
        if self.guards >= self.next_decisions:
            self.next_decisions *= 2
            if _is_mostly_decisions(trace, self.guards):
                self._end(f"{self.guards:,} decisions with few operations between them")

    def test_length(self, trace: Trace) -> None:
        """End the recording, by an error, if it has many operations on few numbers."""
        trace.tested_length = len(trace.binds) + _TESTED_EVERY
        of_decisions = _AS_OPERATIONS * self.decisions
        if len(trace.binds) + of_decisions < self.next_operations:
            return
        binds = [bind for bind in trace.binds if not _are_numbers(bind, trace)]
        of_numbers = (len(trace.binds) - len(binds)) // _NUMBERS_AS_OPERATION
        total = len(binds) + of_decisions + of_numbers
        missing = _OPERATIONS - total
        self.next_operations += missing if missing > 0 else self.next_operations
        if missing <= 0 and elementwise_size(binds) <= _NUMBERS_IN_EACH * total:
            many = of_decisions >= len(binds)
            decisions = f" and {self.decisions:,} decisions" if many else ""
            self._end(f"{len(binds):,} operations on small arrays{decisions}")

    def _end(self, found: str) -> None:
        self.reason = (
            f"its recording was stopped after {found}: to record and compile all of its operations "
            "would take longer than many calls; write the loop with lt.fori_loop or lt.scan, which "
            "record its body once, or make a plan by lt.compile(lt.trace(f, ...))"
        )
        raise _EndOfRecording


def record_limited(executor: Any, do: Callable[[], T]) -> T:
    """``do()``, the recording of an executor's function, unless it ends early.

    Then raises ``EndedEarly``, or ``MustRunAsPython`` if a recording for other argument types has
    ended early before. A function that may have effects is recorded to its end, because Python will
    call it again.
    """
    # effects are not searched during the recording, in which the function reads stand-ins
    if not executor.watches_state or _has_effects(executor):
        return do()
    with RecordingLimit() as limit:
        try:
            result = do()
        except (Exception, _EndOfRecording):
            if not limit.reason:
                raise
    if limit.reason:  # even if the function has caught the error
        error = MustRunAsPython if executor.ended_recording else EndedEarly
        executor.ended_recording = limit.reason
        raise error
    return result


def _has_effects(executor: Any) -> bool:
    """Whether the function of an executor, which may call itself, might change other state."""
    f = executor.f
    # the code of the user decides
    if hasattr(f, "letir_reaches"):  # of a method, or of a callable object
        f, _ = f.letir_reaches()
    elif type(executor.held or f) is functools.partial:
        f = (executor.held or f).func
    return LATE_BOUND["values_read"](f, executor) is None


def _is_mostly_decisions(trace: Trace, guards: int) -> bool:
    """Whether a trace has few operations on few numbers between its guards."""
    if len(trace.binds) > _OPERATIONS_EACH * guards:
        return False
    return elementwise_size(trace.binds) <= _NUMBERS_EACH * guards


def _are_numbers(bind: Bind, trace: Trace) -> bool:
    """Whether the operands or results of an operation are Python numbers, such as sizes, indices
    and flags.
    """
    bools = trace.python_bools
    return any(
        bool(values)
        and all(type(x) is Const or getattr(x.type, "weak", False) or x in bools for x in values)
        for values in (bind.args, bind.binders)
    )


_LIMIT: ContextVar[RecordingLimit | None] = ContextVar("letir_recording_limit", default=None)


def note_guard(trace: Trace) -> None:
    """Count a guard of ``trace`` if its recording has a limit."""
    limit = _LIMIT.get()
    if limit is not None and trace.parent is None:
        limit.add_guard(trace)


def note_length(trace: Trace) -> None:
    """Test the number of operations of ``trace``, whose recording has a limit."""
    limit = _LIMIT.get()
    if limit is not None:
        limit.test_length(trace)


LATE_BOUND.update(note_guard=note_guard, note_length=note_length, record_limited=record_limited)

"""``record_limited``: ends recordings of functions that mostly make decisions.

Recording a loop over thousands of numbers with an ``if`` for each takes thousands of times as long
as the loop; its plan would be no faster, and other arguments would need another plan.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from letir.ast import LATE_BOUND
from letir.ast.process_state import TemporaryChange
from letir.ast.symbolic_sizes import elementwise_size
from letir.tracing.refusals import MustRunAsPython
from letir.tracing.trace_state import Trace

# a recording ends after so many guards, or twice or four times as many ..., if there are at most so
# many operations, and numbers computed by elementwise operations, for each of them
_DECISIONS, _OPERATIONS_EACH, _NUMBERS_EACH = 512, 32, 32
T = TypeVar("T")


class ManyDecisions(MustRunAsPython):
    """Raised for a function that mostly makes decisions for arguments of these types."""

    letir_is_python_kind = True


class _EndOfRecording(BaseException):
    """Ends the recorded function. Not an Exception: the function may catch those."""


class DecisionLimit(TemporaryChange):
    """A context in which a recording ends when the function turns out to mostly make decisions.

    What has been recorded decides, not time.
    """

    __slots__ = ("guards", "has_ended", "next_test", "outer")

    def __init__(self) -> None:
        self.guards, self.next_test, self.has_ended = 0, _DECISIONS, False
        self.outer = _LIMIT.get()

    def make(self) -> "DecisionLimit":
        _LIMIT.set(self)
        return self

    def undo(self) -> None:
        _LIMIT.set(self.outer)

    def add_guard(self, trace: Trace) -> None:
        """Count a guard; raises an error that ends the recording if the limit is exceeded."""
        self.guards += 1
        if self.guards >= self.next_test:
            self.next_test *= 2
            if _is_mostly_decisions(trace, self.guards):
                self.has_ended = True
                raise _EndOfRecording


def record_limited(executor: Any, do: Callable[[], T]) -> T:
    """``do()``, the recording of an executor's function, unless it ends early.

    Then raises ``ManyDecisions``, or ``MustRunAsPython`` if a recording for other argument types
    has ended early before. A function that may have effects is recorded to its end, because Python
    will call it again.
    """
    # effects are not searched during the recording, in which the function reads stand-ins
    if not executor.watches_state or _has_effects(executor):
        return do()
    with DecisionLimit() as limit:
        try:
            result = do()
        except (Exception, _EndOfRecording):
            if not limit.has_ended:
                raise
    if limit.has_ended:  # even if the function has caught the error
        error = MustRunAsPython if executor.ends_recordings else ManyDecisions
        executor.ends_recordings = True
        raise error
    return result


def _has_effects(executor: Any) -> bool:
    """Whether the function of an executor, which may call itself, might change other state."""
    return LATE_BOUND["values_read"](executor.f, executor) is None


def _is_mostly_decisions(trace: Trace, guards: int) -> bool:
    """Whether a trace has few operations on few numbers between its guards."""
    if len(trace.binds) > _OPERATIONS_EACH * guards:
        return False
    return elementwise_size(trace.binds) <= _NUMBERS_EACH * guards


_LIMIT: ContextVar[DecisionLimit | None] = ContextVar("letir_decision_limit", default=None)


def note_guard(trace: Trace) -> None:
    """Count a guard of ``trace`` if its recording has a limit."""
    limit = _LIMIT.get()
    if limit is not None and trace.parent is None:
        limit.add_guard(trace)


LATE_BOUND.update(note_guard=note_guard, record_limited=record_limited)

"""Errors for code that needs the value of an abstract traced value, which has none."""

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.errors import TraceError
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user

_GIVE_VALUES = "  trace with concrete arguments, so that a guard is recorded,\n  "
_MAKE_STATIC = ", or make it a static argument"


def unanswered_error(value: Value, needed: str) -> TraceError:
    """The error for code that needs the value of an abstract traced value."""
    return note_refusal(
        TraceError(
            f"{needed} of a traced value of type {value.type} is needed, but it has no value"
            f"{at_user()}\n{_GIVE_VALUES}choose with numpy.where or letir.cond{_MAKE_STATIC}"
        )
    )


def explain_abstract(error: TraceError, reason: str) -> None:
    """Add to an ``unanswered_error`` why there are no values, where nobody can give them.

    Only the innermost reason is added, if transforms and loops nest. Other errors do not change.
    """
    text = str(error)
    if "but it has no value" in text and _GIVE_VALUES in text:
        text = text.replace(_GIVE_VALUES, "  ").replace(_MAKE_STATIC, "")
        error.args = (f"{text}\n  {reason}", *error.args[1:])


LATE_BOUND.update(explain_abstract=explain_abstract, unanswered_error=unanswered_error)

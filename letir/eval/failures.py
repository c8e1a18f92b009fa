"""Errors that end a run: they get a note with the let line, and their frames keep no arrays."""

import traceback

from letir.ast import LATE_BOUND
from letir.ast.error_locations import error_at, source_line
from letir.ast.terms import Bind, Lambda
from letir.errors import GuardError


def say_where(error: BaseException, fn: Lambda, bind: Bind) -> None:
    """Add a note with the let line and the user's line; a GuardError has the latter already.

    Raises GuardError from ``error`` if the recorded function may catch it.
    """
    if isinstance(error, GuardError):
        error_at(error, bind.source, with_excerpt=True)
    at = "" if isinstance(error, GuardError) else source_line(bind.source)
    text = LATE_BOUND["line_of"](fn, bind)
    line, *rest = text.split("\n")  # without bodies: an error in one has its own note
    error.add_note(f"letir: in {line}{' ... }' if rest else ''}{at}")
    if failed := caught_failure(error, fn, bind):
        raise failed from error


def forget_values(error: BaseException, outer: BaseException | None) -> None:
    """Clear the frames of ``error`` and of the errors that led to it, except those of ``outer``.

    ``outer``: the exception that was being handled when the evaluator was called.
    """
    chain: list = [error]
    seen = {id(outer), id(None)}
    while chain:
        link = chain.pop()
        if id(link) not in seen:
            seen.add(id(link))
            # a stored exception, as in a notebook, would keep all arrays of its frames alive
            traceback.clear_frames(link.__traceback__)
            chain += [link.__context__, link.__cause__, *getattr(link, "exceptions", ())]


def caught_failure(error: BaseException, fn: Lambda, bind: Bind) -> GuardError | None:
    """The GuardError for an exception of ``bind`` that the recorded function may catch, if it may.

    The operation has a ``guard_computed``, or one at its line has, which passes made of it.
    """
    if not isinstance(error, Exception) or isinstance(error, GuardError):
        return None
    for other in fn.binds:
        if other.op.role == "guard_computed" and other.attrs["caught"]:
            is_same_line = bind.source is not None and other.source == bind.source
            if is_same_line or other.args[0] in bind.binders:
                failed = GuardError(
                    f"the program was recorded where this raised nothing, now it raises "
                    f"{type(error).__name__}: {error}\n"
                    "  the function may catch that: trace again with these arguments, or call "
                    "letir.jit(f), which does so"
                )
                error_at(failed, bind.source, with_excerpt=True)
                return failed
    return None


LATE_BOUND.update(caught_failure=caught_failure, forget_values=forget_values, say_where=say_where)

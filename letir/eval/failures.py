"""Errors that end a run: they get a note with the let line, and their frames keep no arrays."""

import traceback

from letir.ast import LATE_BOUND
from letir.ast.error_locations import error_at, source_line
from letir.ast.terms import Bind, Lambda
from letir.errors import GuardError


def say_where(error: BaseException, fn: Lambda, bind: Bind) -> None:
    """Add a note with the let line and the user's line; a GuardError has the latter already."""
    if isinstance(error, GuardError):
        error_at(error, bind.source, with_excerpt=True)
    at = "" if isinstance(error, GuardError) else source_line(bind.source)
    text = LATE_BOUND["line_of"](fn, bind)
    line, *rest = text.split("\n")  # without bodies: an error in one has its own note
    error.add_note(f"letir: in {line}{' ... }' if rest else ''}{at}")


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


LATE_BOUND.update(forget_values=forget_values, say_where=say_where)

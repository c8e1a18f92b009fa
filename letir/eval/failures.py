"""Errors that end a run: adding a note with the let line, freeing the arrays of their frames."""

import traceback

from letir.ast import LATE_BOUND
from letir.ast.primitive import Primitive
from letir.ast.source import ERROR_EXPECTED, error_at, source_line
from letir.ast.terms import Bind, Lambda
from letir.errors import DTypeError, GuardError, LetirError

_NOT_OF_VALUES = (TypeError, KeyError, AttributeError, AssertionError, StopIteration)
_REMEDY = "docs/operations.md lists the operands and attributes of each operation"


def add_location_note(error: BaseException, fn: Lambda, bind: Bind) -> None:
    """Add a note with the let line and the user's line; a GuardError has the latter already.

    Raises GuardError from ``error`` if the recorded function may catch it. Adds no note to an error
    of which callers read the class alone: the text of a bind takes longer than most operations.
    """
    if ERROR_EXPECTED.get():
        return
    if isinstance(error, GuardError):
        error_at(error, bind.source, with_excerpt=True)
    at = "" if isinstance(error, GuardError) else source_line(bind.source)
    text = LATE_BOUND["line_of"](fn, bind)
    line, *rest = text.split("\n")  # without bodies: an error in one has its own note
    error.add_note(f"letir: in {line}{' ... }' if rest else ''}{at}")
    if failed := caught_failure(error, fn, bind):
        raise failed from error


def _misfit_error(error: BaseException, bind: Bind) -> DTypeError | None:
    """The DTypeError for an exception that attributes or operands of a wrong kind cause, in a
    program whose types are unknown; None if values cause it.
    """
    if (
        not isinstance(error, _NOT_OF_VALUES)
        or isinstance(error, LetirError)
        or bind.op.is_user_defined
    ):
        return None
    notes = getattr(error, "__notes__", [])
    if sum(note.startswith("letir: in ") for note in notes) > 1:  # of a bind in a body
        return None
    if any(callable(v) and type(v) not in (Lambda, Primitive) for v in bind.attrs.values()):
        return None  # a function of the user may raise anything
    message = f"{bind.op.name} does not take these attributes or operands: {error}"
    misfit = DTypeError(f"{message}\n  {_REMEDY}")
    vars(misfit)["letir_runs_python"] = True  # so that ``jit`` raises NumPy's error, or catches it
    for note in notes:
        misfit.add_note(note)
    return misfit


def forget_values(error: BaseException, outer: BaseException | None) -> None:
    """Clear the frames of ``error`` and of the errors that led to it, except those of ``outer``.

    ``outer``: the exception that was being handled when the evaluator was called.
    """
    chain: list = [error]
    visited = {id(outer), id(None)}
    while chain:
        link = chain.pop()
        if id(link) not in visited:
            visited.add(id(link))
            # a stored exception, as in a notebook, would keep all arrays of its frames alive
            traceback.clear_frames(link.__traceback__)
            chain += [link.__context__, link.__cause__, *getattr(link, "exceptions", ())]


def caught_failure(error: BaseException, fn: Lambda, bind: Bind) -> LetirError | None:
    """The GuardError for an exception that the recorded function may catch; else the DTypeError for
    one that a wrong attribute or operand causes, else None.

    The function may catch the exception if a ``guard_computed`` reads a result of the bind, or was
    recorded at the same line: a pass may have replaced the operation that the guard belonged to.
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
    return _misfit_error(error, bind)


LATE_BOUND.update(
    caught_failure=caught_failure, forget_values=forget_values, add_location_note=add_location_note
)

"""Short tracebacks: the frames of letir are left out of errors that leave it.

An error that reaches user code shows the user's own frames and the message. The environment
variable ``LETIR_TRACEBACK=full`` keeps all frames.
"""

import os
import sys
from types import TracebackType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.source import append_location, source_line
from letir.ast.terms import Source
from letir.errors import EscapedTracerError, LetirError, ParseError
from letir.tracing.source_locations import is_letir_file, is_user_file, place_of, user_place

_HAVE_PLACES = (EscapedTracerError, ParseError)  # two lines of the user; a line of the text


def shorten_traceback(
    error: BaseException,
    function: Any = None,
    args: tuple = (),
    kwargs: dict | None = None,
    *,
    within: bool = False,
    inner_frames: int = 0,
) -> BaseException:
    """The error to raise for ``error``: without letir's frames, and with the user's line.

    Called in the ``except`` clause of ``function``, which users call with these arguments. If the
    arguments are wrong, the result is a new error; otherwise it is ``error`` itself, for a bare
    ``raise``. If letir called ``function``, the traceback stays, because an outer function of letir
    will shorten it; ``within`` is for operators, which have no such outer function.
    ``inner_frames``: the number of frames between ``function`` and the ``except`` clause.
    """
    caller = sys._getframe(1 + inner_frames).f_back
    is_inner = caller is not None and is_letir_file(caller.f_code.co_filename)
    if not isinstance(error, LetirError | Warning) and _is_raised_by_letir(error):
        better = function and LATE_BOUND["argument_error"](
            error, function, args, kwargs or {}, is_inner
        )
        error = better or error
    elif isinstance(error, LetirError) and function:
        error = LATE_BOUND["not_callable_error"](error, function, args, kwargs or {}) or error
    if is_inner and not within:
        return error
    place = _innermost_place(error.__traceback__) or user_place(2)[0]
    if not isinstance(error, LetirError):
        if isinstance(error, Exception) and _is_raised_by_letir(error):
            _note_place(error, place)
    elif error.args and not isinstance(error, _HAVE_PLACES):
        append_location(error, source_line(place))
    if os.environ.get("LETIR_TRACEBACK") != "full":
        _shorten_chain(error)
    return error


def _note_place(error: Exception, place: Source | None) -> None:
    """Add a note with the user's line, unless the error has one already."""
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if place is not None and "letir: in" not in text and str(place) not in text:
        error.add_note(f"letir: at {place}")


def _innermost_place(link: TracebackType | None) -> Source | None:
    """The place of the innermost user frame of a traceback, None if there is none."""
    result = None
    while link is not None:
        if is_user_file(link.tb_frame.f_code.co_filename):
            result = link
        link = link.tb_next
    return (
        None
        if result is None
        else place_of(result.tb_frame.f_code, result.tb_lasti, result.tb_lineno)
    )


def _shorten_chain(error: BaseException) -> None:
    """Fold the traceback of ``error`` and of the errors that led to it.

    Errors that letir raised and caught itself are removed from the chain.
    """
    chain, visited = [error], set()
    while chain:
        link = chain.pop()
        if id(link) in visited:
            continue
        visited.add(id(link))
        context = link.__context__
        while context is not None and context is not link.__cause__ and _is_internal(context):
            context = context.__context__
        link.__context__ = context
        if _is_raised_by_letir(link):
            # letir's `from None` hides the removed errors, and must not hide errors of the user
            link.__suppress_context__ = link.__cause__ is not None
        link.__traceback__ = _without_letir(link.__traceback__)
        chain += [e for e in (link.__cause__, context) if e is not None]
        chain += getattr(link, "exceptions", ())


def _is_internal(error: BaseException) -> bool:
    """Whether an error was raised and caught within letir."""
    head = error.__traceback__
    return head is not None and _without_letir(head) is None


def _is_raised_by_letir(error: BaseException) -> bool:
    """Whether letir, or a library that it called, raised the error."""
    link, result = error.__traceback__, False
    while link is not None:  # frames of NumPy called by letir count as letir's
        file = link.tb_frame.f_code.co_filename
        result = is_letir_file(file) or (result and not is_user_file(file))
        link = link.tb_next
    return result


def _without_letir(link: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of letir, and of the libraries that letir called."""
    frames, inside = [], True
    while link is not None:
        file = link.tb_frame.f_code.co_filename
        inside = is_letir_file(file) or (inside and not is_user_file(file))
        if not inside:
            frames.append(link)
        link = link.tb_next
    result = None
    for part in reversed(frames):  # new links: another thread may be reading the old ones
        line = -1 if part.tb_lineno is None else part.tb_lineno  # as Python writes "without a line"
        result = TracebackType(result, part.tb_frame, part.tb_lasti, line)
    return result


LATE_BOUND["shorten_traceback"] = shorten_traceback

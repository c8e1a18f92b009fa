"""Where an error comes from, in its message: the let line (``in``) and the user's line (``at``).

Rules, bodies and programs nest, and each adds what it knows. A message gets a line of a kind once,
from the innermost, which is the cause.
"""

from letir.ast.terms import Bind, Source
from letir.errors import LetirError

_LET_LINE, _USER_LINE = "\n  in ", "\n  at "


def source_line(source: Source | None) -> str:
    """The line of a message that says where the user's code is; empty if it is not known."""
    return f"{_USER_LINE}{source}" if source else ""


def error_at(error: LetirError, source: Source | None, *, with_excerpt: bool = False) -> LetirError:
    """``error`` with the user's line below the first line of its message, unless it says one.

    ``with_excerpt``: followed by the code that stands there.
    """
    first, newline, rest = str(error.args[0]).partition("\n")
    if source is not None and _USER_LINE not in newline + rest:
        code = f": {source.excerpt}" if with_excerpt and source.excerpt else ""
        error.args = (f"{first}{source_line(source)}{code}{newline}{rest}", *error.args[1:])
    return error


def error_in_let(error: LetirError, line: str, source: Source | None) -> LetirError:
    """``error`` with a let line and the user's at the end of its message, unless it says a let
    line.
    """
    message = str(error.args[0]) if error.args else ""
    if _LET_LINE not in message:
        error.args = (f"{message}{_LET_LINE}{line}{source_line(source)}", *error.args[1:])
    return error


def error_at_bind(error: LetirError, bind: Bind) -> LetirError:
    """``error`` with the operation and the user's line of ``bind`` at the end of its message,
    unless it says a user's line.
    """
    if not bind.source:
        return error
    return append_location(error, f"{_LET_LINE}{bind.op.name}{source_line(bind.source)}")


def append_location(error: LetirError, lines: str) -> LetirError:
    """``error`` with ``lines``, which say where, at the end, unless it says a user's line."""
    if _USER_LINE not in str(error):
        error.args = (f"{error.args[0]}{lines}", *error.args[1:])
    return error

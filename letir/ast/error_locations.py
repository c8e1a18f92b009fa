"""Locations in error messages: the let line (``in``) and the user's source line (``at``).

Rules, bodies and programs nest, and each level may add its location. A message gets each kind of
line once, from the innermost level, which is the cause.
"""

from letir.ast.primitive import Primitive
from letir.ast.terms import Bind, Source
from letir.errors import DTypeError, LetirError

_LET_LINE, _USER_LINE = "\n  in ", "\n  at "


def source_line(source: Source | None) -> str:
    """The line of a message with the location of the user's code; empty if it is unknown."""
    return f"{_USER_LINE}{source}" if source else ""


def error_at(error: LetirError, source: Source | None, *, with_excerpt: bool = False) -> LetirError:
    """``error`` with the user's line below the first line of its message, unless it has one.

    ``with_excerpt``: followed by the code of that line.
    """
    first, newline, rest = str(error.args[0]).partition("\n")
    if source is not None and _USER_LINE not in newline + rest:
        code = f": {source.excerpt}" if with_excerpt and source.excerpt else ""
        error.args = (f"{first}{source_line(source)}{code}{newline}{rest}", *error.args[1:])
    return error


def error_of_rule(op: Primitive, error: Exception) -> LetirError:
    """The error for an exception of another class that the type rule of ``op`` raised; attributes
    from a text are arbitrary.
    """
    return DTypeError(
        f"{op.name}: its type rule does not take these attributes or operands: {error}\n"
        "  docs/operations.md lists the operands and attributes of each operation"
    )


def error_in_let(error: LetirError, line: str, source: Source | None) -> LetirError:
    """``error`` with a let line and the user's line at the end, unless it has a let line."""
    message = str(error.args[0]) if error.args else ""
    if _LET_LINE not in message:
        error.args = (f"{message}{_LET_LINE}{line}{source_line(source)}", *error.args[1:])
    return error


def name_operation(error: LetirError, name: str) -> None:
    """Name the operation in whose decomposition ``error`` was raised.

    A let line of the decomposition is removed: its locals do not occur in the user's program.
    """
    message = str(error.args[0]) if error.args else ""
    before, line, after = message.partition(_LET_LINE)
    message = before + after[after.find("\n") :] if line and "\n" in after else before
    if name and name not in message.partition("\n")[0]:
        message = f"{name}: {message}"
    error.args = (message, *error.args[1:])


def error_at_bind(error: LetirError, bind: Bind) -> LetirError:
    """``error`` with the operation and line of ``bind`` at the end, unless it has a user's line."""
    if not bind.source:
        return error
    return append_location(error, f"{_LET_LINE}{bind.op.name}{source_line(bind.source)}")


def append_location(error: LetirError, lines: str) -> LetirError:
    """``error`` with these location ``lines`` at the end, unless it has a user's line."""
    if _USER_LINE not in str(error):
        error.args = (f"{error.args[0]}{lines}", *error.args[1:])
    return error

"""Every error that letir raises on purpose.

One root, ``LetirError``; the children that mean what a Python or NumPy error means inherit from
that too, so that callers may catch either. ``TraceError`` does not: NumPy replaces some ValueErrors
and TypeErrors by its own.
"""


class LetirError(Exception):
    """Root of all errors that letir raises."""


class ShapeError(LetirError, ValueError):
    """Shapes, axes or sizes do not fit the operation."""


class BoundsError(ShapeError, IndexError):
    """An index beyond the end of its axis, or too many of them."""


class DTypeError(LetirError, TypeError):
    """A dtype or a kind of object that the operation does not take."""


class ScopeError(LetirError):
    """A local is free, bound twice, or used before it is bound."""


class TraceError(LetirError):
    """Python asked a traced value for something that cannot be recorded."""


class EscapedTracerError(TraceError):
    """A traced value was used outside the trace that made it."""


class GuardError(LetirError):
    """A replay took values for which the recorded path does not hold."""


class MissingRule(LetirError, NotImplementedError):
    """An operation has no rule for what was asked of it."""


class ParseError(LetirError):
    """Text or a file that is not a program; ``line`` and ``column`` count from 1."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None):
        self.line, self.column = line, column
        where = "" if line is None else f"line {line}, column {column}: "
        super().__init__(where + message)

    def __reduce__(self) -> tuple:
        return _parse_error, (type(self), self.args, self.line, self.column)


def _parse_error(cls, args, line, column):
    error = cls.__new__(cls, *args)
    error.args, error.line, error.column = args, line, column
    return error


class ExportError(LetirError):
    """A program that the target format cannot express."""


class InternalError(LetirError):
    """An invariant of letir itself does not hold: please report it."""

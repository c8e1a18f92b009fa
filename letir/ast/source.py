"""``Source``: a place in the user's code, which binds remember, and its lines in error messages.

A message names the let line (``in``) and the user's source line (``at``). Rules, bodies and
programs nest, and each level may add its location: a message gets each kind of line once, from the
innermost level, which is the cause.
"""

import functools
import linecache
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar, cast

from attrs import field, frozen

from letir.ast import LATE_BOUND
from letir.errors import DTypeError, LetirError

if TYPE_CHECKING:
    from letir.ast.primitive import Primitive
    from letir.ast.terms import Bind

_F = TypeVar("_F", bound=Callable)

# whether an error is what the program expects, so that its location is of no use
ERROR_EXPECTED: ContextVar[bool] = ContextVar("error_expected", default=False)
_LET_LINE, _USER_LINE = "\n  in ", "\n  at "
_MAX_CHARACTERS = 60  # the length of an excerpt of source code


@frozen
class Source:
    r"""A place in the user's code.

    ``span``: (last line, first column, last column) of the expression; ``text``: the code there if
    it is known without the file, as in a parsed program.

    >>> from letir import parse
    >>> f = parse("lambda %0 {\n  %1 = exp(%0)  # model.py:12\n  return %1\n}")
    >>> f.binds[0].source
    Source(file='model.py', line=12)
    """

    file: str
    line: int
    span: tuple | None = field(default=None, eq=False, repr=False)
    text: str | None = field(default=None, eq=False, repr=False)

    @property
    def short(self) -> str:
        """``name.py:12``, without the folder; ``In [3], line 2`` for a cell of a notebook."""
        cell = _cell_of(self.file)
        return f"{cell}, line {self.line}" if cell else f"{self.short_file}:{self.line}"

    @property
    def short_file(self) -> str:
        """``name.py``, without the folder; ``In [3]`` for a cell of a notebook."""
        return _cell_of(self.file) or self.file.replace(chr(92), "/").rpartition("/")[2]

    @property
    def excerpt(self) -> str:
        """The code at this place, shortened; empty if the file cannot be read."""
        if self.text is not None:
            return self.text
        # read when it is shown, as tracebacks do: recording must not open files
        last = self.line if self.span is None else self.span[0]
        lines = [linecache.getline(self.file, n) for n in range(self.line, last + 1)]
        if self.span is not None and lines[0]:
            _, first_column, last_column = self.span  # in bytes: https://peps.python.org/pep-0657/
            lines[-1] = lines[-1].encode()[:last_column].decode(errors="replace")
            lines[0] = lines[0].encode()[first_column:].decode(errors="replace")
        result = " ".join(" ".join(lines).split())
        return result if len(result) <= _MAX_CHARACTERS else result[: _MAX_CHARACTERS - 3] + "..."

    def __str__(self):
        cell = _cell_of(self.file)
        return f"{cell}, line {self.line}" if cell else f"{self.file}:{self.line}"


def _cell_of(file: str) -> str | None:
    """The cell of an interactive session whose code has this file name, as in ``In [3]``.

    None for every other file. IPython has the number of the cell; the name itself is a temporary
    file, which does not exist.
    """
    session = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if session is None else session()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    result = None if name_of is None else name_of(file)
    return None if result is None else result[1].replace("In[", "In [")


# ---- error messages ----


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


def error_of_rule(op: "Primitive", error: Exception, kind: str = "type") -> LetirError:
    """The error for an exception of another class that a rule of ``op`` raised; attributes from a
    text are arbitrary.

    ``kind``: the name of the rule in the message.
    """
    return DTypeError(
        f"{op.name}: its {kind} rule does not take these attributes or operands: {error}\n"
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

    The name of the operation inside of it, and a let line of the decomposition, are removed: they
    do not occur in the user's program.
    """
    message = str(error.args[0]) if error.args else ""
    before, line, after = message.partition(_LET_LINE)
    message = before + after[after.find("\n") :] if line and "\n" in after else before
    if name and name not in message.partition("\n")[0].replace(":", " ").split():
        inner, colon, rest = message.partition(": ")
        message = f"{name}: {rest if colon and inner.isidentifier() else message}"
    error.args = (message, *error.args[1:])


def error_at_bind(error: LetirError, bind: "Bind") -> LetirError:
    """``error`` with the operation and line of ``bind`` at the end, unless it has a user's line."""
    if not bind.source:
        return error
    return append_location(error, f"{_LET_LINE}{bind.op.name}{source_line(bind.source)}")


def append_location(error: LetirError, lines: str) -> LetirError:
    """``error`` with these location ``lines`` at the end, unless it has a user's line."""
    if _USER_LINE not in str(error):
        error.args = (f"{error.args[0]}{lines}", *error.args[1:])
    return error


def with_errors_of_check(function: _F) -> _F:
    """``function`` of a program, which may not be well-formed: if it raises an error that is not
    letir's, and ``check`` refuses the program, the error of ``check`` is raised instead.
    """

    @functools.wraps(function)
    def call(fn, *args, **kwargs):
        try:
            return function(fn, *args, **kwargs)
        except (LetirError, RecursionError, MemoryError):
            raise
        except Exception:
            LATE_BOUND["check"](fn)
            raise

    return cast(_F, call)

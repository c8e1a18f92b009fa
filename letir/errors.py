"""The errors that letir raises on purpose.

The root is ``LetirError``. Errors with the meaning of a Python or NumPy error also inherit from it,
so that callers can catch either. ``TraceError`` does not: NumPy replaces some ValueErrors and
TypeErrors by its own.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from numpy.exceptions import AxisError
from numpy.linalg import LinAlgError

E = TypeVar("E", bound=Exception)  # an error that is returned unchanged
# called with each error that NumPy's own functions would not raise, in the order of creation
WATCHERS: list[Callable[[Exception], None]] = []


def notify_watchers(error: E) -> E:
    """Call all watchers with ``error``, which NumPy's functions would not raise, and return it."""
    for watcher in WATCHERS:
        watcher(error)
    return error


def mark_unrecorded_code(error: E) -> E:
    """``error``, marked as an error for code that Python runs but letir does not record.

    ``jit`` calls the function as Python then, and warns once.
    """
    error.letir_unrecorded = True  # type: ignore[attr-defined]
    error.letir_changes_outside = True  # type: ignore[attr-defined]
    return error


# called with an error and the frame that reads its text; they return NumPy's error in its place
TEXT_WATCHERS: list[Callable[[Exception, FrameType], Exception | None]] = []


def _numpy_error_for(error: Exception) -> Exception | None:
    """NumPy's error in place of letir's, for the recorded function that reads its text."""
    frame = sys._getframe(1).f_back
    if frame is None:  # the interpreter shows an error that nothing has caught
        return None
    for watcher in TEXT_WATCHERS:
        result = watcher(error, frame)
        if result is not None:
            return result
    return None


_ARGS: Any = vars(BaseException)["args"]


class LetirError(Exception):
    """Root of all errors that letir raises.

    >>> import numpy as np
    >>> from letir import trace
    >>> try:
    ...     trace(lambda x: float(x), np.ones(()))
    ... except LetirError as error:
    ...     print(type(error).__name__)
    TraceError
    """

    def __str__(self) -> str:
        result = _numpy_error_for(self)
        return super().__str__() if result is None else str(result)

    def __repr__(self) -> str:
        result = _numpy_error_for(self)
        return super().__repr__() if result is None else repr(result)

    @property  # type: ignore[override]
    def args(self) -> tuple:
        """The arguments of the error; NumPy's arguments for the function that is recorded."""
        result = _numpy_error_for(self)
        return _ARGS.__get__(self) if result is None else result.args

    @args.setter
    def args(self, args: tuple) -> None:
        _ARGS.__set__(self, args)


class _Refusal(LetirError):
    """An error of letir alone: code that catches it takes another path than with NumPy."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        notify_watchers(self)


class ShapeError(LetirError, ValueError):
    """Shapes, axes or sizes do not fit the operation.

    >>> import numpy as np
    >>> from letir import trace
    >>> try:
    ...     trace(lambda x, y: x @ y, np.ones(2), np.ones(3))
    ... except ShapeError as error:
    ...     print(str(error).splitlines()[0])
    matmul: inner sizes differ, (2,) @ (3,)
    """


class MatrixError(ShapeError, LinAlgError):
    """An array that is not a matrix, or not a square one, where linear algebra needs one.

    >>> import numpy as np
    >>> from letir import trace
    >>> try:
    ...     trace(np.linalg.inv, np.ones((2, 3)))
    ... except np.linalg.LinAlgError as error:
    ...     print(str(error).splitlines()[0])
    inv: the last two axes of shape (2, 3) are not a square matrix
    """


class BoundsError(LetirError, IndexError):
    """An index beyond the end of its axis, or too many of them.

    >>> import numpy as np
    >>> from letir import trace
    >>> try:
    ...     trace(lambda x: x[3], np.ones(3))
    ... except BoundsError as error:
    ...     print(str(error).splitlines()[0])
    index 3 is out of bounds for axis 0 with size 3
    """


class AxisBoundsError(BoundsError, AxisError):
    """An axis that the array does not have.

    >>> import numpy as np
    >>> from letir import trace
    >>> try:
    ...     trace(lambda x: x.sum(axis=1), np.ones(3))
    ... except np.exceptions.AxisError as error:
    ...     print(str(error).splitlines()[0])
    axis 1 is out of bounds for array of dimension 1
    """

    __init__ = ValueError.__init__  # NumPy's takes an axis and a number of axes

    def __str__(self) -> str:
        result = _numpy_error_for(self)  # not super(): NumPy's text is made of the axis
        return ValueError.__str__(self) if result is None else str(result)


class DTypeError(LetirError, TypeError):
    """A dtype or a kind of object that the operation does not take.

    >>> import numpy as np
    >>> from letir import trace
    >>> try:
    ...     trace(np.sin, np.array(["a"]))
    ... except DTypeError as error:
    ...     print(str(error).splitlines()[0])
    argument x: letir computes with bool, int, uint, float and complex arrays, not with dtype <U1
    """


class NoAttributeError(DTypeError, AttributeError):
    """An attribute that an argument, which is not an array, does not have.

    >>> from letir import trace
    >>> try:
    ...     trace(lambda x: x.sum(), [1.0, 2.0])
    ... except AttributeError as error:
    ...     print(str(error).splitlines()[0])
    <lambda>: 'list' object has no attribute 'sum', where x is a list of length 2
    """


class ScopeError(LetirError):
    """A local is free, bound twice, or used before it is bound.

    >>> from letir import check, parse
    >>> f = parse("lambda %0 { %1 = exp(%0); return %1 }")
    >>> try:
    ...     check(f.with_binds(()))
    ... except ScopeError as error:
    ...     print(type(error).__name__)
    ScopeError
    """


class TraceError(_Refusal):
    """Python asked a traced value for something that cannot be recorded.

    >>> import numpy as np
    >>> from letir import ShapeDtype, trace
    >>> try:
    ...     trace(lambda x: x if x > 0 else -x, ShapeDtype(()))
    ... except TraceError as error:
    ...     print(str(error).splitlines()[0])
    the truth value of a traced value of type bool[] is needed, but it has no value
    """


class EscapedTracerError(TraceError):
    """A traced value was used outside the trace that made it.

    >>> import numpy as np
    >>> from letir import trace
    >>> kept = []
    >>> f = trace(lambda x: kept.append(x) or x, np.ones(2))
    >>> try:
    ...     kept[0] + 1
    ... except EscapedTracerError as error:
    ...     print(str(error).splitlines()[0])
    a traced value of type float64[2] belongs to a trace that is over
    """


class GuardError(LetirError):
    """A replay took values for which the recorded path does not hold.

    >>> from letir import trace
    >>> f = trace(lambda x: x if x > 0 else -x, 1.0)
    >>> try:
    ...     f(-1.0)
    ... except GuardError as error:
    ...     print(str(error).splitlines()[0])
    the program was recorded where this was True, now it is False
    """


class MissingRule(_Refusal, NotImplementedError):
    """An operation has no rule for what was asked of it.

    >>> import numpy as np
    >>> from letir import grad, opaque
    >>> table = opaque(lambda x: np.interp(x, [0, 1], [0, 2]), lambda x: x, name="docs.table")
    >>> try:
    ...     grad(lambda x: table(x))(0.5)
    ... except MissingRule as error:
    ...     print(str(error).splitlines()[0])
    docs.table has no vjp rule: no rule was given; pass one to letir.primitive or letir.opaque
    """


class ParseError(LetirError):
    r"""Text or a file that is not a program; ``line`` and ``column`` count from 1.

    >>> from letir import parse
    >>> try:
    ...     parse("lambda %0 {\n  %1 = no_such(%0)\n  return %1\n}")
    ... except ParseError as error:
    ...     print(error.line, error.column)
    2 8
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None):
        self.line, self.column = line, column
        where = "" if line is None else f"line {line}, column {column}: "
        super().__init__(where + message)

    def __reduce__(self) -> tuple:
        return _parse_error, (type(self), self.args, self.line, self.column)


def _parse_error(cls, args, line, column):
    """A ParseError as it was pickled."""
    error = cls.__new__(cls, *args)
    error.args, error.line, error.column = args, line, column
    return error


class ExportError(LetirError):
    """A program that the target format cannot express.

    >>> from letir import opaque, to_source, trace
    >>> hidden = opaque(lambda x: x, lambda x: x, name="docs.hidden")
    >>> try:
    ...     to_source(trace(hidden, 1.0))
    ... except ExportError as error:
    ...     print(str(error).partition(" calls ")[0])
    to_source: docs.hidden
    """


class InternalError(_Refusal):
    """An invariant of letir itself does not hold: please report it.

    >>> issubclass(InternalError, LetirError)
    True
    """


def cyclic_tree_error() -> DTypeError:
    """The error for a container that cannot be flattened into its leaves."""
    return DTypeError(
        "an argument or a result contains itself, or nests too deeply\n"
        "  pass and return containers without cycles"
    )

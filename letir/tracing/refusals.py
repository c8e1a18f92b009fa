"""Errors of traced values: questions without an answer, refused conversions, escaped values."""

import linecache
import re
import sys
import threading
from typing import TypeVar

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.errors import DTypeError, EscapedTracerError, ShapeError, TraceError
from letir.tracing.source_locations import at_user, is_letirs, is_users, user_place
from letir.tracing.trace_state import ACTIVE, Trace

_ARRAY_REMEDY = """\
arrays made elsewhere and functions written in C take numbers, not recordings
  make an array of a list first: numpy.exp(numpy.array([x, 1.0]));
  index a copy that the traced function makes: numpy.array(table)[x];
  or call the function without a derivative: letir.opaque(function, aval)(x)"""
_REMEDIES = {  # the beginning of a function's name -> what to write for it
    r"(np|numpy)\.(float|int|uint|complex)\d+$": "write x.astype(dtype), or leave the call out",
    r"numpy\.ma\.": (
        "masked arrays are not recorded\n  choose with numpy.where, or select by x[mask]"
    ),
    r"numpy\.polynomial\.": (
        "its objects keep ordinary arrays\n"
        "  write numpy.polynomial.polynomial.polyval(x, c), or numpy.polyval"
    ),
    r"scipy\.": (
        "docs/scipy.md lists what is recorded, and what to write for other functions,\n"
        "  or call it without a derivative: letir.opaque(function, aval)(x)"
    ),
    r"(pandas|matplotlib|sklearn)\.": "call it before, or on the result of the recorded function",
}
E = TypeVar("E", bound=Exception)  # an error that is returned as it is


def unanswered_error(value: Value, asked: str) -> TraceError:
    """The error for a question that an abstract traced value cannot answer."""
    return note_refusal(
        TraceError(
            f"{asked} of a traced value of type {value.type} is needed, but it has no value"
            f"{at_user()}\n  trace with concrete arguments, so that a guard is recorded,\n"
            "  choose with numpy.where or letir.cond, or make it a static argument"
        )
    )


def conversion_error(value: Value) -> TraceError:
    """The error for a traced value of which NumPy or C code asks an ordinary array."""
    return note_refusal(
        TraceError(
            f"a traced value of type {value.type} cannot become an ordinary array: "
            f"its record would be lost{at_user()}\n  {_remedy_for(_asking_function())}"
        )
    )


def _asking_function() -> str:
    """The library's function that the user's code called, as far as it can be told.

    With its module if it is written in Python, else as the user spells it.
    """
    frame, asking = sys._getframe(3), ""  # the caller of ``__array__``
    while frame is not None and not is_users(frame.f_code.co_filename):
        if not is_letirs(frame.f_code.co_filename):
            asking = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
        frame = frame.f_back
    if asking or frame is None:
        return asking
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, _, start, end = positions
    text = linecache.getline(frame.f_code.co_filename, line or 0)
    called = text.encode()[start or 0 : end].decode(errors="ignore")
    return called.partition("(")[0].strip()


def _remedy_for(asking: str) -> str:
    """What to write in the place of a call of the function ``asking``."""
    for pattern, remedy in _REMEDIES.items():
        if re.match(pattern, asking):
            return f"{asking}: {remedy}"
    return _ARRAY_REMEDY


def note_refusal(error: E) -> E:
    """``error``, also noted in the trace: with NumPy there would be no error, so a function that
    catches it takes a path that NumPy would not take [B2].
    """
    active = ACTIVE.get()
    if isinstance(active, Trace) and active.refusal is None:
        active.refusal = str(error)  # only the text: its frames refer to arrays
    return error


def escaped_error(value: Value) -> EscapedTracerError:
    """The error for a traced value used outside of its trace."""
    trace = value.emitter
    made = next((b.source for b in trace.binds if value.arg in b.binders), None)
    where = f"it was made at {made}" if made else "it was an argument of the traced function"
    if trace.thread != threading.get_ident():
        reason = "belongs to a trace of another thread"
    elif trace.is_open:
        reason = "belongs to a trace that is not around this one"
    else:
        reason = "belongs to a trace that is over"
    source, _ = user_place(2)
    return EscapedTracerError(
        f"a traced value of type {value.type} {reason}\n  {where}\n  used at {source}\n"
        "  return it from the traced function, or pass it as an argument"
    )


def ambiguous_truth(value: Value) -> ShapeError:
    """The error for the truth value of an array, as in ``if x > 0``."""
    if value.size == 0:  # an error since NumPy 2.2, with a warning before
        return ShapeError(
            f"The truth value of an empty array is ambiguous. Use x.size > 0{at_user()}\n"
            "  an array without elements is neither true nor false"
        )
    return ShapeError(
        "The truth value of an array with more than one element is ambiguous. "
        f"Use a.any() or a.all(){at_user()}\n"
        f"  the condition has the type {value.type}; choose for each element with "
        "numpy.where(condition, a, b)"
    )


def no_index(value: Value) -> DTypeError:
    """The error for an index, a size or a count that is not an integer."""
    return DTypeError(
        "only integer scalar arrays can be converted to a scalar index, found a traced value of "
        f"type {value.type}{at_user()}\n  pass an int, or round it: x.astype(int)"
    )


LATE_BOUND.update(
    ambiguous_truth=ambiguous_truth,
    escaped_error=escaped_error,
    no_index=no_index,
    note_refusal=note_refusal,
)

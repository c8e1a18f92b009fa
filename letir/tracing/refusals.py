"""Errors of traced values: unknown values, refused conversions, escaped values."""

import linecache
import operator
import re
import sys
import threading
from collections.abc import Callable
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any, TypeVar

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.errors import (
    TEXT_WATCHERS,
    WATCHERS,
    DTypeError,
    EscapedTracerError,
    LetirError,
    ShapeError,
    TraceError,
    mark_unrecorded_code,
)
from letir.tracing.source_locations import at_user, is_letir_file, is_user_file, user_place
from letir.tracing.trace_state import ABSENT, ACTIVE, Trace

_ARRAY_REMEDY = """\
arrays made elsewhere and functions written in C take numbers, not recordings
  make an array of a list first: numpy.exp(numpy.array([x, 1.0]));
  index a copy that the traced function makes: numpy.array(table)[x];
  or call the function without a derivative: letir.opaque(function, aval)(x)"""
_REMEDIES = {  # the beginning of a function's name -> the remedy
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
_MARKS = ("letir_changes_outside", "letir_unrecorded")  # attributes of errors, for ``jit``
E = TypeVar("E", bound=BaseException)  # an error that is returned unchanged


class RecordAgain(Exception):
    """The recorded function is to be called again, in a trace of this ``mode``.

    ``refusal``: the error to raise if this would change something outside of the function twice.
    ``owns_results``: the next trace owns the arrays that operators make, see ``operator_results``.
    """

    def __init__(self, mode: str, refusal: str | None = None, owns_results: bool = False) -> None:
        super().__init__()
        self.mode, self.refusal, self.owns_results = mode, refusal, owns_results


class MustRunAsPython(Exception):
    """Raised for a function whose plan would give other results; ``jit`` calls it as Python.

    Such a function stores values in lists or dicts that are its arguments, while a plan changes
    arrays only; or it reads the text of an error, where letir's text differs from NumPy's.
    """

    letir_runs_python = True


def conversion_error(value: Value) -> TraceError:
    """The error for a traced value that NumPy or C code tries to convert to an ordinary array."""
    asking, frame = _asking_function()
    LATE_BOUND["note_function_of_lists"](asking, frame)
    if (users := _users_frame()) is not None:
        LATE_BOUND["note_module_beside_extensions"](users)
    LATE_BOUND["note_held_function"]()
    error = TraceError(
        f"a traced value of type {value.type} cannot become an ordinary array: "
        f"it would not be recorded{at_user()}\n  {_remedy_for(asking)}"
    )
    return note_refusal(mark_unrecorded_code(error))


def note_list_of_integers() -> None:
    """Note the ufunc, if there is one, that asks for the value of an integer in a list."""
    LATE_BOUND["note_function_of_lists"](*_asking_function(), are_integers=True)


def _asking_function() -> tuple[str, FrameType | None]:
    """(name of the library function that the user's code called, the user's frame if it is in C).

    The name has its module if the function is written in Python; else it is the user's text. It is
    empty if it cannot be determined.
    """
    frame, asking = sys._getframe(3), ""  # the caller of ``__array__``
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if not is_letir_file(frame.f_code.co_filename):
            asking = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
        frame = frame.f_back
    if asking or frame is None:
        return asking, None
    return called_text(frame.f_code, frame.f_lasti), frame


def _users_frame() -> FrameType | None:
    """The innermost frame of code that counts as the user's, None if there is none."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def called_text(code: CodeType, instruction: int) -> str:
    """The text of the function that an instruction calls, such as ``np.exp``."""
    line, _, start, end = list(code.co_positions())[instruction // 2]
    text = linecache.getline(code.co_filename, line or 0)
    called = text.encode()[start or 0 : end].decode(errors="ignore")
    return called.partition("(")[0].strip()


def _remedy_for(asking: str) -> str:
    """The remedy for a call of the function ``asking``: what to write instead."""
    for pattern, remedy in _REMEDIES.items():
        if re.match(pattern, asking):
            return f"{asking}: {remedy}"
    return _ARRAY_REMEDY


def remedy_in_library(remedy: str) -> str:
    """``remedy``, or a better one if the caller is a library such as ``scipy.integrate``."""
    asking, _ = _asking_function()
    return _remedy_for(asking) if asking.startswith(("scipy.", "sklearn.", "pandas.")) else remedy


def note_refusal(error: E) -> E:
    """Note ``error`` and return it; the trace raises it again at its end. Plain NumPy would not
    raise here, so a function that catches the error takes another path than with NumPy
    [semantics.md B2].
    """
    active = ACTIVE.get()
    if isinstance(active, Trace) and active.refusal is None:
        active.refusal = str(error)  # only the text: its frames refer to arrays
        active.refusal_marks = tuple([mark for mark in _MARKS if hasattr(error, mark)])
    return error


def noted_error(trace: Trace, text: str) -> TraceError:
    """The error for a trace that has noted a refusal."""
    error = TraceError(text)
    vars(error).update(dict.fromkeys(trace.refusal_marks, True))
    return error


def mark_outside_state(error: E) -> E:
    """Mark ``error`` as caused by state outside of the function, which ``jit`` calls as Python."""
    error.letir_changes_outside = True  # type: ignore[attr-defined]
    return error


def _keep_until_end(error: Exception) -> None:
    """Keep an error of letir's until its trace ends: the recorded function may catch it."""
    active = ACTIVE.get()
    if isinstance(active, Trace):
        active.raised = (*active.raised, error)


def _numpys_error(error: Exception, frame: FrameType) -> Exception | None:
    """NumPy's error in place of letir's ``error``, whose text the user's ``frame`` reads.

    None in letir's own code, and if NumPy would raise no error: then the trace notes that the
    function has read a text of letir.
    """
    active = ACTIVE.get()
    if not isinstance(active, Trace) or is_letir_file(frame.f_code.co_filename):
        return None
    notes = vars(error)
    result = notes.get("letir_numpys") or _raised_by_numpy(*notes.get("letir_recorded", ()))
    while result is None and isinstance(active, Trace):
        active.reads_errors = True
        active = active.parent
    return result


def _raised_by_numpy(op: Any = None, operands: tuple = (), attrs: Any = None) -> Exception | None:
    """The error that NumPy raises for an operation on these operands, if their values are known."""
    values = [x.concrete_value() if isinstance(x, Value) else x for x in operands]
    if op is None or any(value is ABSENT for value in values):
        return None
    try:
        LATE_BOUND["compute"](op, values, attrs)
    except Exception as error:  # whatever the operation raises
        return None if isinstance(error, LetirError) else error
    return None


def settle_refusals(trace: Trace) -> None:
    """Note the first error of ``trace`` that the user's code, or a library, has caught.

    Called when the recorded function has ended. An error that propagates further is handed to
    the enclosing trace.
    """
    errors, trace.raised = trace.raised, ()
    for error in errors:
        if error is sys.exception():
            if trace.parent is not None:
                trace.parent.raised = (*trace.parent.raised, error)
        elif trace.refusal is None and _is_caught_by_others(error):
            trace.refusal = str(error)


def _is_caught_by_others(error: Exception) -> bool:
    """Whether code other than letir's has caught ``error``; letir itself catches some errors."""
    place = error.__traceback__  # starts at the frame that caught it; None if it was never raised
    return place is not None and not is_letir_file(place.tb_frame.f_code.co_filename)


def raise_clearer_error(
    trace: Trace, error: Exception, f: Callable, args: tuple, kwargs: dict
) -> None:
    """Raise an error that tells the user more than ``error``, if there is one.

    ``error``: the error that the recorded function ``f`` raised. Called in its ``except`` block.
    """
    LATE_BOUND["refuse_call"](error, f, args, kwargs)
    LATE_BOUND["note_error"](trace, error)
    is_other = not isinstance(error, LetirError) and str(error) != trace.refusal
    if is_other and trace.refusal is not None:  # a library has caught the first error
        raise noted_error(trace, trace.refusal) from error
    if trace.failed is None:
        LATE_BOUND["refuse_c_function"](error)
        LATE_BOUND["refuse_static"](error, f, args, kwargs)
        # for buffer[0] = x NumPy replaces it
        if isinstance(error, ValueError) and isinstance(error.__cause__, TraceError):
            raise error.__cause__ from None


def wrong_result_error(leaf: Any) -> TraceError:
    """The error for a result of the traced function that is not an array, a number or a string."""
    remedy = "return arrays and numbers, nested in tuples, lists and dicts"
    if type(leaf) is str:
        remedy = "return the traced value itself, and format the result"
    if getattr(getattr(leaf, "dtype", None), "names", None):
        remedy = "return the fields of the structured array: z['field']"
    if type(leaf) is GeneratorType:
        remedy = "return a list of what it yields"
    elif type(leaf) in (CoroutineType, AsyncGeneratorType):
        remedy = "record a plain function, not an async one"
    if type(leaf) is CoroutineType:
        leaf.close()  # else Python warns that it was not awaited
    # of an object of SciPy, the object that the user sees
    found = LATE_BOUND["describe_value"](getattr(leaf, "letir_example", leaf))
    error = TraceError(f"the traced function returned {found}{at_user()}\n  {remedy}")
    return mark_unrecorded_code(error)


def escaped_error(value: Value) -> EscapedTracerError:
    """The error for a traced value used outside of its trace."""
    trace = value.emitter
    maker_source = next((b.source for b in trace.binds if value.arg in b.binders), None)
    where = "it was an argument of the traced function"
    if maker_source:
        where = f"it was made at {maker_source}"
    is_elsewhere = trace.thread != threading.get_ident()
    if is_elsewhere:
        reason = "belongs to a trace of another thread"
    elif trace.is_open:
        reason = "belongs to a trace that is not around this one"
    else:
        reason = "belongs to a trace that is over"
    error = EscapedTracerError(
        f"a traced value of type {value.type} {reason}\n  {where}\n  used at {user_place(2)[0]}\n"
        "  return it from the traced function, or pass it as an argument"
    )
    if is_elsewhere and trace.is_open and trace.refusal is None:
        trace.refusal = str(error)  # a thread ends with its error, and the function goes on
    return error


def lost_change_error() -> TraceError:
    """The error for a program that changes its argument, called on an ordinary array or generator
    in a recorded function.
    """
    return TraceError(
        "a program that changes its argument is called on an ordinary array or "
        f"generator while a trace is under way: the change would be lost{at_user()}\n"
        "  make that array or generator an argument of the traced function"
    )


def ambiguous_truth_error(value: Value) -> ShapeError:
    """The error for the truth value of an array, as in ``if x > 0``."""
    if value.size == 0:  # an error since NumPy 2.2, with a warning before
        text = "The truth value of an empty array is ambiguous."
        use, remedy = "Use x.size > 0", "an array without elements is neither true nor false"
        numpys = ValueError(f"{text} Use `array.size > 0` to check that an array is not empty.")
        return _with_numpys(ShapeError(f"{text} {use}{at_user()}\n  {remedy}"), numpys)
    text = (
        "The truth value of an array with more than one element is ambiguous. "
        "Use a.any() or a.all()"
    )
    remedy = "choose for each element with numpy.where(condition, a, b)"
    error = ShapeError(f"{text}{at_user()}\n  the condition has the type {value.type}; {remedy}")
    return _with_numpys(error, ValueError(text))


def not_one_number_error(value: Value, needed: str) -> DTypeError:
    """The error for ``float()`` or ``int()`` of an array; ``needed`` names the function."""
    numpys = TypeError("only 0-dimensional arrays can be converted to Python scalars")
    error = DTypeError(
        f"{needed} of a traced value of type {value.type}: {numpys}{at_user()}\n"
        "  convert an element, x[i], or keep the array: x.astype(float)"
    )
    return _with_numpys(error, numpys)


def not_an_index_error(value: Value) -> DTypeError:
    """The error for an index, a size or a count that is not an integer."""
    text = "only integer scalar arrays can be converted to a scalar index"
    numpys = text
    if value.is_scalar():
        numpys = f"{_class_name(value)!r} object cannot be interpreted as an integer"
    error = DTypeError(
        f"{text}, found a traced value of type {value.type}{at_user()}\n"
        "  pass an int, or round it: x.astype(int)"
    )
    return _with_numpys(error, TypeError(numpys))


def no_length_error(value: Value) -> DTypeError:
    """The error for ``len`` of a number."""
    text = "len() of unsized object"
    error = DTypeError(f"{text}, {value.type}{at_user()}\n  pass an array")
    is_scalar = value.is_scalar()
    numpys = f"object of type {_class_name(value)!r} has no len()" if is_scalar else text
    return _with_numpys(error, TypeError(numpys))


def no_iteration_error(value: Value) -> DTypeError:
    """The error for a loop over a number."""
    text = "iteration over a 0-d array"
    error = DTypeError(f"{text}, {value.type}{at_user()}\n  pass an array")
    numpys = f"{_class_name(value)!r} object is not iterable" if value.is_scalar() else text
    return _with_numpys(error, TypeError(numpys))


def not_iterable_error(value: Value) -> TypeError:
    """The error for ``item in value`` of a number."""
    kind: Any = getattr(value.__class__, "original", value.__class__)
    number = kind()
    try:
        operator.contains(number, 0)  # Python's text differs from version to version
    except TypeError as error:
        return with_hint(error, "a number has no elements: compare it, x == item")
    raise AssertionError("numbers have no elements")


def _class_name(value: Value) -> str:
    """The name of the class that the recorded function sees, as Python's errors write it."""
    kind = getattr(value.__class__, "original", value.__class__)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _with_numpys(error: E, numpys: Exception) -> E:
    """``error``, which shows the text of ``numpys`` to a recorded function that catches it."""
    error.letir_numpys = numpys  # type: ignore[attr-defined]
    return error


def with_hint(error: E, hint: str) -> E:
    """Python's ``error`` with the user's line and a remedy as a note: its text stays Python's."""
    error.add_note(f"letir: {at_user().strip()}\n  {hint}")
    return error


def convert_with_hint(convert: Callable, array: Any, expected: type[Exception], hint: str) -> Any:
    """``convert(array)``; its ``expected`` error gets the hint, see ``with_hint``."""
    try:
        return convert(array)
    except expected as error:
        raise with_hint(error, hint) from None


WATCHERS.append(_keep_until_end)
TEXT_WATCHERS.append(_numpys_error)
LATE_BOUND.update(
    ambiguous_truth_error=ambiguous_truth_error,
    escaped_error=escaped_error,
    lost_change_error=lost_change_error,
    not_an_index_error=not_an_index_error,
    not_one_number_error=not_one_number_error,
    note_list_of_integers=note_list_of_integers,
    note_refusal=note_refusal,
)

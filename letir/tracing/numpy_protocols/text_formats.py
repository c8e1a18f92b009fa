"""Formatting of traced numbers: ``f"{x:.3f}"``, ``"%.3f" % x`` and ``str(n)``.

Text that the user's code prints shows the number at the time of recording, because all printing of
Python code happens once, during the recording. Any other text may become a key, a result or a
condition, so the formatted number is guarded.
"""

import dis
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from copy import copy
from types import CodeType, FrameType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import Value
from letir.errors import TraceError, mark_unrecorded_code
from letir.tracing.numpy_protocols.text_readers import note_float_text, note_of, number_in_text
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user, is_user_file
from letir.tracing.stand_ins import is_recording
from letir.tracing.trace_state import ABSENT, ACTIVE, active_trace

# methods of files, loggers and progress bars; what they return is not used
_WRITERS = frozenset(
    ["write", "info", "debug", "warning", "warn", "error", "critical", "exception", "log"]
)
_BARS = frozenset(["set_description", "set_description_str", "set_postfix", "set_postfix_str"])
_CALLS = ("CALL", "CALL_KW", "CALL_FUNCTION_EX")
_BUFFERS = frozenset(["StringIO", "getvalue", "redirect_stdout", "redirect_stderr"])
_MAX_CODES = 1 << 12
# by id, as hashing code is slow
_printed: dict[int, tuple[CodeType, list[tuple]]] = BoundedCache(_MAX_CODES)
_REMAINDER = [number for number, (_, sign) in enumerate(dis._nb_ops) if sign in ("%", "%=")]  # type: ignore[attr-defined]
_BINARY_OP = dis.opmap["BINARY_OP"]
_REMEDY = (
    "print it with letir.debug.print, which formats the number each time that the program runs"
)


def format_traced(x: Any, spec: str) -> str:
    """``format(x, spec)`` of a traced value."""
    frame = _asking_frame()
    if x.shape:
        raise TypeError(f"unsupported format string passed to numpy.ndarray.__format__{at_user()}")
    value = x.concrete_value()
    if frame is not None and _is_printed(frame):
        return repr(x) if value is ABSENT or not spec else format(_note_printed(x, value), spec)
    if value is ABSENT:
        raise x.refused(f"the format {spec!r}", _REMEDY)
    return _note_text(x, format(x.guarded(_python_number, "the text"), spec))


def text_of(x: Any, make: Callable[[Any], str], frame: FrameType | None = None) -> str | None:
    """``make(value)``, ``str`` or ``repr``, of a traced value in the user's code.

    None for a text on which nothing depends: it is printed, or other code such as a logger makes
    it. In an abstract trace there is no value.
    """
    frame = _asking_frame() if frame is None else frame
    if frame is None or not x.emitter.is_open or _is_printed(frame):
        return None
    if x.concrete_value() is ABSENT:
        return None
    if not x.shape:
        number, kind = x.guarded(_python_number, "the text"), x.__class__
        shown = number if x.type.weak or kind is bool else x.dtype.type(number)
        return _note_text(x, make(np.array(number, x.dtype) if kind is np.ndarray else shown))
    value = x.concrete_value()
    _guard_equal(x, np.array(value))
    return note_float_text(x, make(np.asarray(value)))


def text_by_function(function: Callable[..., str], x: Any, *args: Any, **options: Any) -> str:
    """The text that a NumPy function such as ``np.array2string`` makes of a traced value."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    result = text_of(x, lambda value: function(value, *args, **options), frame)
    return x.listing_text() if result is None else result


def _guard_equal(x: Any, value: np.ndarray) -> None:
    """Guard that the elements of ``x`` are those of ``value``, with their signs of zero."""
    same = x == value
    if value.dtype.kind in "fc":
        same = same | (np.isnan(x) & np.isnan(value))
    for part in (np.real, np.imag) if value.dtype.kind == "c" else (np.positive,):
        if value.dtype.kind in "fc":
            same = same & (np.signbit(part(x)) == np.signbit(part(value)))
    bool(same.all())


def float_for_text(x: Any, frame: FrameType) -> Any:
    """The number that ``"%.3f" % x`` formats; None if ``frame`` does not execute such a format."""
    code, at = frame.f_code.co_code, frame.f_lasti
    while code[at] == 0:  # an inline cache behind the instruction
        at -= 2
    is_text = code[at] == _BINARY_OP and code[at + 1] in _REMAINDER
    is_logged = frame.f_globals.get("__name__") == "logging"
    if not is_text or not (is_logged or is_user_file(frame.f_code.co_filename)):
        return None
    value = x.concrete_value()
    if value is ABSENT:
        raise x.refused("the text", _REMEDY)
    is_shown = is_logged or _is_printed(frame)
    return _note_printed(x, value) if is_shown else x.guarded(_python_number, "the text")


def _note_printed(x: Any, value: Any) -> Any:
    """``value``, after the trace has noted that a number was printed: see ``guard_printed``."""
    vars(x.emitter).setdefault("printed", []).append(x)
    return value


def guard_printed(trace: Any) -> None:
    """Guard all printed numbers, because a string is among the results of ``trace``."""
    for x in vars(trace).pop("printed", ()):
        x.guarded(_python_number, "the text")


def _python_number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


# ---- numbers that are read from texts ----


def _note_text(x: Any, text: str) -> str:
    """``text``, after the trace has noted that it is the text of the traced number ``x``."""
    if x.dtype.kind == "f":
        vars(x.emitter).setdefault("texts", {})[id(text)] = text, x
    return note_float_text(x, text)


def number_of_text(text: str, read: Callable[[str], float] = float) -> Any:
    """The traced number whose text this object is, for ``float(str(x))``, else ``text`` itself.

    A text of many digits is a number's wherever it stands, such as in a part of a longer text.
    ``text`` itself, too, if it has less digits: the number that it gives has the derivative 0.
    """
    _, x = note_of("texts", id(text)) or (None, None)
    x = number_in_text(text) if x is None else x
    return x if x is not None and read(text) == x.concrete_value() else text


# ---- json ----


def json_stand_in(original: Callable) -> Callable:
    """The stand-in for ``json.dumps``, ``dump``, ``loads`` and ``load``.

    The C code of the first two takes no traced values; the values of the text are guarded. The last
    two refuse to read such a string, since the derivatives of the numbers would be lost.
    """

    @functools.wraps(original)
    def write(obj, *args, **kwargs):
        values = _with_known_values(obj) if is_recording() else obj
        result = original(values, *args, **kwargs)
        if type(result) is str and is_recording() and _has_traced_float(obj):
            vars(active_trace()).setdefault("json_texts", {})[result] = True
        return result

    @functools.wraps(original)
    def read(text, *args, **kwargs):
        if is_recording() and type(text) is str and note_of("json_texts", text):
            raise note_refusal(
                mark_unrecorded_code(
                    TraceError(
                        "json.loads of a string with traced values would lose their derivatives"
                        f"{at_user()}\n  copy the values: copy.deepcopy(x)"
                    )
                )
            )
        return original(text, *args, **kwargs)

    return write if original.__name__.startswith("dump") else read


def _has_traced_float(tree: Any) -> bool:
    """Whether a traced value that is not an integer is in nested lists, tuples and dicts."""
    if isinstance(tree, dict):
        return any(map(_has_traced_float, tree.values()))
    if isinstance(tree, list | tuple):
        return any(map(_has_traced_float, tree))
    return issubclass(type(tree), Value) and tree.dtype.kind in "fc"


def _with_known_values(tree: Any) -> Any:
    """Nested lists, tuples and dicts with ordinary values in place of traced ones."""
    if issubclass(type(tree), Value):
        return tree.known_number("the text") if not tree.shape else tree.guarded(copy, "the text")
    if isinstance(tree, dict):
        return {_with_known_values(key): _with_known_values(x) for key, x in tree.items()}
    return [_with_known_values(x) for x in tree] if isinstance(tree, list | tuple) else tree


def _asking_frame() -> FrameType | None:
    """The user's frame that formats the number; None if other code does."""
    frame: FrameType | None = sys._getframe(3)
    return frame if frame is not None and is_user_file(frame.f_code.co_filename) else None


def _is_printed(frame: FrameType) -> bool:
    """Whether a frame is computing an argument of ``print``, or of a method that writes text, which
    nobody reads.
    """
    code = frame.f_code
    entry = _printed.get(id(code))
    if entry is None:
        entry = _printed[id(code)] = code, list(_printing_calls(code))
    line, last_line, start, end = _instruction_span(code, frame.f_lasti)
    if line is None or last_line is None:
        return False
    is_printed = any(a <= (line, start) and (last_line, end) <= b for a, b in entry[1])
    return is_printed and not _may_be_read(frame)


def _may_be_read(frame: FrameType) -> bool:
    """Whether the recorded code that is running names a buffer that keeps what is printed."""
    caller: FrameType | None = frame
    while caller is not None and caller.f_code is not getattr(ACTIVE.get(), "root", None):
        if not _BUFFERS.isdisjoint(caller.f_code.co_names):
            return True
        caller = caller.f_back
    return False


def _instruction_span(code: CodeType, instruction: int) -> tuple:
    return next(itertools.islice(code.co_positions(), instruction // 2, None))


def _printing_calls(code: CodeType) -> Iterator[tuple]:
    """(start, end) in the text of each call whose arguments are printed."""
    instructions = [x for x in dis.get_instructions(code) if x.opname not in ("CACHE", "PRECALL")]
    names: dict[tuple, str] = {}  # start of an expression -> the last name that is read there
    for x, after in itertools.pairwise(instructions):
        at = x.positions
        if at is None or at.lineno is None or at.col_offset is None:
            continue
        start, end = (at.lineno, at.col_offset), (at.end_lineno, at.end_col_offset)
        if x.opname.startswith("LOAD_") and type(x.argval) is str:
            if x.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME")):
                names[start] = x.argval
        elif x.opname in _CALLS:
            name = names.get(start, "")
            is_dropped = after.opname == "POP_TOP"
            if name == "print" or (is_dropped and (name in _WRITERS or name in _BARS)):
                yield start, end


LATE_BOUND.update(
    float_for_text=float_for_text,
    format_traced=format_traced,
    guard_printed=guard_printed,
    json_stand_in=json_stand_in,
    note_text=_note_text,
    number_of_text=number_of_text,
    text_by_function=text_by_function,
    text_of=text_of,
)

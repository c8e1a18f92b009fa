"""Readers of numbers in strings: ``eval``, ``ast.literal_eval``, ``csv.reader``, ``np.fromstring``,
``np.loadtxt``, ``np.genfromtxt``, ``Decimal``, ``Fraction``, and arrays of strings.

A number that such a function reads from the text of a traced number has no derivative, so reading
it while recording is refused. ``float(str(x))`` is the number itself: see ``text_formats``.
"""

import ast
import copyreg
import functools
import io
import operator
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.errors import TraceError, mark_unrecorded_code
from letir.tracing.class_stand_ins import CLASSES_REPLACED, ClassStandIn
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user
from letir.tracing.stand_ins import add_methods, is_recording
from letir.tracing.trace_state import ACTIVE

_MIN_LENGTH = 3  # characters of a text: "2" may stand anywhere
_UNIQUE = 8  # characters of a text that is a traced number's wherever it stands


def note_float_text(x: Any, text: str) -> str:
    """``text``, after the trace has noted that numbers in it are those of the traced ``x``."""
    if x.dtype.kind in "fc":
        noted = vars(x.emitter).setdefault("float_texts", {})
        number = text[text.index("(") + 1 : -1] if text.startswith("np.") else text
        for part in {text, number}:
            noted[part] = x if noted.get(part, x).arg == x.arg else _SEVERAL
    return text


class _Several:
    """Stands for several traced numbers that have the same text."""

    arg = shape = None


_SEVERAL: Any = _Several()


def number_in_text(text: str) -> Any:
    """The traced number whose text, of many digits, is equal to ``text``; None if there is none.

    Raises TraceError if it is the text of several, or if ``text`` has more characters.
    """
    if len(text) < _UNIQUE:
        return None
    x = note_of("float_texts", text.strip())
    if x is None or x.shape != ():
        long = [known for known in _noted_texts() if len(known) >= _UNIQUE]
        _refuse_reading("float", text, long)
        return None
    return x


def note_of(name: str, key: Any) -> Any:
    """The note with this key in the active trace or a trace around it, None if there is none."""
    trace = ACTIVE.get()
    while trace is not None:
        found = vars(trace).get(name, {}).get(key)
        if found is not None:
            return found
        trace = getattr(trace, "parent", None)
    return None


def reading_stand_in(original: Callable, place: int = 0) -> Callable:
    """The stand-in for a function that reads numbers from its argument at ``place``."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        if len(args) > place and is_recording():
            name = original.__name__ if not place else args[0].__name__  # of a class
            _refuse_reading(name, args[place])
        return original(*args, **kwargs)

    return stand_in


@functools.cache
def text_reader(name: str) -> Callable:
    """The stand-in for ``eval`` or ``literal_eval``, whose name code contains.

    The one for ``ast.literal_eval`` stands in the module, now and in each later recording.
    """
    if name == "eval":
        return _eval_stand_in
    original = ast.literal_eval
    stand_in = reading_stand_in(original)
    add_methods([(ast, name, original, stand_in)])
    return stand_in


def reading_class(original: type) -> type:
    """The stand-in for ``Decimal``, a class in C that reads a number from its first argument."""
    names = {"original": original, "__module__": original.__module__, "__slots__": ()}
    names |= {"__qualname__": original.__qualname__, "__doc__": original.__doc__}
    result = CLASSES_REPLACED[original] = _ReadingClass(original.__name__, (original,), names)
    return result


class _ReadingClass(ClassStandIn):
    """The metaclass of the stand-in for ``Decimal``."""

    def __call__(cls, *args, **kwargs):
        if "original" not in vars(cls):
            return super().__call__(*args, **kwargs)  # a user's subclass
        if args and is_recording():
            _refuse_reading(cls.original.__name__, args[0])
            if isinstance(args[0], Value) and args[0].dtype.kind in "iub":
                args = (operator.index(args[0]), *args[1:])  # with a guard
        return cls.original(*args, **kwargs)


# a pickle names the original class
_pickled: Any = lambda cls: (type, (cls.original(),))  # noqa: E731
copyreg.pickle(_ReadingClass, _pickled)


def refuse_texts(values: Any, dtype: Any) -> None:
    """Raise TraceError if an array of ``dtype`` is read from strings of traced numbers."""
    if np.dtype(dtype).kind in "fc":
        is_array = isinstance(values, np.ndarray) and values.dtype.kind in "SUT"
        _refuse_reading("array", values.ravel().tolist() if is_array else values)


def _eval_stand_in(source: Any, globals: Any = None, locals: Any = None, /) -> Any:
    """The stand-in for ``eval``, which takes the names of its caller by default."""
    if is_recording():
        _refuse_reading("eval", source)
    if globals is None:
        frame = sys._getframe(1)
        globals, locals = frame.f_globals, frame.f_locals if locals is None else locals
    return eval(source, globals, locals)


def _refuse_reading(reader: str, source: Any, noted: Iterable[str] | None = None) -> None:
    """Raise TraceError if the text of a traced number is in a string, a list or a StringIO."""
    noted = _noted_texts() if noted is None else noted
    if noted and any(_has_text(text, noted) for text in _texts_of(source)):
        raise note_refusal(
            mark_unrecorded_code(
                TraceError(
                    f"{reader} of a string with a traced value would lose its derivative{at_user()}"
                    "\n  use the value itself, or float(s) of a string that is one number"
                )
            )
        )


def _noted_texts() -> dict[str, Any]:
    """The texts of traced numbers in the active trace and the traces around it, with these."""
    trace, result = ACTIVE.get(), dict[str, Any]()
    while trace is not None:
        noted = vars(trace).get("float_texts", {})
        result |= {text: x for text, x in noted.items() if len(text) >= _MIN_LENGTH}
        trace = getattr(trace, "parent", None)
    return result


def _texts_of(source: Any) -> Iterable[str]:
    """The texts that a reader reads, without moving the position of a stream."""
    if isinstance(source, str | bytes):
        return [source if isinstance(source, str) else source.decode("latin-1")]
    if isinstance(source, io.StringIO):
        return [source.getvalue()]
    parts = source if isinstance(source, list | tuple) else ()
    return [text for part in parts for text in _texts_of(part)]


def _has_text(text: str, noted: Iterable[str]) -> bool:
    """Whether one of the noted texts is in ``text``, not as a part of a longer number."""
    found = [each for each in noted if each in text]  # few; patterns take long
    return any(re.search(rf"(?<![\w.]){re.escape(each)}(?![\w.])", text) for each in found)


LATE_BOUND.update(
    reading_stand_in=reading_stand_in,
    refuse_texts=refuse_texts,
    text_reader=text_reader,
)

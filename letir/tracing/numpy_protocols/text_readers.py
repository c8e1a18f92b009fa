"""Readers of numbers in texts: ``eval``, ``ast.literal_eval``, ``csv.reader``, ``np.fromstring``,
``np.loadtxt``, ``np.genfromtxt``.

A number that such a function reads from the text of a traced number has no derivative, so reading
it while recording is refused. ``float(str(x))`` is the number itself: see ``text_formats``.
"""

import ast
import functools
import io
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from letir.ast import LATE_BOUND
from letir.errors import TraceError, mark_unrecorded_code
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user
from letir.tracing.stand_ins import add_methods, is_recording
from letir.tracing.trace_state import ACTIVE

_MIN_LENGTH = 3  # characters of a text: "2" may stand anywhere


def note_float_text(x: Any, text: str) -> str:
    """``text``, after the trace has noted that numbers in it are those of the traced ``x``."""
    if x.dtype.kind in "fc":
        vars(x.emitter).setdefault("float_texts", set()).add(text)
    return text


def reading_stand_in(original: Callable) -> Callable:
    """The stand-in for a function that reads numbers from its first argument."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        if args and is_recording():
            _refuse_reading(original.__name__, args[0])
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


def _eval_stand_in(source: Any, globals: Any = None, locals: Any = None, /) -> Any:
    """The stand-in for ``eval``, which takes the names of its caller by default."""
    if is_recording():
        _refuse_reading("eval", source)
    if globals is None:
        frame = sys._getframe(1)
        globals, locals = frame.f_globals, frame.f_locals if locals is None else locals
    return eval(source, globals, locals)


def _refuse_reading(reader: str, source: Any) -> None:
    """Raise TraceError if the text of a traced number is in a text, a list or a StringIO."""
    noted = _noted_texts()
    if noted and any(_has_text(text, noted) for text in _texts_of(source)):
        raise note_refusal(
            mark_unrecorded_code(
                TraceError(
                    f"{reader} of the text of a traced value would lose its derivative{at_user()}"
                    "\n  use the value itself, or float(text) of the text of one number"
                )
            )
        )


def _noted_texts() -> list[str]:
    """The texts of traced numbers in the active trace and the traces around it."""
    trace, result = ACTIVE.get(), []
    while trace is not None:
        result += [t for t in vars(trace).get("float_texts", ()) if len(t) >= _MIN_LENGTH]
        trace = getattr(trace, "parent", None)
    return result


def _texts_of(source: Any) -> Iterable[str]:
    """The texts that a reader reads, without moving the position of a stream."""
    if isinstance(source, str):
        return [source]
    if isinstance(source, io.StringIO):
        return [source.getvalue()]
    return [x for x in source if isinstance(x, str)] if isinstance(source, list | tuple) else []


def _has_text(text: str, noted: list[str]) -> bool:
    """Whether one of the noted texts is in ``text``, not as a part of a longer number."""
    return any(re.search(rf"(?<![\w.]){re.escape(each)}(?![\w.])", text) for each in noted)


LATE_BOUND.update(reading_stand_in=reading_stand_in, text_reader=text_reader)

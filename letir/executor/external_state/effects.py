"""Effects outside of a recorded function: prints, logs, files that are written, clocks that are
read.

A plan would not repeat them. The recording for a plan ends at the first of them, before it happens,
and the executor calls the function as Python.
"""

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from letir.ast import LATE_BOUND
from letir.executor.active_recordings import WARN, ActiveRecording, EndOfRecording
from letir.executor.external_state.changes import are_restorable, restore_state
from letir.executor.external_state.iterators import ReadsOwnChanges
from letir.tracing.callers import is_user_module
from letir.tracing.checks.system_randomness import is_importing
from letir.tracing.source_locations import at_user, is_letir_file

_RECORDINGS = 3  # that end at an effect, before all calls with such arguments run the function
_WRITING = frozenset("wax+")  # in the mode of a file


class HasEffects(ReadsOwnChanges):
    """Raised for a function whose recording has ended at an effect outside of it."""


def _end_recording(recording: ActiveRecording, effect: str) -> None:
    """Note an effect, and end the recording before it happens.

    If what the function has changed so far cannot be undone, the recording goes on: its plan is for
    this call alone. An effect of a module that the function imports happens once in any case, and
    a module of which the import ends early could not be imported again.
    """
    if is_importing(sys._getframe(1)):
        return
    recording.effect = recording.effect or f"it {effect}{at_user()}"
    state = recording.state  # (objects, contents before, whether these are all)
    if state and state[2] and are_restorable(*state[:2]):
        recording.has_ended = True
        raise EndOfRecording


def note_output(recording: ActiveRecording, effect: str, frame: FrameType) -> None:
    """Note that text is written to a stream; warnings are not, which are shown once anyway."""
    file = frame.f_code.co_filename
    if not (is_letir_file(file) or frame.f_globals.get("__name__") == "warnings"):
        _end_recording(recording, effect)


def note_open(
    recording: ActiveRecording, original: Callable, args: tuple, kwargs: dict, frame: FrameType
) -> Any:
    """Note that a file is opened, and open it unless that ends the recording."""
    mode = kwargs.get("mode", args[1] if len(args) > 1 else "r")
    is_own = is_letir_file(frame.f_code.co_filename)
    if type(mode) is str and not _WRITING.isdisjoint(mode) and not is_own:
        _end_recording(recording, "writes a file")
    return original(*args, **kwargs)


def note_call_of_user(
    recording: ActiveRecording, original: Callable, args: tuple, kwargs: dict, frame: FrameType
) -> Any:
    """Note that a user's code calls a function that has an effect, or reads a clock; call it.

    Functions of the operating system are called for it by Python's library, ``os.environ`` too.
    """
    name, module = original.__name__, original.__module__.lstrip("_")
    is_system = module == os.name and not is_letir_file(frame.f_code.co_filename)
    if is_system or is_user_module(frame.f_globals):
        _end_recording(recording, f"calls {'os' if is_system else module}.{name}")
    return warn_in_place(3, *args, **kwargs) if name == "warn" else original(*args, **kwargs)


def warn_in_place(frames: int, message: Any, *args: Any, **kwargs: Any) -> None:
    """``warnings.warn``, whose stand-in was called ``frames`` frames above, for its caller."""
    if len(args) > 1:
        args = (args[0], args[1] + frames, *args[2:])
    else:
        kwargs = {**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + frames}
    WARN(message, *args, **kwargs)


def note_log(
    recording: ActiveRecording, original: Callable, args: tuple, kwargs: dict, frame: FrameType
) -> Any:
    """Note that a record is logged, and log it unless that ends the recording."""
    record = args[1] if len(args) > 1 else kwargs["record"]
    if record.name.partition(".")[0] != "letir":
        _end_recording(recording, "logs")
    state, recording.state = recording.state, None  # a handler may print
    try:
        return original(*args, **kwargs)
    finally:
        recording.state = state


def raise_has_effects(executor: Any, effect: str, holders: list, before: list) -> None:
    """Undo what a recording that has ended at an effect has changed, and raise ``HasEffects``.

    After several such recordings, and without any plan, all calls with arguments of these types run
    the Python function. Otherwise later calls look for a plan: a print may be under an ``if``.
    """
    restore_state(holders, before, generators=True)
    executor.effect = effect
    error = HasEffects(effect)
    if executor.cache.failures >= _RECORDINGS and not executor.cache.compiles:
        error.letir_is_python_kind = True  # type: ignore[attr-defined]
    raise error


LATE_BOUND.update(
    note_call_of_user=note_call_of_user,
    note_log=note_log,
    note_open=note_open,
    note_output=note_output,
    raise_has_effects=raise_has_effects,
    warn_in_place=warn_in_place,
)

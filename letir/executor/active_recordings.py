"""``ActiveRecording``: recordings of users' functions that are under way for an executor, and the
stand-ins for Python's functions that note effects outside of a recorded function.
"""

import builtins
import io
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.process_state import TemporaryChange, new_lock
from letir.tracing.stand_ins import SEARCHED, WITH_EFFECTS, search_again

_PATIENCE = 2.0  # seconds


class Pause:
    """A context in which no other thread begins to record for an executor.

    Threads do not wait long, because the recorded function may wait for one of them.
    """

    lock = new_lock(threading.RLock)

    def __enter__(self) -> bool:
        lock = Pause.lock
        self.held = lock if lock.acquire(timeout=_PATIENCE) else None
        if self.held is None:  # its holder waits for this thread, or has ended by an interrupt
            Pause.lock = new_lock(threading.RLock)
        return self.held is not None

    def __exit__(self, *error: object) -> None:
        if self.held is not None:
            self.held.release()


class EndOfRecording(BaseException):
    """Ends a recorded function that has an effect outside of it, such as a print.

    Not an Exception: the function may catch those.
    """


class ActiveRecording(TemporaryChange):
    """A recording for an executor, which is in ``active_recordings`` while it is under way.

    ``state``: (objects, their contents before, whether these are all objects that the function
    reaches), None if effects outside of the function are not noted. ``effect``: the first effect;
    ``has_ended``: whether the recording has ended there, after which the objects are restored.
    """

    __slots__ = ("effect", "has_ended", "is_first", "outer", "state")
    latest: "ActiveRecording | None" = None  # the one that began last

    def make(self) -> "ActiveRecording":
        self.effect, self.has_ended = "", False
        self.state, self.outer = None, _WATCHED.get()
        with Pause():
            self.is_first, ActiveRecording.latest = not active_recordings, self
            active_recordings.add(self)
        _WATCHED.set(self)
        with _streams_lock:
            for name in _STREAMS:
                current = getattr(sys, name)
                if type(current) is not _Stream and current is not None:
                    stream = _Stream()  # a new one: the function may keep it, in its own stream
                    stream.name, stream.original = name, current
                    setattr(sys, name, stream)
            for owner, name, original, stand_in in _FUNCTIONS:
                if getattr(owner, name) is original:
                    setattr(owner, name, stand_in)
        return self

    def undo(self) -> None:
        if hasattr(self, "outer"):  # not interrupted before
            _WATCHED.set(self.outer)
        with _streams_lock:
            active_recordings.discard(self)
            if active_recordings:
                return
            for name in _STREAMS:
                current = getattr(sys, name)
                if type(current) is _Stream:
                    setattr(sys, name, current.original)
            for owner, name, original, stand_in in _FUNCTIONS:
                if getattr(owner, name) is stand_in:
                    setattr(owner, name, original)

    def is_alone(self) -> bool:
        """Whether no other recording has been under way since this one began."""
        return self.is_first and ActiveRecording.latest is self


active_recordings: set[ActiveRecording] = set()

# ---- effects outside of a recorded function ----

# in other threads, and in letir's own output, there is none
_WATCHED: ContextVar[ActiveRecording | None] = ContextVar("letir_watched", default=None)
_streams_lock = new_lock()
_OF_SYSTEM = ["mkdir", "putenv", "remove", "rename", "replace", "rmdir", "system", "unlink"]
_OF_SYSTEM += ["chmod", "link", "open", "pipe", "symlink", "truncate", "utime", "write"]
_CLOCKS = ["monotonic", "perf_counter", "process_time", "thread_time", "time"]
_CLOCKS += ["monotonic_ns", "perf_counter_ns", "process_time_ns", "thread_time_ns", "time_ns"]


class _Stream:
    """A stand-in for ``sys.stdout`` or ``sys.stderr``: text that is written ends a recording."""

    name: str
    original: Any

    def write(self, text: str) -> Any:
        """Write to the original stream."""
        recording = _WATCHED.get()
        if recording is not None and recording.state is not None:
            LATE_BOUND["note_output"](recording, f"writes to sys.{self.name}", sys._getframe(1))
        return self.original.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


def _call_watched(note: str, original: Callable, *args: Any, **kwargs: Any) -> Any:
    """A call of a function that has an effect: ``LATE_BOUND[note]`` decides whether it ends a
    recording.
    """
    recording = _WATCHED.get()
    if recording is None or recording.state is None:
        if original is WARN:
            return LATE_BOUND["warn_in_place"](2, *args, **kwargs)
        return original(*args, **kwargs)
    return LATE_BOUND[note](recording, original, args, kwargs, sys._getframe(1))


_handle, WARN = logging.Logger.handle, warnings.warn


def _handle_watched(logger: logging.Logger, record: logging.LogRecord) -> None:
    return _call_watched("note_log", _handle, logger, record)


_STREAMS = ("stdout", "stderr")
# (where it is, name, function, stand-in)
_FUNCTIONS: list = [(logging.Logger, "handle", _handle, _handle_watched)]
for _note, _owner, _names in (
    ("note_open", builtins, ["open"]),
    ("note_open", io, ["open"]),
    ("note_call_of_user", builtins, ["input"]),
    ("note_call_of_user", os, _OF_SYSTEM),
    ("note_call_of_user", time, [*_CLOCKS, "sleep"]),
    ("note_call_of_user", warnings, ["warn"]),
):
    for _name in _names:
        _function = getattr(_owner, _name, None)  # None: not on this system
        if _function is not None:
            _watched = partial(_call_watched, _note, _function)
            _FUNCTIONS.append((_owner, _name, _function, _watched))
_IMPORTED: dict[int, Callable] = {}  # for names that users' modules have imported
for _owner, _, _function, _watched in _FUNCTIONS:
    if _owner in (time, warnings):
        _IMPORTED[id(_function)] = _watched
_BY_ID = SimpleNamespace(stand_in=_IMPORTED.__getitem__, stand_in_for_traced=_IMPORTED.__getitem__)
WITH_EFFECTS.update(zip(_IMPORTED, zip(repeat(_BY_ID), _IMPORTED, strict=False), strict=True))
if SEARCHED:
    search_again()


def numpy_settings() -> tuple:
    """NumPy's settings, which a function may leave changed; a plan would not change them."""
    return np.geterr(), np.geterrcall(), np.get_printoptions()

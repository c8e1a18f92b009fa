"""``PlanCache``: plans by spec, with one compile per key under any number of threads; and
``ActiveRecording``, the recordings for these plans, which end at an effect outside.

No lock is held during a compile. A thread that needs a key which another thread compiles waits for
it; other keys are not blocked. A failed compile is not cached, and all waiters get a copy of its
error [semantics.md F2].
"""

import builtins
import copy
import io
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from functools import partial
from itertools import repeat
from types import SimpleNamespace
from typing import Any

from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.process_state import TemporaryChange, new_lock, renew_after_fork
from letir.tracing.stand_ins import SEARCHED, WITH_EFFECTS, search_again


@define(eq=False)
class _RunningCompile:
    """A running compile in ``thread``."""

    thread: int = field(factory=threading.get_ident)
    done: threading.Event = field(factory=threading.Event)
    error: Exception | None = None


@define(eq=False)
class Entry:
    """The plans of one key, most recently used first, one for each outcome of the guards."""

    key: Any  # hashable
    plans: tuple = ()
    used: int = 0  # the number of the last call that used it
    is_evicted: bool = False  # from the cache
    runs_python: bool = False  # calls run the Python function, as most would need another plan
    flight: _RunningCompile | None = None
    lock: threading.Lock = field(factory=new_lock, repr=False)  # held for a few lines only


def _copy_error(error: Exception) -> Exception:
    """A copy of an error: the tracebacks of the threads that raise it must not mix."""
    try:
        result = copy.copy(error)
    except Exception:  # its class does not take the arguments that it keeps
        result = error
    if type(result) is type(error) and result is not error:
        result.__cause__, result.__suppress_context__ = error.__cause__, error.__suppress_context__
        return result.with_traceback(error.__traceback__)
    return error


_MAX_WAIT = 1 << 8  # calls


class PlanCache:
    """At most ``max_entries`` entries by key; the least recently used one is evicted first.

    ``compiles``, ``failures`` and ``evictions`` are exact; ``on_drop()`` is called after an
    eviction.
    """

    def __init__(self, max_entries: int, plans_each: int = 16, on_drop: Callable = lambda: None):
        self.max_entries, self.plans_each, self.on_drop = max_entries, plans_each, on_drop
        self.entries: dict[Hashable, Entry] = {}
        self.lock = new_lock()  # held for a few lines only
        self.compiles = self.failures = self.evictions = 0
        self.last_compile = 0, 0  # calls and misses until then
        self.last_failure = 0, 0  # calls until then, and failures since a plan was made
        renew_after_fork(self)

    def renew(self) -> None:
        """Forget the compiles of other threads: after a fork, the child does not have these
        threads.
        """
        for entry in list(self.entries.values()):
            if entry.flight is not None and entry.flight.thread != threading.get_ident():
                entry.flight = None

    def entry(self, key: Hashable) -> Entry:
        """The entry of a key, created if there is none."""
        result = self.entries.get(key)
        # setdefault is atomic: all threads get the same entry
        return self.entries.setdefault(key, Entry(key)) if result is None else result

    def grow(self, entry: Entry, expected: tuple, make: Callable) -> bool:
        """Add the plan ``make()`` to an entry, unless its plans are no longer ``expected``.

        Waits if another thread is adding one. An exception of ``make`` is raised here and in all
        waiting threads. Returns False if this thread is adding one already (a recursive call).
        """
        with entry.lock:
            if entry.plans is not expected or entry.is_evicted:
                return True
            flight, mine = entry.flight, entry.flight is None
            if mine:
                flight = entry.flight = _RunningCompile()
        if mine:
            self._compile(entry, expected, make, flight)
            return True
        if flight.thread == threading.get_ident():
            return False
        flight.done.wait()
        if flight.error is not None:
            raise _copy_error(flight.error)
        return True

    def _compile(
        self, entry: Entry, expected: tuple, make: Callable, flight: _RunningCompile
    ) -> None:
        """``grow`` in the thread that makes the plan."""
        plans, is_made = expected, False
        try:
            plans, is_made = (make(), *expected[: self.plans_each - 1]), True
        except BaseException as error:
            if hasattr(error, "letir_drops_plans"):
                plans = ()
                self.clear()
            # KeyboardInterrupt concerns this thread only: a waiting thread compiles instead
            flight.error = error if isinstance(error, Exception) else None
            raise
        finally:
            with self.lock:
                self.compiles += is_made
                self.failures += not is_made
                if is_made:
                    self.last_failure = 0, 0
            with entry.lock:
                entry.plans, entry.flight = plans, None
                entry.is_evicted = not plans
            if plans:
                self._make_room(entry)
            else:
                self.remove(entry)
            flight.done.set()

    def note_failure(self, number: int, error: Exception, entry: Entry) -> Entry:
        """Note that call ``number`` could not be recorded and runs the Python function.

        Returns the entry of its arguments, which is a new one if later calls run Python too. The
        traceback of ``error`` is dropped: with it, waiting threads keep arguments alive.
        """
        error.__traceback__ = error.__context__ = None
        if not hasattr(error, "letir_is_python_kind"):
            self.last_failure = number, self.last_failure[1] + 1
            return entry
        result = self.entry(entry.key)
        result.runs_python = True
        return result

    def waits(self, number: int) -> bool:
        """Whether call ``number`` is not recorded, since recordings failed several times."""
        last, count = self.last_failure
        return count > 3 and number - last <= min(1 << count, _MAX_WAIT)

    def _make_room(self, new: Entry) -> None:
        """Evict the least recently used entries."""
        while True:
            # entries without a plan are being compiled
            with_plans = [entry for entry in list(self.entries.values()) if entry.plans]
            others = [entry for entry in with_plans if entry is not new and entry.flight is None]
            if len(with_plans) <= self.max_entries or not others:
                return
            if self.remove(min(others, key=lambda entry: entry.used)):
                with self.lock:
                    self.evictions += 1

    def remove(self, entry: Entry) -> bool:
        """Remove an entry; False if it was removed already, or is being compiled again."""
        with entry.lock:
            if entry.flight is not None:
                return False
            entry.is_evicted = True
        with self.lock:
            result = self.entries.get(entry.key) is entry
            if result:
                del self.entries[entry.key]
        self.on_drop()
        return result

    def clear(self) -> None:
        """Drop all plans except those that are being compiled."""
        for entry in list(self.entries.values()):
            self.remove(entry)


# ---- recordings ----

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

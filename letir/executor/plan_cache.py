"""``PlanCache``: plans by spec, with one compile per key under any number of threads.

No lock is held during a compile. A thread that needs a key which another thread compiles waits for
it; other keys are not blocked. A failed compile is not cached, and all waiters get a copy of its
error [semantics.md F2].
"""

import copy
import threading
from collections.abc import Callable, Hashable
from typing import Any

from attrs import define, field

from letir.ast.process_state import new_lock, renew_after_fork


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
            flight, is_maker = entry.flight, entry.flight is None
            if is_maker:
                flight = entry.flight = _RunningCompile()
        if is_maker:
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

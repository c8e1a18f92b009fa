"""``PlanCache``: plans by what they are made for; one compile per key under any number of threads.

No lock is held while something is compiled. Who asks for what another thread compiles waits for
that one; other keys go on. A compile that fails is not kept, and all who waited get its error [F2].
"""

import threading
from collections.abc import Callable, Hashable

from attrs import define, field


@define(eq=False)
class _Flight:
    """A compile that is under way in ``thread``."""

    thread: int = field(factory=threading.get_ident)
    done: threading.Event = field(factory=threading.Event)
    error: Exception | None = None


@define(eq=False)
class Entry:
    """The plans of one key, that which ran last first: one for each way that guards went."""

    key: Hashable
    plans: tuple = ()
    used: int = 0  # the number of the call that used it last
    gone: bool = False  # no longer in the cache
    flight: _Flight | None = None
    lock: threading.Lock = field(factory=threading.Lock, repr=False)  # held for a few lines only


class PlanCache:
    """Entries by key, at most ``most``: that which was not used for longest goes first.

    ``compiles``, ``failures`` and ``evictions`` are exact; ``on_drop()`` is called when an entry
    has gone.
    """

    def __init__(self, most: int, plans_each: int = 16, on_drop: Callable = lambda: None):
        self.most, self.plans_each, self.on_drop = most, plans_each, on_drop
        self.entries: dict[Hashable, Entry] = {}
        self.lock = threading.Lock()  # held for a few lines only
        self.compiles = self.failures = self.evictions = 0

    def entry(self, key: Hashable) -> Entry:
        """The entry of a key, a new one if there is none."""
        found = self.entries.get(key)
        # setdefault is one step for all threads: there is one entry for a key
        return self.entries.setdefault(key, Entry(key)) if found is None else found

    def grow(self, entry: Entry, known: tuple, make: Callable) -> bool:
        """Add the plan ``make()`` to an entry whose plans were ``known``, unless that has changed;
        wait if another thread does so. Raises what ``make`` raises, here and in those who wait.

        False if this very thread does so already: whoever it is would wait for itself.
        """
        with entry.lock:
            if entry.plans is not known or entry.gone:
                return True
            flight, mine = entry.flight, entry.flight is None
            if mine:
                flight = entry.flight = _Flight()
        if mine:
            self._compile(entry, known, make, flight)
            return True
        if flight.thread == threading.get_ident():
            return False
        flight.done.wait()
        if flight.error is not None:
            raise flight.error
        return True

    def _compile(self, entry: Entry, known: tuple, make: Callable, flight: _Flight) -> None:
        """``grow`` in the thread that does it."""
        plans = known
        try:
            plans = (make(), *known[: self.plans_each - 1])
        except BaseException as error:
            # KeyboardInterrupt belongs to this thread: another one goes on and compiles
            flight.error = error if isinstance(error, Exception) else None
            raise
        finally:
            with self.lock:
                self.compiles += plans is not known
                self.failures += plans is known
            with entry.lock:
                entry.plans, entry.flight = plans, None
                entry.gone = not plans
            if plans:
                self._make_room(entry)
            else:
                self._remove(entry)
            flight.done.set()

    def _make_room(self, new: Entry) -> None:
        """Let those go that were not used for longest."""
        while True:
            # those without a plan are about to be compiled, by whoever has asked for them
            held = [entry for entry in list(self.entries.values()) if entry.plans]
            others = [entry for entry in held if entry is not new and entry.flight is None]
            if len(held) <= self.most or not others:
                return
            if self._remove(min(others, key=lambda entry: entry.used)):
                with self.lock:
                    self.evictions += 1

    def _remove(self, entry: Entry) -> bool:
        """Take an entry out; False if it is out, or is being compiled again."""
        with entry.lock:
            if entry.flight is not None:
                return False
            entry.gone = True
        with self.lock:
            found = self.entries.get(entry.key) is entry
            if found:
                del self.entries[entry.key]
        self.on_drop()
        return found

    def clear(self) -> None:
        """Forget all plans but for those that are being compiled."""
        for entry in list(self.entries.values()):
            self._remove(entry)

"""State of the process that letir changes during a call, and restores even if it is interrupted.

A KeyboardInterrupt may come at any line, even while the state is being restored. Therefore a call
adds each change, with its own frame, to a list before making it. Every public function calls
``restore_abandoned``, which undoes the changes of frames that have ended. After a fork, the child
process undoes the changes of the parent's other threads.
"""

import collections
import functools
import gc
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

import numpy as np
from attrs import define

_P = ParamSpec("_P")
_R = TypeVar("_R")


# ---- changes ----


class TemporaryChange:
    """A context manager whose ``make`` changes state of the process and whose ``undo`` restores it.

    ``undo`` may be called before ``make`` has come to its end, or again after an interrupt. The
    result of ``make`` is the value of the context.
    """

    __slots__ = ("frame", "thread")
    is_of_a_call = True  # of a call that ends before the calls of earlier changes

    def make(self) -> Any:
        """Change the state."""
        raise NotImplementedError

    def undo(self) -> None:
        """Restore what has been changed so far."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        if _changes:
            restore_abandoned()
        self.thread = threading.get_ident()
        self.frame: FrameType | None = sys._getframe(1)
        try:
            _changes.append(self)
            return self.make()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        # without a frame it counts as abandoned, should an interrupt come in the next lines; and a
        # frame that is kept would keep its variables alive
        self.frame = None
        if _changes and _changes[-1] is not self:
            self._exit_inner()
        self.undo()
        try:  # noqa: SIM105  ``suppress`` is slower
            _changes.remove(self)
        except ValueError:  # undone a second time
            pass

    def _exit_inner(self) -> None:
        """Undo later changes whose end was interrupted: they would bring back this one."""
        if self in _changes:
            for change in reversed(_changes[_changes.index(self) + 1 :]):
                if change.thread == self.thread and self.encloses(change):
                    change.__exit__()

    def encloses(self, later: "TemporaryChange") -> bool:
        """Whether a later change of this thread ends before this one ends."""
        return later.is_of_a_call

    def is_under_way(self) -> bool:
        """Whether the change still applies; called for changes that do not belong to a call."""
        return False


_changes: list[TemporaryChange] = []  # in the order in which they were made, of all threads


def latest_change() -> TemporaryChange | None:
    """The latest change of this thread that is not undone, if it is the latest of all threads."""
    last = _changes[-1:]
    return last[0] if last and last[0].thread == threading.get_ident() else None


def restore_abandoned() -> None:
    """Undo the changes of this thread whose calls have ended without undoing them."""
    if not _changes:
        return
    thread = threading.get_ident()
    for change in reversed(_changes.copy()):
        if change.thread != thread:
            continue
        if change.is_of_a_call:  # no method: this runs several times in a recording
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame is not change.frame:
                frame = frame.f_back
            if frame is not None:
                return  # its call is running, and so are the calls of the changes before it
        elif change.is_under_way():
            continue
        change.__exit__()


# ---- forks ----

_process = [os.getpid()]  # to which the locks belong
_locks: WeakSet = WeakSet()
_renewed: WeakSet = WeakSet()  # objects whose method ``renew`` is called in the child


def new_lock(kind: Callable[[], Any] = threading.Lock) -> Any:
    """A lock that is free in a forked child process, even if a thread held it in the parent."""
    lock = kind()
    _locks.add(lock)
    return lock


def renew_after_fork(owner: Any) -> None:
    """Call ``owner.renew()`` in the child of each fork."""
    _renewed.add(owner)


def is_being_forked() -> bool:
    """Whether this is the child of a fork in which no lock may be taken yet.

    Modules that were loaded before letir run their own code first, as ``random`` does.
    """
    return os.getpid() != _process[0]


def _reset_in_child() -> None:
    """Reset locks and other state in the child of a fork, in which only one thread exists."""
    _process[0] = os.getpid()
    for lock in list(_locks):
        lock._at_fork_reinit()  # as Python's own modules do with their locks
    thread = threading.get_ident()
    for change in reversed(_changes.copy()):
        if change.thread != thread:
            change.__exit__()
    for owner in list(_renewed):
        owner.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)


# ---- the garbage collector ----

_lock = new_lock()
_pauses: set["paused_gc"] = set()  # under way
_was_enabled = False
_large = 0  # the number of large programs built so far
_MAX_YOUNG_OBJECTS = 50_000  # objects that a collection of the youngest generation may traverse
_COLLECT_EVERY = 8


class paused_gc(TemporaryChange):
    """No cyclic garbage collection, in all threads, while a large program is built.

    Collections would double the time, and find nothing. The outermost exit restores the former
    state. Also a decorator; nested uses cost one test.
    """

    __slots__ = ()

    def make(self) -> None:
        global _was_enabled  # noqa: PLW0603  the collector is one for the process, and so is its pause
        with _lock:
            if not _pauses:
                _was_enabled = gc.isenabled()  # the user may have switched it off
            _pauses.add(self)
            gc.disable()

    def undo(self) -> None:
        with _lock:
            if self not in _pauses:
                return
            if len(_pauses) == 1 and _was_enabled:
                if gc.get_count()[0] >= _MAX_YOUNG_OBJECTS:
                    _move_to_oldest_generation()
                gc.enable()
            _pauses.remove(self)

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def paused(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if _pauses:  # another thread may just have ended its pause, which only costs time
                if _changes:
                    restore_abandoned()
                return function(*args, **kwargs)
            with paused_gc():
                return function(*args, **kwargs)

        return paused


def _move_to_oldest_generation() -> None:
    """Move many new objects to the oldest generation, which the next collection does not traverse.

    Occasionally they stay in the youngest one, so that the user's garbage is found eventually.
    """
    global _large  # noqa: PLW0603
    # unfreeze would also thaw objects frozen by the user
    if gc.get_freeze_count():
        return
    _large += 1
    if _large % _COLLECT_EVERY:
        # into the permanent generation and from there into the oldest: no object is walked
        gc.freeze()
        gc.unfreeze()
    else:
        gc.collect(0)


# ---- floating-point errors ----

try:
    from numpy._core.umath import _extobj_contextvar as ERROR_STATE
    from numpy._core.umath import _make_extobj as make_error_state
except ImportError:  # other versions of NumPy
    ERROR_STATE = make_error_state = None  # type: ignore[misc]  # NumPy declares the names as final


class float_errors(TemporaryChange):
    """The context ``np.errstate(**modes)``, whose end an interrupt cannot prevent."""

    __slots__ = ("before", "modes")

    def __init__(self, **modes: str):
        self.modes: dict[str, Any] = modes  # Any: to NumPy's stubs each word is a type of its own
        self.before: Any = np.geterr() if ERROR_STATE is None else ERROR_STATE.get()

    def make(self) -> None:
        if ERROR_STATE is None:
            np.seterr(**self.modes)
        else:
            ERROR_STATE.set(make_error_state(**self.modes))

    def undo(self) -> None:
        if ERROR_STATE is None:
            np.seterr(**self.before)
        else:
            ERROR_STATE.set(self.before)


# ---- exchanges of functions: stand-ins for originals, and back ----


class NamesSite:
    """A dict, such as the globals of a module, in which names are bound to originals.

    ``old`` and ``new``: name -> original, and name -> stand-in. ``added``: name -> stand-in for
    names of builtins, which the dict does not contain otherwise.
    """

    def __init__(self, space: dict, old: dict, new: dict, added: dict | None = None) -> None:
        self.space, self.added = space, added or {}
        self.steps = {True: (old, new), False: (new, old)}
        # a single call in C; it returns a tuple only for two or more names
        self.read = operator.itemgetter(*new, *new) if new else None
        self.rows = {True: tuple([*old.values()] * 2), False: tuple([*new.values()] * 2)}

    def exchange(self, is_start: bool) -> None:
        """Bind the names to stand-ins or originals, except names that the user has rebound."""
        space, (before, after) = self.space, self.steps[is_start]
        try:
            if self.read is not None and self.read(space) == self.rows[is_start]:
                space.update(after)  # the usual case
            elif self.read is not None:
                self._exchange_some(before, after)
        except (KeyError, ValueError):  # a name is missing, or is bound to an array now
            self._exchange_some(before, after)
        for name, stand_in in self.added.items():
            if is_start:
                space.setdefault(name, stand_in)
            elif space.get(name) is stand_in:
                del space[name]

    def _exchange_some(self, before: dict, after: dict) -> None:
        for name, value in after.items():
            if self.space.get(name) is before[name]:
                self.space[name] = value


class ModuleSites:
    """The sites in the globals of users' modules, hundreds in a process with many packages.

    Each recording exchanges all of them, so the usual case, in which no name has been rebound,
    consists of a few loops in C.
    """

    def __init__(self) -> None:
        self.assign(())

    def assign(self, sites: Iterable) -> None:
        """Make these all the sites; those of members of classes are few."""
        self.sites = list(sites)
        self.members = [site for site in self.sites if type(site) is MemberSite]
        named = [site for site in self.sites if type(site) is NamesSite]
        replacing = [site for site in named if site.read is not None]
        self.replaced = [site.space for site in replacing]
        self.read = [site.read for site in replacing]
        self.rows = {key: [site.rows[key] for site in replacing] for key in (True, False)}
        self.values = {key: [site.steps[key][1] for site in replacing] for key in (True, False)}
        added = [(site.space, *item) for site in named for item in site.added.items()]
        self.extended, self.names, self.stand_ins = ([row[i] for row in added] for i in range(3))

    def add(self, site: "NamesSite | MemberSite") -> None:
        """Add a site whose stand-ins are in place."""
        self.assign([*self.sites, site])

    def exchange(self, is_start: bool) -> None:
        """Bind the names to stand-ins or originals, except names that the user has rebound."""
        try:
            is_usual = list(map(operator.call, self.read, self.replaced)) == self.rows[is_start]
            if is_start:
                is_usual &= not any(map(operator.contains, self.extended, self.names))
            else:
                current = map(operator.getitem, self.extended, self.names)
                is_usual &= all(map(operator.is_, current, self.stand_ins))
        except (KeyError, ValueError):  # a name is missing, or is bound to an array now
            is_usual = False
        if not is_usual:
            for site in self.sites:
                site.exchange(is_start)
            return
        for member in self.members:
            member.exchange(is_start)
        _call_each(dict.update, self.replaced, self.values[is_start])
        if is_start:
            _call_each(operator.setitem, self.extended, self.names, self.stand_ins)
        else:
            _call_each(operator.delitem, self.extended, self.names)


def _call_each(function: Callable, *columns: list) -> None:
    """Call a function of C's with each row of arguments, in a loop in C."""
    collections.deque(map(function, *columns), maxlen=0)


@define(eq=False)
class Site:
    """A place that holds a stand-in during a recording, for example an attribute."""

    owner: Any
    name: Any
    old: Any
    new: Any

    def exchange(self, is_start: bool) -> None:
        """Put the stand-in or the original there, unless the user has replaced it."""
        before, after = (self.old, self.new) if is_start else (self.new, self.old)
        if self.current() is before:
            self.put(after)

    def current(self) -> Any:
        """What the place holds, None if there is no such place any more."""
        raise NotImplementedError

    def put(self, value: Any) -> None:
        """Store a value there."""
        raise NotImplementedError


class PlaceSite(Site):
    """An attribute of an object: the contents of a cell, the defaults of a function, a slot."""

    def current(self) -> Any:
        return getattr(self.owner, self.name, None)

    def put(self, value: Any) -> None:
        object.__setattr__(self.owner, self.name, value)  # also of a frozen object


class MemberSite(Site):
    """A member of a class, as the class itself holds it: not bound to an object."""

    def current(self) -> Any:
        return vars(self.owner).get(self.name)

    def put(self, value: Any) -> None:
        setattr(self.owner, self.name, value)

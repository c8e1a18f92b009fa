"""State of the process that letir changes during a call, and restores even if it is interrupted.

A KeyboardInterrupt may come at any line, even while the state is being restored. Therefore a call
adds each change, with its own frame, to a list before making it. Every public function calls
``restore_abandoned``, which undoes the changes of frames that have ended. After a fork, the child
process undoes the changes of the parent's other threads.
"""

import functools
import gc
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

_P = ParamSpec("_P")
_R = TypeVar("_R")


# ---- changes ----


class TemporaryChange:
    """A context manager whose ``make`` changes state of the process and whose ``undo`` restores it.

    ``undo`` may be called before ``make`` has come to its end, or again after an interrupt. The
    result of ``make`` is the value of the context.
    """

    __slots__ = ("frame", "thread")

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
        self.undo()
        if self in _changes:
            _changes.remove(self)
        self.frame = None  # a frame that is kept would keep its variables alive


_changes: list[TemporaryChange] = []  # in the order in which they were made, of all threads


def restore_abandoned() -> None:
    """Undo the changes of this thread whose calls have ended without undoing them."""
    if not _changes:
        return
    thread = threading.get_ident()
    for change in reversed(_changes.copy()):
        if change.thread != thread:
            continue
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not change.frame:
            frame = frame.f_back
        if frame is not None:
            return  # its call is running, and so are the calls of the changes before it
        change.__exit__()


# ---- forks ----

_locks: WeakSet = WeakSet()
_renewed: WeakSet = WeakSet()  # objects whose method ``renew`` is called in the child


def new_lock(kind: Callable[[], Any] = threading.Lock) -> Any:
    """A lock that is free in the child of a fork, whichever thread held it in the parent."""
    lock = kind()
    _locks.add(lock)
    return lock


def renew_after_fork(owner: Any) -> None:
    """Call ``owner.renew()`` in the child of each fork."""
    _renewed.add(owner)


def _renew() -> None:
    """Reset locks and other state in the child of a fork, in which only one thread exists."""
    for lock in list(_locks):
        lock._at_fork_reinit()  # as Python's own modules do with their locks
    thread = threading.get_ident()
    for change in reversed(_changes.copy()):
        if change.thread != thread:
            change.__exit__()
    for owner in list(_renewed):
        owner.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


# ---- the garbage collector ----

_lock = new_lock()
_pauses: set["paused_gc"] = set()  # under way
_was_enabled = False
_large = 0  # the number of large programs built so far
_MANY = 50_000  # objects that a collection of the youngest generation may traverse
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
                if gc.get_count()[0] >= _MANY:
                    _age()
                gc.enable()
            _pauses.remove(self)

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def paused(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if _pauses:  # another thread may end its pause meanwhile, which only costs time
                restore_abandoned()
                return function(*args, **kwargs)
            with paused_gc():
                return function(*args, **kwargs)

        return paused


def _age() -> None:
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

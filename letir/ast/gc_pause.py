"""``paused_gc``: no cyclic garbage collection while a large program is built.

Collections would double the time, and find nothing.
"""

import functools
import gc
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_lock = threading.Lock()
_depth = 0
_was_enabled = False
_large = 0  # the number of large programs built so far
_MANY = 50_000  # objects that a collection of the youngest generation may traverse
_COLLECT_EVERY = 8


class paused_gc:
    """No automatic collection inside, in any thread; the outermost exit restores what was found.

    Also a decorator. A decorated function that is called where it is paused already only asks.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        global _depth, _was_enabled  # noqa: PLW0603  the collector is one for the process, and so is its pause
        with _lock:
            if _depth == 0:
                _was_enabled = gc.isenabled()  # the user may have switched it off
                gc.disable()
            _depth += 1

    def __exit__(self, *error) -> None:
        global _depth  # noqa: PLW0603
        with _lock:
            _depth -= 1
            if _depth == 0 and _was_enabled:
                if gc.get_count()[0] >= _MANY:
                    _age()
                gc.enable()

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def paused(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if _depth:  # another thread may end its pause meanwhile: that costs time, no more
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return paused


def _age() -> None:
    """Move many new objects to the oldest generation, which the next collection does not traverse.

    Now and then they stay, so that garbage made by the user is found eventually.
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

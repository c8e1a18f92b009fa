"""``paused_gc``: no cyclic garbage collection while a large program is built.

Collections would double the time, and find nothing.
"""

import gc
import threading
from contextlib import contextmanager

_lock = threading.Lock()
_depth = 0
_was_enabled = False
_large = 0  # the number of large programs built so far
_MANY = 50_000  # objects that a collection of the youngest generation may traverse
_COLLECT_EVERY = 8


@contextmanager
def paused_gc():
    """No automatic collection inside, in any thread; the outermost exit restores what was found."""
    global _depth, _was_enabled  # noqa: PLW0603  the collector is one for the process, and so is its pause
    with _lock:
        if _depth == 0:
            _was_enabled = gc.isenabled()  # the user may have switched it off
            gc.disable()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _was_enabled:
                _age()
                gc.enable()


def _age() -> None:
    """Move many new objects to the oldest generation, which the next collection does not traverse.

    Now and then they stay, so that garbage made by the user is found eventually.
    """
    global _large  # noqa: PLW0603
    # unfreeze would also thaw objects frozen by the user
    if gc.get_count()[0] < _MANY or gc.get_freeze_count():
        return
    _large += 1
    if _large % _COLLECT_EVERY:
        # into the permanent generation and from there into the oldest: no object is walked
        gc.freeze()
        gc.unfreeze()

"""Pausing the cyclic garbage collector while a large program is made: it doubles the time and finds
nothing.
"""

import gc
import threading
from contextlib import contextmanager

_lock = threading.Lock()
_depth = 0
_was_enabled = False
_large = 0  # how many large programs were made
_MANY = 50_000  # objects: what one collection of the youngest generation may look at
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
    """Move what was made to the oldest generation, if it is much: the next collection would walk
    through all of it.

    Now and then it does, so that garbage of the user's is not passed over for ever.
    """
    global _large  # noqa: PLW0603
    # what the user has frozen would be thawed by unfreeze
    if gc.get_count()[0] < _MANY or gc.get_freeze_count():
        return
    _large += 1
    if _large % _COLLECT_EVERY:
        # into the permanent generation and from there into the oldest: no object is walked
        gc.freeze()
        gc.unfreeze()

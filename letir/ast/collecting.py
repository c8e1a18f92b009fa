"""Pausing the cyclic garbage collector while a large program is made: it doubles the time and finds nothing."""

import gc
import threading
from contextlib import contextmanager

_lock = threading.Lock()
_depth = 0
_was_enabled = False


@contextmanager
def paused_gc():
    """No automatic collection inside, in any thread; the outermost exit restores what was found."""
    global _depth, _was_enabled  # noqa: PLW0603  the collector is one for the process, and so is its pause
    with _lock:
        if _depth == 0:
            _was_enabled = gc.isenabled()
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
    """Move what was made to the oldest generation, so that the next collection does not walk through all of it."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()

"""Run a function where recursion would fail: on a small stack, with Python's own limit."""

import sys
import threading
from collections.abc import Callable
from typing import Any

_SMALL_STACK = 256 * 1024
_DEFAULT_LIMIT = 1000


def on_a_small_stack(act: Callable[[], Any]) -> Any:
    """The result of ``act()`` in a thread with a stack of 256 KiB and 1,000 calls.

    Libraries that other tests use raise the limit of the process, and leave it raised.
    """
    answers: list[Any] = []
    limit, size = sys.getrecursionlimit(), threading.stack_size(_SMALL_STACK)
    sys.setrecursionlimit(_DEFAULT_LIMIT)
    try:
        thread = threading.Thread(target=lambda: answers.append(act()))
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    (answer,) = answers
    return answer

"""Tests that run in a thread of their own."""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def in_own_thread(test: Callable) -> Callable:
    """A test that runs in a thread of its own, since its trace function raises exceptions.

    Raised at the first line of an ``except`` block, they make CPython keep the caught exception as
    the thread's current one (``sys.exc_info``) for good.
    """

    @functools.wraps(test)
    def run(*args, **kwargs):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(test, *args, **kwargs).result()

    return run

"""Calls that end for want of memory or stack leave the process as it was; the next one works."""

import inspect
import sys

import numpy as np
import pytest

import letir as lt
from tests.hazards.public_calls import ACTIONS, changed, state_of_process

EACH = pytest.mark.parametrize("name", ACTIONS)


def results_while(failing, action, kind):
    """How often an action raises ``kind``: in the context ``failing(0)``, in ``failing(1)`` ...

    Raises AssertionError if a failure changes the process, or the result of the next call.
    """
    for _ in range(3):  # caches are filled
        expected = action()
    before = state_of_process()
    for n in range(2000):
        try:
            with failing(n):
                found = action()
        except kind:
            found = None
        assert changed(before) == {}, n
        np.testing.assert_equal(action(), expected, str(n))
        if found is not None:
            np.testing.assert_equal(found, expected)
            return n
    raise AssertionError("it never succeeds")


@EACH
def test_a_failed_allocation_leaves_the_process_as_it_was(name):
    pytest.importorskip("llvmlite")
    from tests.failing_allocations import allocations

    failures = results_while(allocations, ACTIONS[name], MemoryError)

    assert failures or name == "parse"


class LowLimit:
    """A context with a limit of recursion a few calls beyond the caller.

    One call more for each step, then five: Python 3.12 and later do not count calls of C code.
    """

    def __init__(self, steps: int):
        self.limit = len(inspect.stack(0)) + 4 + steps + 4 * max(steps - 10, 0)

    def __enter__(self) -> None:
        self.before = sys.getrecursionlimit()
        sys.setrecursionlimit(self.limit)

    def __exit__(self, *_: object) -> None:
        sys.setrecursionlimit(self.before)


@EACH
def test_a_low_recursion_limit_leaves_the_process_as_it_was(name):
    kinds = (RecursionError, lt.ParseError)  # "nested too deeply for the rest of Python's stack"
    assert results_while(LowLimit, ACTIONS[name], kinds) > 1

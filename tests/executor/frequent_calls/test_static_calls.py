"""Frequent calls with static arguments."""

import numpy as np

import letir as lt
from letir.executor.executor import _CALLS_BY_KEY
from letir.plan.plan import Miss
from letir.testing import assert_same

CALLS = 4 * _CALLS_BY_KEY


def scaled(x, power, *, shape=(2, 3), kind="sum"):
    """A sum of powers, in a shape."""
    return (x**power).reshape(shape) if kind == "shape" else (x**power).sum() * np.ones(shape)


def test_static_arguments_have_quick_calls():
    fast = lt.jit(scaled, static_argnums=1, static_argnames=("shape", "kind"))
    x = np.arange(6.0)
    given = [
        ((x, 2), {}),
        ((x, 2), {"shape": (3, 2)}),
        ((x, 2.0), {"shape": (3, 2), "kind": "shape"}),
        ((x, True), {"shape": (6,), "kind": "shape"}),
        ((x, 1), {"shape": (6,), "kind": "shape"}),
    ]
    for _ in range(CALLS):
        for args, kwargs in given:
            assert_same(scaled(*args, **kwargs), fast(*args, **kwargs))

    assert len(given) == len(fast.__letir_executor__.quick) == fast.counters["compiles"]
    assert Miss is fast.__letir_executor__.quick[0].run((x, 3), {"shape": (6,), "kind": "shape"})
    assert_same(scaled(x, 3), fast(x, 3))


class Setting:
    """A setting that is equal to others with the same value."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return hash(self.value)


def test_static_objects_that_may_change_have_no_quick_call():
    fast = lt.jit(lambda x, s: x * s.value, static_argnums=1)
    for _ in range(CALLS):
        fast(np.ones(3), Setting(2.0))

    assert not fast.__letir_executor__.quick
    assert_same(np.full(3, 3.0), fast(np.ones(3), Setting(3.0)))

"""A trace keeps neither its arguments nor intermediate values alive [B3].

The cyclic collector is off: nothing may be in a reference cycle.
"""

import gc
import weakref

import numpy as np
import pytest

import letir as lt

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_program_does_not_keep_its_arguments(no_collector):
    """[B3]"""
    x = np.ones(3)
    watched = weakref.ref(x)
    f = lt.trace(lambda x: (np.sin(x) * 2.0).sum(), x)
    del x

    assert watched() is None
    assert 3 == len(f)


def test_a_trace_does_not_keep_values_that_the_function_drops(no_collector):
    """[B3]"""
    alive = []

    def program(x):
        y = np.sin(x)
        watched = weakref.ref(y.held_value)
        y = y * 2.0
        alive.append(watched() is not None)
        return y

    lt.trace(program, X)

    assert [False] == alive


def test_a_trace_does_not_keep_its_traced_values(no_collector):
    """[B3]"""
    watched = []

    def program(x):
        y = np.sin(x)
        watched.append(weakref.ref(y))
        return y + 1.0

    lt.trace(program, X)

    assert watched[0]() is None


def test_a_failed_trace_keeps_nothing(no_collector):
    """[B3]"""
    x = np.ones(3)
    watched = weakref.ref(x)

    def program(x):
        raise RuntimeError(np.sin(x).shape)

    with pytest.raises(RuntimeError):
        lt.trace(program, x)
    del x

    assert watched() is None

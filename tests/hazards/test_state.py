"""Hazards: state of a function other than its arguments, and shared memory [B1]."""

import itertools
import os
import random
import threading
import time
import types

import numpy as np
import pytest

import letir as lt
from letir.errors import EscapedTracerError, TraceError
from letir.testing import assert_same

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, -1.0, 2.0])
LONG = np.arange(5.0)
M = np.array([[1.0, 2.0], [3.0, 4.0]])
GUARD, SHAPE, REFUSED = "GuardError", "ShapeError", "TraceError"

state = types.SimpleNamespace(rate=2.0, table=np.ones(3), layers=[X, Y], names={"a": X})
counter = itertools.count()
RATE = 2.0


class Model:
    """A class attribute, an instance attribute, and a method."""

    scale = 3.0

    def __init__(self):
        self.bias = 1.0

    def __call__(self, x):
        return x * self.scale + self.bias


model = Model()


def helper(x):
    return x * 2


def closure():
    rate = 2.0

    def program(x):
        return x * rate

    def change():
        nonlocal rate
        rate = 5.0

    return program, change


def change_global():
    global RATE  # noqa: PLW0603
    RATE = 7.0


def change_helper():
    global helper  # noqa: PLW0603
    helper = np.negative


def loop_variable():
    programs = [lambda x: x * i for i in range(3)]  # noqa: B023  the hazard
    return programs[0]


scaled, change_scaled = closure()
CHANGED_LATER = {
    "a global number": (lambda x: x * RATE, change_global),
    "a global function": (lambda x: helper(x), change_helper),  # noqa: PLW0108
    "an attribute": (lambda x: x * state.rate, lambda: setattr(state, "rate", 9.0)),
    "an array in place": (lambda x: x + state.table, lambda: state.table.fill(5.0)),
    "an array anew": (lambda x: x - state.table, lambda: setattr(state, "table", X * 7)),
    "a list": (lambda x: x @ sum(state.layers), lambda: state.layers.append(X)),
    "a dict": (lambda x: x * state.names["a"], lambda: state.names.update(a=Y)),
    "a variable around it": (scaled, change_scaled),
    "a class attribute": (lambda x: model(x), lambda: setattr(Model, "scale", 4.0)),  # noqa: PLW0108
    "an attribute of self": (model.__call__, lambda: setattr(model, "bias", 4.0)),
    "the environment": (
        lambda x: x * len(os.environ.get("LETIR_HAZARD", "")) + 1,
        lambda: os.environ.update(LETIR_HAZARD="abc"),
    ),
}


@pytest.mark.parametrize("name", CHANGED_LATER)
def test_state_is_replayed_as_it_was_recorded(name):
    """[B1] The program has a copy: a replay returns what the function returned then."""
    f, change = CHANGED_LATER[name]
    program, expected = lt.trace(f, X), f(Y)

    change()

    assert_same(expected, program(Y))
    assert not np.array_equal(expected, f(Y))


def test_an_array_changed_while_recording_contributes_both_values():
    table = np.ones(3)

    def program(x):
        first = x + table
        table[0] = 5.0
        second = x * table
        table[0] = 1.0
        return first, second

    assert_same(program(Y), lt.trace(program, X)(Y))


def writes_counter(x):
    state.calls = getattr(state, "calls", 0) + 1
    return x * state.calls


def drawn(x):
    return x * random.random()


IMPURE = {
    "a counter": lambda x: x * next(counter),
    "an attribute": writes_counter,
    "the clock": lambda x: x * time.time(),
    "a table that changes": lambda x: x + np.add(state.table, 1, out=state.table),
    "a list that grows": lambda x: x * len(state.layers.append(X) or state.layers),
    "an order of a set": lambda x: x * next(counter) if {1} else x,
}


@pytest.mark.parametrize("name", IMPURE)
def test_check_finds_what_differs_between_calls(name):
    with pytest.raises(TraceError, match="it reads what changes between calls"):
        lt.trace(IMPURE[name], X, check=True)


@pytest.mark.parametrize("draws", [drawn, lambda x: x * np.random.rand()])
def test_random_numbers_are_refused(draws):
    """[B9]"""
    with pytest.raises(TraceError, match=r"letir\.random"):
        lt.trace(draws, X)


# ---- escaped values ----


def test_a_traced_value_kept_after_the_trace_is_an_escaped_tracer():
    kept = []
    lt.trace(lambda x: kept.append(x * 2) or x, X)

    with pytest.raises(EscapedTracerError, match=r"test_state\.py"):
        kept[0] + 1


def test_a_generator_that_runs_on_after_the_trace_is_an_error():
    kept = []
    lt.trace(lambda x: kept.append(v * 2 for v in x) or x, X)

    with pytest.raises(EscapedTracerError, match=r"test_state\.py"):
        next(kept[0])


def test_a_traced_value_used_in_another_thread_is_refused():
    found = []

    def ask(x):
        try:
            found.append(x * 2)
        except EscapedTracerError as error:
            found.append(error)

    def program(x):
        thread = threading.Thread(target=ask, args=(x,))
        thread.start()
        thread.join()
        return x

    with pytest.raises(TraceError, match="another thread"):
        lt.trace(program, X)

    assert isinstance(found[0], EscapedTracerError)


def test_a_traced_value_in_a_cache_is_refused_by_the_next_trace():
    cache = {}

    def program(x):
        if "rows" not in cache:
            cache["rows"] = x * 2
        return cache["rows"] + x

    lt.trace(program, X)

    with pytest.raises(EscapedTracerError, match="a trace that is over"):
        lt.trace(program, Y)


# ---- undetected ----


def test_one_array_passed_twice_is_two_arguments():
    """[B1]"""
    f = lt.trace(lambda x, y: x if x is y else x * y, X, X)

    assert_same(Y * Y, f(Y, Y))


def test_the_text_of_a_traced_value_is_that_of_the_array_and_guarded():
    def program(x):
        return x * 2 if type(x) is np.ndarray and str(x).startswith("[") else x

    fn = lt.trace(program, X)

    assert_same(X * 2, fn(X))
    with pytest.raises(lt.GuardError):
        fn(Y)

"""State that a function changes on one path, or for one kind of arguments, and reads on another.

Also state in namespaces, context variables, variables of threads and other objects of libraries.
"""

import argparse
import collections
import contextvars
import queue
import threading
import types

import numpy as np
import pytest

from letir import jit
from letir.testing import assert_same

ONES = np.ones(2)


def latch():
    state = {"phase": 0}

    def f(x, s):
        if s > 1:
            state["phase"] = 1
        return x * (2 if state["phase"] else 1)

    return f


def counter():
    count = 0

    def f(x, s):
        nonlocal count
        if s > 1:
            count += 1
            return x
        return x * count

    return f


def growing_list():
    seen = []

    def f(x, s):
        if s > 1:
            seen.append("large")
            return x
        return x * len(seen)

    return f


def growing_set():
    seen = set()

    def f(x, s):
        if s > 1:
            seen.add("large")
            return x
        return x * (2 if "large" in seen else 1)

    return f


def replaced_function():
    class Rule:
        def apply(self, x):
            return x

    rule = Rule()

    def f(x, s):
        if s > 1:
            Rule.apply = lambda self, x: 3 * x
        return rule.apply(x)

    return f


def caught_error():
    failures = [0]

    def f(x, s):
        try:
            x = x / int(s > 1)
        except ZeroDivisionError:
            failures[0] += 1
        return x + failures[0]

    return f


def cleared_list():
    names = ["a", "b"]

    def f(x, s):
        if s > 1:
            names.clear()
            return x
        return x * len(names)

    return f


@pytest.mark.parametrize(
    "make",
    [latch, counter, growing_list, growing_set, replaced_function, caught_error, cleared_list],
)
def test_what_one_path_changes_another_one_reads(make):
    plain, jitted = make(), jit(make())

    for s in (0.5, 2.0, 0.5, 0.5, 3.0, 0.5):
        assert plain(1.0, s) == jitted(1.0, s)


def test_what_calls_with_one_option_change_calls_with_another_read():
    def make():
        state = {"n": 0}

        def f(x, option):
            if option == "add":
                state["n"] += 1
                return x
            return x * state["n"]

        return f

    plain, jitted = make(), jit(make())

    for option in ("get", "add", "get", "add", "get"):
        assert plain(2.0, option) == jitted(2.0, option)


def test_what_calls_with_one_size_change_calls_with_another_read():
    def make():
        long = [0]

        def f(x):
            if len(x) > 3:
                long[0] += 1
                return x.sum()
            return x.sum() * long[0]

        return f

    plain, jitted = make(), jit(make())

    for n in (2, 5, 2, 5, 2):
        assert plain(np.ones(n)) == jitted(np.ones(n))


@pytest.mark.filterwarnings("ignore:.*was compiled")
@pytest.mark.parametrize("is_counted", [0, 1])
def test_what_a_call_without_a_plan_changes_plans_read(is_counted):
    """Beyond four plans, calls whose guards fail wait for a plan and run as Python."""

    def make():
        calls = {"all": 0, "failed": 0}

        def f(x, n):
            calls["all"] += is_counted
            try:
                return x / [1, 2, 4, 8, 16][n] + calls["failed"]
            except IndexError:
                calls["failed"] += 1
                return -x

        return f

    plain, jitted = make(), jit(make())

    for n in (0, 1, 2, 3, 0, 9, 0, 1, 9, 9, 2, 3, 0):
        assert plain(2.0, n) == jitted(2.0, n)


def test_a_counter_of_one_path_that_no_path_reads_leaves_the_other_path_compiled():
    calls = {"n": 0}

    @jit
    def f(x, s):
        if s > 1:
            calls["n"] += 1
            return x
        return -x

    for _ in range(20):
        assert (1.0, -1.0) == (f(1.0, 2.0), f(1.0, 0.5))
    assert calls["n"] == 20
    assert f.counters["compiles"] <= 3
    assert f.debug_state().plans


def test_a_cache_that_gets_more_keys_keeps_its_plans():
    tables = {}

    @jit
    def f(x, kind):
        if (kind,) not in tables:
            tables[kind,] = np.arange(float(len(kind)))
        return x * tables[kind,].sum()

    for _ in range(2):
        assert [0.0, 1.0, 3.0] == [f(1.0, kind) for kind in ("a", "bb", "ccc")]
    assert f.counters["compiles"] == 3


VARIABLE = contextvars.ContextVar("depth", default=0)
OF_THREAD = threading.local()


def of_namespace():
    state = types.SimpleNamespace(on=False)

    def f(x):
        state.on = not state.on
        return x if state.on else -x

    return f


def of_arguments():
    options = argparse.Namespace(rate=1.0)

    def f(x):
        options.rate *= 0.5
        return x * options.rate

    return f


def of_context_variable():
    VARIABLE.set(0)

    def f(x):
        VARIABLE.set(VARIABLE.get() + 1)
        return x * VARIABLE.get()

    return f


def of_variable_of_threads():
    OF_THREAD.n = 0

    def f(x):
        OF_THREAD.n += 1
        return x * OF_THREAD.n

    return f


def of_users_dict():
    table = collections.UserDict(n=0)

    def f(x):
        table["n"] += 1
        return x * table["n"]

    return f


def of_queue():
    jobs = queue.Queue()

    def f(x):
        jobs.put(1)
        return x * jobs.qsize()

    return f


@pytest.mark.parametrize(
    "make",
    [
        *(of_namespace, of_arguments, of_context_variable, of_variable_of_threads),
        *(of_users_dict, of_queue),
    ],
)
def test_state_in_objects_of_libraries_moves_on(make):
    plain = make()
    expected = [plain(ONES) for _ in range(4)]
    jitted = jit(make())

    assert_same(expected, [jitted(ONES) for _ in range(4)])

"""State that a jitted function changes in ways that few programs use: it is called as Python."""

import array
import collections
import contextvars
import datetime
import functools
import io
import itertools
import math
import os
import queue
import subprocess
import sys
import threading
from unittest import mock

import numpy as np
import pytest

import letir as lt
from tests.each_sample import in_one_test

X = np.array([0.5, -1.5, 2.5])
CALLS = 10
MODULES = (array, collections, functools, io, itertools, math, queue, threading, mock)
NAMES = {module.__name__.rpartition(".")[2]: module for module in MODULES}


def made(text, **names):
    """The function ``f`` of a text, and its namespace."""
    space = {"np": np, "__name__": __name__, **NAMES, **names}
    exec(text, space)
    return space["f"], space


RESULTS = {
    "an event": """
event = threading.Event()
def f(x):
    y = x if event.is_set() else -x
    event.clear() if event.is_set() else event.set()
    return y
""",
    "a semaphore": """
left = threading.Semaphore(3)
def f(x): return x * float(left.acquire(blocking=False))
""",
    "an array of Python's": """
numbers = array.array('d', [1.0])
def f(x):
    numbers.append(1.0)
    return x * len(numbers)
""",
    "a view of bytes": """
view = memoryview(bytearray(b'abc'))
def f(x):
    view[0] = view[0] + 1
    return x * view[0]
""",
    "the sign of a zero": """
zero = 0.0
def f(x):
    global zero
    zero = -zero
    return x * np.copysign(1.0, zero)
""",
    "the order of keys": """
table = dict(a=1.0, b=2.0, c=3.0)
def f(x):
    key = next(iter(table))
    table[key] = table.pop(key)
    return x * next(iter(table.values()))
""",
    "the order of an OrderedDict": """
table = collections.OrderedDict(a=1.0, b=2.0)
def f(x):
    table.move_to_end(next(iter(table)))
    return x * next(iter(table.values()))
""",
    "elements of an array": """
elements = np.arange(100.0).flat
def f(x): return x * next(elements)
""",
    "elements by np.nditer": """
elements = np.nditer(np.arange(100.0))
def f(x): return x * float(next(elements))
""",
    "a part of itertools.tee": """
first, second = itertools.tee(range(100))
def f(x): return x * next(first)
""",
    "an iterator of a function": """
numbers = list(range(100))
iterator = iter(numbers.pop, None)
def f(x): return x * next(iterator)
""",
    "a bound __next__": """
take = iter(range(100)).__next__
def f(x): return x * take()
""",
    "a mock": """
given = mock.Mock(side_effect=[float(n) for n in range(100)])
def f(x): return x * given()
""",
    "a generator that is advanced before a print": """
generator = np.random.default_rng(3)
def f(x):
    generator.bit_generator.advance(5)
    print('advanced')
    return x * generator.normal()
""",
    "a generator that is advanced before a number is read": """
generator = np.random.default_rng(3)
def f(x):
    generator.bit_generator.advance(5)
    return x * float(x[0]) * generator.normal()
""",
}


@in_one_test
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_follows_state_that_the_function_changes(name):
    f, _ = made(RESULTS[name])
    jitted = lt.jit(made(RESULTS[name])[0])

    for _ in range(CALLS):
        np.testing.assert_array_equal(jitted(X), f(X))


def test_every_second_call_raises():
    def counting():
        calls = 0

        def f(x):
            nonlocal calls
            calls += 1
            if calls % 2:
                raise ValueError(f"call {calls}")
            return x * 2

        return f

    f, jitted = counting(), lt.jit(counting())
    for call in range(1, CALLS, 2):
        for function in (f, jitted):
            with pytest.raises(ValueError, match=f"^call {call}$"):
                function(X)
            np.testing.assert_array_equal(2 * X, function(X))


def test_a_generator_is_drawn_from_in_the_calls_that_print():
    def drawing():
        generator = np.random.default_rng(3)

        def f(x, prints):
            if prints:
                print("drawn")
            return x * (generator.normal() if prints else 2.0)

        return f

    f, jitted = drawing(), lt.jit(drawing())
    for prints in [False, True] * CALLS:
        np.testing.assert_array_equal(f(X, prints), jitted(X, prints))


EFFECTS = {
    "an array of Python's": (
        "numbers = array.array('d', [1.0])\ndef f(x):\n numbers[0] += 1.0\n return x * 2",
        lambda space: list(space["numbers"]),
    ),
    "a view of bytes": (
        "data = bytearray(b'abc')\nview = memoryview(data)\n"
        "def f(x):\n view[0] = view[0] + 1\n return x * 2",
        lambda space: bytes(space["data"]),
    ),
    "a mock": (
        "called = mock.Mock()\ndef f(x):\n called(1)\n return x * 2",
        lambda space: space["called"].call_count,
    ),
}


@in_one_test
@pytest.mark.parametrize("name", EFFECTS)
def test_an_effect_happens_in_each_call(name):
    text, found_in = EFFECTS[name]
    (f, expected), (g, found) = made(text), made(text)
    jitted = lt.jit(g)

    for _ in range(CALLS):
        np.testing.assert_array_equal(jitted(X), f(X))
        assert found_in(found) == found_in(expected)


STORES = {
    "a global": ("global last\n last = x.shape", lambda space: space["last"]),
    "an attribute": ("f.last = x.shape", lambda space: space["f"].last),
    "an entry": ("table['last'] = x.shape", lambda space: space["table"]["last"]),
}


@in_one_test
@pytest.mark.parametrize("name", STORES)
def test_what_depends_on_the_kind_of_the_arguments_is_stored_in_each_call(name):
    line, found_in = STORES[name]
    text = "table, last = {'last': 0}, None\ndef f(x):\n " + line + "\n return x * 2\nf.last = 0\n"
    f, space = made(text)
    jitted = lt.jit(f)

    for size in (3, 3, 4, 3, 4, 5, 5, 3, 3, 4, 4, 3):
        jitted(np.ones(size))
        assert found_in(space) == (size,)


def test_a_cache_with_an_entry_for_each_kind_has_plans():
    table = {}

    @lt.jit(static_shapes=True)
    def f(x):
        if x.shape not in table:
            table[x.shape] = np.arange(x.size) * 1.0
        return np.tanh(x * table[x.shape])

    for size in (3, 4) * 8:
        f(np.ones(size))

    assert f.counters["misses"] == f.counters["compiles"] == 2


def test_files_that_the_system_makes_are_made_in_each_call(tmp_path):
    file = tmp_path / "touched"
    command = [sys.executable, "-c", f"open({str(file)!r}, 'w').close()"]
    texts = ("file.touch()", "run(command)")
    for text in texts:
        f, _ = made(
            f"def f(x):\n {text}\n return x * 2", file=file, run=subprocess.run, command=command
        )
        jitted = lt.jit(f)
        for _ in range(3):
            jitted(X)
            file.unlink()


def test_a_pipe_is_written_in_each_call():
    reader, writer = os.pipe()
    f, _ = made("def f(x):\n os.write(writer, b'a')\n return x * 2", os=os, writer=writer)
    jitted = lt.jit(f)
    for _ in range(CALLS):
        jitted(X)
    os.close(writer)
    written = os.read(reader, 100)
    os.close(reader)

    assert written == b"a" * CALLS


def test_a_seed_may_be_set_in_each_call():
    """The quick call of the plan took the state of the generator for an argument."""

    def f(x):
        np.random.seed(3)
        return x * 2

    jitted, expected = lt.jit(f), np.random.RandomState(3).random()
    for _ in range(4 * CALLS):
        np.testing.assert_array_equal(jitted(X), X * 2)
        assert np.random.random() == expected


class Station:
    """Two methods for its measurements, one of which takes a lock, and one that reads the time."""

    def __init__(self):
        self.lock, self.scale, self.began = threading.Lock(), np.array([2.0, 3.0]), ""

    @lt.jit
    def scaled(self, x):
        return self.scale * x

    @lt.jit
    def scaled_alone(self, x):
        with self.lock:
            return self.factor() * x

    def factor(self):
        return self.scale * (2 if self.lock.locked() else 1)

    def begin(self):
        self.began = datetime.datetime.now().isoformat()


def test_a_function_that_takes_a_lock_takes_it_in_each_call():
    lock = threading.RLock()

    def taking(x):
        lock.acquire()
        return x * 2

    def within(x):
        with lock:
            return x * 2

    for f in (lt.jit(taking), lt.jit(within)):
        for _ in range(CALLS):
            f(np.ones(2))

        assert f.counters["compiles"] == 0

    for _ in range(CALLS):
        lock.release()
    with pytest.raises(RuntimeError):
        lock.release()


def test_a_method_that_takes_no_lock_and_reads_no_clock_of_its_object_has_a_plan():
    station = Station()
    for _ in range(CALLS):
        station.scaled(np.ones(2))
        assert np.array_equal(station.scaled_alone(np.ones(2)), [4.0, 6.0])

    assert station.scaled.counters["compiles"] == 1
    assert station.scaled_alone.counters["compiles"] == 0


def test_a_context_variable_is_set_in_each_context():
    mode = contextvars.ContextVar("mode", default="none")

    @lt.jit
    def f(x):
        mode.set("fast")
        return x * 2

    def run():
        f(X)
        return mode.get()

    modes = [contextvars.Context().run(run) for _ in range(CALLS)]

    assert ["fast"] * CALLS == modes


@pytest.mark.parametrize("clock", ["datetime.now()", "datetime.today()"])
def test_clocks_of_the_module_datetime_are_read_in_each_call(clock):
    space = {"datetime": datetime.datetime, "seen": [], "__name__": __name__}
    exec(f"def f(x): return x, seen.append({clock}) or seen[-1].timestamp()", space)
    f = lt.jit(space["f"])

    times = [f(1.0)[1] for _ in range(CALLS)]

    assert times == [time.timestamp() for time in space["seen"]]

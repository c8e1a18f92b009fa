"""Frequent calls with objects whose arrays are arguments."""

from types import SimpleNamespace

import numpy as np
import pytest

import letir as lt
from letir.executor.executor import _CALLS_BY_KEY, Executor
from letir.executor.frequent_calls.object_calls import _ObjectTests
from letir.testing import assert_same

CALLS = 4 * _CALLS_BY_KEY


class Filter:
    """A filter with arrays in all places that an object may have them."""

    def __init__(self):
        self.mean, self.spread = np.arange(3.0), np.eye(3)
        self.rate, self.offset, self.name, self.none = 0.5, 0.0, "filter", None
        self.layers = [{"w": np.eye(3), "b": np.ones(3)}, {"w": 2.0 * np.eye(3), "b": np.ones(3)}]

    def run(self, z):
        """The layers' result, after the mean and the last bias have moved towards ``z``."""
        self.mean = self.mean + self.rate * (z - self.mean) + self.offset
        self.layers[1]["b"] = self.layers[1]["b"] + z
        y = self.mean if self.name == "filter" else self.spread @ self.mean
        for layer in self.layers:
            y = layer["w"] @ y + layer["b"]
        return y


class FastFilter(Filter):
    """The same filter with a jitted method."""

    run = lt.jit(Filter.run)


def warmed(method, *args):
    """A bound method whose executor has a quick call for its object."""
    for _ in range(CALLS):
        method(*args)
    assert any(quick.of_object for quick in method.__letir_executor__.quick)
    return method


def assert_equal_states(expected, found):
    assert_same(expected.mean, found.mean)
    assert_same(expected.layers[1]["b"], found.layers[1]["b"])


def warmed_pair():
    """A plain and a fast filter after the same calls."""
    plain, fast = Filter(), FastFilter()
    for _ in range(CALLS):
        plain.run(np.ones(3))
    warmed(fast.run, np.ones(3))
    return plain, fast


def change_rate(f):
    f.rate = 0.25


def change_sign_of_zero(f):
    f.offset = -0.0


def change_name(f):
    f.name = "other"


def change_dtype(f):
    f.layers[0]["b"] = np.ones(3, np.float32)


def change_order(f):
    f.spread = np.asfortranarray(f.spread + np.arange(3.0))


def add_layer(f):
    f.layers = [*f.layers[:1], f.layers[1], {"w": np.ones((2, 3)), "b": np.ones(2)}]


def share_array(f):
    f.layers[0]["b"] = f.layers[1]["b"]


def share_container(f):
    f.layers[0] = f.layers[1]


def add_attribute(f):
    f.more = 3


@pytest.mark.parametrize(
    "change",
    [
        *(change_rate, change_sign_of_zero, change_name, change_dtype, change_order, add_layer),
        *(share_array, share_container, add_attribute),
    ],
)
def test_calls_see_changes_of_the_object(change):
    plain, fast = warmed_pair()

    assert_equal_states(plain, fast)
    for _ in range(CALLS):
        assert_same(plain.run(np.ones(3)), fast.run(np.ones(3)))
        assert_equal_states(plain, fast)
    change(plain)
    change(fast)
    for _ in range(CALLS):
        assert_same(plain.run(np.ones(3)), fast.run(np.ones(3)))
        assert_equal_states(plain, fast)


def test_other_objects_of_the_class_use_the_same_quick_call(monkeypatch):
    warmed_pair()
    other, plain = FastFilter(), Filter()
    monkeypatch.setattr(Executor, "call_generally", None)  # no other call is made

    for _ in range(3):
        assert_same(plain.run(np.ones(3)), other.run(np.ones(3)))
    assert_equal_states(plain, other)


def test_counters_count_the_calls_on_objects():
    _, fast = warmed_pair()
    before = fast.run.counters
    for _ in range(5):
        fast.run(np.ones(3))

    assert before["invocations"] + 5 == fast.run.counters["invocations"]
    assert before["hits"] + 5 == fast.run.counters["hits"]
    assert before["compiles"] == fast.run.counters["compiles"]


def test_after_clear_a_method_is_compiled_again():
    _, fast = warmed_pair()
    before = fast.run.counters["compiles"]
    fast.run.clear()
    fast.run(np.ones(3))

    assert before + 1 == fast.run.counters["compiles"]


def test_a_trace_records_the_method():
    _, fast = warmed_pair()
    before = fast.run.counters["invocations"]
    gradient = lt.grad(lambda z: FastFilter().run(z).sum())(np.ones(3))

    assert before == fast.run.counters["invocations"]
    assert_same(np.full(3, 2.0), gradient)


class Solver:
    def __init__(self):
        self.a, self.x, self.steps = np.eye(2), np.zeros(2), np.zeros(())

    def solve_(self, b):
        self.steps = self.steps + 1.0
        self.x = np.linalg.solve(self.a, b)
        return self.x.sum()

    solve = lt.jit(solve_)


def test_an_error_leaves_the_object_as_python_leaves_it():
    plain, fast, b = Solver(), Solver(), np.ones(2)
    for _ in range(CALLS):
        plain.solve_(b)
    warmed(fast.solve, b)
    for solver in (plain, fast):
        solver.a = np.zeros((2, 2))

    for _ in range(CALLS):
        for method in (plain.solve_, fast.solve):
            with pytest.raises(np.linalg.LinAlgError):
                method(b)
    for solver in (plain, fast):
        solver.a = np.eye(2)
    assert_same(plain.solve_(b), fast.solve(b))
    assert_same(plain.x, fast.x)


class Particle:
    def __init__(self):
        self.x, self.v, self.m = np.zeros(3), np.ones(3), 2.0


def push(particle, dt):
    """The next place of a particle."""
    return particle.x + particle.v * dt * particle.m


def test_objects_as_first_arguments_have_quick_calls():
    fast, particle = lt.jit(push), Particle()
    for _ in range(CALLS):
        fast(particle, 0.5)
    assert any(quick.of_object for quick in fast.__letir_executor__.method.quick)
    before = fast.counters["invocations"]

    particle.m = 3.0
    assert_same(push(particle, 0.5), fast(particle, 0.5))
    particle.x = np.ones((2, 3))
    assert_same(push(particle, 0.5), fast(particle, 0.5))
    assert_same(push(particle, np.ones(3)), fast(particle, np.ones(3)))
    assert before + 3 == fast.counters["invocations"]


def test_new_lists_tuples_and_dicts_of_arrays_are_stored_whole():
    particle = Particle()
    keys, values = ["x", "v", "m"], [[1, (2, 3)], {"a": 4}, 5]
    changed = SimpleNamespace(places=[("self", key) for key in keys], values=values)
    tests, names = _ObjectTests(particle, frozenset(), (0, changed)), {}
    tests.add_call((particle,), {})

    _, *lines = tests.lines_of_results([f"r{n}" for n in range(6)], names)
    for line in lines:
        space = {f"r{n}": 10 * n for n in range(6)} | names | {tests.texts["self"]: vars(particle)}
        exec(line.strip(), space)
    assert vars(particle) | {"x": [10, (20, 30)], "v": {"a": 40}, "m": 50} == vars(particle)

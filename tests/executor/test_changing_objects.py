"""Methods of objects whose state differs in each call, and arguments that are no arrays.

No plan is of use there. The numbers of searches and compiles are counted, because times are noise.
"""

import random

import numpy as np
import pytest

from letir import jit
from letir.executor import methods
from letir.executor.executor import Executor


class Controller:
    """Its number changes in each call, so that each plan would be for one call."""

    def __init__(self):
        self.total, self.before = 0.0, None

    def step(self, error):
        self.total += error
        change = 0.0 if self.before is None else error - self.before
        self.before = error
        return 0.5 * error + 0.1 * self.total + 0.2 * change


class Diary:
    """It grows by each call."""

    def __init__(self):
        self.entries = []

    def note(self, x):
        self.entries.append(("noted", len(self.entries)))
        return x * len(self.entries)


class Slotted:
    __slots__ = ("calls",)

    def __init__(self):
        self.calls = 0


@pytest.fixture
def searches(monkeypatch):
    """The number of times that the state of an object was searched, as a list of ones."""
    found = []
    search = methods.places_by_path
    monkeypatch.setattr(methods, "places_by_path", lambda *a: found.append(1) or search(*a))
    return found


@pytest.mark.filterwarnings("ignore:.*was compiled")
def test_a_method_that_changes_its_numbers_compiles_few_plans():
    ours, pythons = Controller(), Controller()
    step = jit(ours.step)

    for error in np.linspace(-1.0, 1.0, 300).tolist():
        assert pythons.step(error) == step(error)

    assert vars(pythons) == vars(ours)
    assert step.counters["compiles"] <= 10


@pytest.mark.parametrize("is_method", [True, False])
def test_a_growing_object_is_searched_ever_more_rarely(searches, is_method):
    ours, pythons = Diary(), Diary()
    note = jit(ours.note) if is_method else jit(lambda diary, x: diary.note(x))
    args = () if is_method else (ours,)

    for n in range(300):
        assert pythons.note(float(n)) == note(*args, float(n))

    assert vars(pythons) == vars(ours)
    assert len(searches) < 30
    assert note.counters["invocations"] == 300


class Layer:
    def __init__(self):
        self.w, self.scale = np.array([1.0, 2.0]), 1.0

    def run(self, x):
        return x * self.w * self.scale


@pytest.mark.filterwarnings("ignore:.*was compiled")
@pytest.mark.parametrize("is_method", [True, False])
def test_an_object_that_stops_changing_gets_a_plan(is_method):
    layer = Layer()
    run = jit(layer.run) if is_method else jit(lambda layer, x: layer.run(x))
    args = () if is_method else (layer,)

    for scale in np.arange(200.0).tolist():
        layer.scale = scale
        run(*args, np.ones(2))
        executor = run if is_method else run.__letir_executor__.method
    hits = executor.counters["hits"]
    for _ in range(400):
        assert run(*args, np.ones(2)).tolist() == [199.0, 398.0]

    assert hits == 0
    assert executor.counters["hits"] > 100


@pytest.mark.parametrize("make", [Slotted, lambda: random.Random(3)])
def test_calls_with_an_object_that_is_no_array_have_a_test_of_their_own(make):
    def f(thing, x):
        if type(thing) is Slotted:
            thing.calls += 1
            return x * thing.calls
        return x * thing.random()

    compiled, ours, pythons = jit(f), make(), make()

    with pytest.warns(RuntimeWarning, match="not an array of numbers"):
        compiled(ours, 1.0), f(pythons, 1.0)
    for n in range(100):
        assert f(pythons, float(n)) == compiled(ours, float(n))

    assert len(compiled.__letir_executor__.as_python) == 1
    assert compiled.counters["invocations"] == 101


def test_other_arguments_still_have_a_plan_after_refused_ones():
    compiled = jit(lambda thing, x: x * 2.0 if type(thing) is Slotted else x * thing)

    with pytest.warns(RuntimeWarning, match="not an array of numbers"):
        for _ in range(40):
            compiled(Slotted(), 1.0)

    assert compiled(np.ones(2), 3.0).tolist() == [3.0, 3.0]
    assert compiled.counters["compiles"] == 1


def test_calls_that_no_plan_fits_are_looked_up_once(monkeypatch):
    """With its recordings given up, a failing guard does not lead to a search by the full spec."""

    def drop(numbers, n):
        if n in numbers:
            numbers.remove(n)  # what the caller sees, so that jit calls it as Python
        return numbers

    compiled, searches = jit(drop), []
    search = Executor.call_by_spec
    monkeypatch.setattr(Executor, "call_by_spec", lambda *a: searches.append(1) or search(*a))

    for n in [5, 2] * 100:
        ours, pythons = [1, 2, 3], [1, 2, 3]
        assert drop(pythons, n) == compiled(ours, n)
        assert pythons == ours

    assert compiled.__letir_executor__.runs_python
    assert len(searches) < 20
    assert compiled.counters["invocations"] == 200


def test_a_large_object_is_searched_no_more_after_a_series(searches):
    diary = Diary()
    note = jit(diary.note)
    diary.entries = [("noted", n) for n in range(1000)]

    for n in range(300):
        note(float(n))

    assert len(searches) < 14
    assert note.counters["misses"] == note.counters["invocations"] == 300


def counted_calls():
    """A function that keeps a number, which no plan can change, and raises for 0.0."""
    calls = []

    def f(x):
        calls.append(1)
        if type(x) is float and x == 0.0:
            raise KeyError("zero")
        return x * len(calls)

    return f


def test_a_function_that_always_runs_as_python_is_called_without_tests_of_its_arguments():
    f = jit(counted_calls())

    results = [f(float(n)) for n in range(1, 20)]
    others = [f(2), f(x=np.ones(2)).tolist(), f(True)]
    with pytest.raises(KeyError) as raised:
        f(0.0)

    assert results == [float(n * n) for n in range(1, 20)]
    assert others == [40, [21.0, 21.0], 22]
    assert not f.__letir_executor__.as_python and f.__call__.__code__.co_freevars == ("counts", "f")
    assert f.counters["invocations"] == f.counters["misses"] == 23
    assert [entry.name for entry in raised.traceback[1:]] == ["f"]


def test_such_a_function_is_recorded_again_after_clear():
    f = jit(counted_calls())
    for n in range(1, 20):
        f(float(n))

    f.clear()

    assert f.__call__.__code__.co_freevars != ("counts", "f")
    assert f(1.0) == 20.0


class Rod:
    """A rod that is heated, whose list of sums grows until it is full."""

    def __init__(self):
        self.u, self.sums = np.zeros(6), []

    def step(self, dt):
        u = self.u.copy()
        self.u[1:-1] = u[1:-1] + dt * (u[2:] - 2 * u[1:-1] + u[:-2])
        self.u[0] = 1.0
        if len(self.sums) < 3:
            self.sums.append(float(self.u.sum()))
        return self


def test_a_small_plan_is_not_run_if_the_parts_of_its_object_are_searched_in_each_call(searches):
    step = jit(lambda rod, dt: rod.step(dt).u.sum())

    for _ in range(60):
        ours, pythons = Rod(), Rod()
        assert step(ours, 0.1) == pythons.step(0.1).u.sum()
        assert vars(ours).keys() == vars(pythons).keys() and ours.u.tolist() == pythons.u.tolist()
    before = len(searches)
    for _ in range(60):
        step(Rod(), 0.1)

    assert len(searches) == before
    assert [
        call.object_is_python for call in step.__letir_executor__.method.quick if call.of_object
    ] == [True]
    assert step.counters["invocations"] == 120


def test_an_error_of_the_function_is_raised_once():
    step = jit(lambda rod, dt: rod.step(dt).u.sum())
    for _ in range(60):
        step(Rod(), 0.1)
    rod = Rod()

    with pytest.raises(AttributeError, match="copy"):
        rod.u = None
        step(rod, 0.1)

    assert rod.sums == []


@pytest.mark.filterwarnings("ignore:.*was compiled")
def test_a_plan_for_one_call_ends_no_series():
    step, pythons = jit(Controller().step), Controller()

    for error in np.linspace(-1.0, 1.0, 300).tolist():
        assert pythons.step(error) == step(error)

    assert step.counters["compiles"] <= 10
    assert max(step.__letir_executor__.calls_without_plan.values()) > 250

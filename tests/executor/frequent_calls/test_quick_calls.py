"""Calls of executors that are tried first: the same plans, results and errors as by keys."""

import gc
import math
import traceback
import weakref
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum
from typing import Any

import attrs
import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError, GuardError, ShapeError
from letir.executor.compiled import _CALLS_UNTIL_QUICK
from letir.executor.executor import _CALLS_BY_KEY
from letir.executor.frequent_calls import quick_calls
from letir.executor.frequent_calls.external_values import values_read
from letir.plan.generated_calls import GeneratedCall
from letir.plan.plan import Miss
from letir.testing import assert_same

X = np.linspace(-1.0, 2.0, 6).reshape(2, 3)


def plans_take_longer(call, *_):
    """A time of 0 for the call of a function, of 1 for the call of a plan."""
    return "FUNCTION" not in call.names


@pytest.fixture(autouse=True)
def plans_are_fastest(monkeypatch):
    """Functions that give the same bits as their plans are not called instead."""
    monkeypatch.setattr(GeneratedCall, "shortest_time", lambda *_: 0)


def warmed(f, *args, **kwargs):
    """An executor that tries the plan for these arguments first."""
    fast = lt.jit(f)
    for _ in range(2 * _CALLS_BY_KEY):
        fast(*args, **kwargs)
    assert fast.__letir_executor__.quick
    return fast


def computed(p, scale=1.0, *, shift=None, name="plain"):
    """Results in a structure of all kinds."""
    x = p["x"] * scale
    y = p["parts"][0] + (0.0 if shift is None else shift)
    return {"x": x, "name": [x.sum(), None, (y,)], "twice": 2 * y if name == "twice" else y}


CALLS = [
    (({"x": X, "parts": (X[0], None)},), {}),
    (({"x": X, "parts": (X[0], None)}, 2.0), {"shift": 1.0}),
    (({"parts": (X[0], None), "x": X}, 2), {"shift": X[0], "name": "twice"}),
    (({"x": X, "parts": [X[0]]}, np.float32(2)), {"name": "twice"}),
]
OTHERS = [
    (({"x": X.astype(np.float32), "parts": (X[0], None)},), {}),
    (({"x": X.T.copy().T, "parts": (X[0], None)},), {}),
    (({"x": X[:, :2], "parts": (X[0], None)},), {}),
    (({"x": X, "parts": (X[0], X[0])},), {}),
    (({"x": X, "parts": [X[0], None]},), {}),
    (({"x": X, "parts": (X[0], None), "more": X},), {}),
    (({"x": X, "parts": (X[0], None)}, True), {}),
    (({"x": X, "parts": (X[0], None)}, 2.0), {"name": "other"}),
    (({"x": X, "parts": (X[0], None)}, 2.0), {"shift": 1}),
]


@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_results_equal_the_functions(args, kwargs):
    fast = warmed(computed, *args, **kwargs)

    for others, names in [(args, kwargs), *CALLS, *OTHERS]:
        expected, found = computed(*others, **names), fast(*others, **names)
        assert list(expected) == list(found)
        assert_same(expected["x"], found["x"])
        assert_same(expected["name"][0], found["name"][0])
        assert found["name"][1] is None
        assert_same(expected["twice"], found["twice"])


def test_dicts_with_integers_as_keys_have_quick_calls():
    graph = {2: [(0, 4.0)], 0: [(2, 1.0), (1, 2.0)], 1: []}

    def weight(g):
        return sum(w * (u + v) for u, row in g.items() for v, w in row)

    fast = warmed(weight, graph)
    for other in (graph, {**graph, 3: []}, {2: [], 0: [], 1: []}, {}):
        assert_same(weight(other), fast(other))


def test_a_dict_of_other_keys_is_another_call():
    fast = warmed(lambda p: dict(sorted(p.items())), {"a": None, "b": X})

    assert list(fast({"c": X, "b": X})) == ["b", "c"]


def test_calls_are_counted():
    fast = warmed(np.sin, X)
    before = fast.counters
    fast(X)

    assert fast.counters == before | {
        "invocations": before["invocations"] + 1,
        "hits": before["hits"] + 1,
    }


def many_decisions(x, n):
    """More decisions than one plan may have."""
    return sum(1.0 for i in range(300) if x[0] > i) + x.sum() * n


def test_a_branch_that_changes_for_good_is_tried_first():
    fast = warmed(lambda x: x * 2.0 if x[0, 0] > 0 else x - 1.0, -X)
    for _ in range(2 * _CALLS_BY_KEY):
        assert_same(X - 1.0, fast(X))
        assert_same(-X * 2.0, fast(-X))
    for _ in range(2 * _CALLS_BY_KEY):
        fast(X)

    assert fast.counters["compiles"] == 2
    assert fast.__letir_executor__.quick[0].executed() is fast.debug_state().plans[0].optimized


class Broken(lt.LetirError):
    """An error after which the function is not called in place of its plan."""


def test_an_error_keeps_no_argument():
    fast = warmed(lambda x: x * 2.0, X)

    def fail(args, kwargs):
        del args, kwargs  # as letir does
        raise Broken

    quick = fast.__letir_executor__.quick[0]
    quick.run, quick.in_parts, quick.own_call = fail, None, None
    fast.__letir_executor__.try_first(fast.__letir_executor__.quick)
    x = X.copy()
    gone = weakref.ref(x)
    with pytest.raises(Broken) as caught:
        fast(x)
    del x
    gc.collect()

    assert gone() is None
    assert caught.value.__context__ is None


def test_an_error_of_an_executors_own_call_keeps_no_argument():
    fast = warmed(lambda x: x * 2.0, X)
    assert fast.__letir_executor__.quick[0].own_call is not None
    x = np.ones(4)
    gone = weakref.ref(x)
    with pytest.raises(DTypeError) as caught:
        fast(x, x)
    del x
    gc.collect()

    assert gone() is None
    assert caught.value.__context__ is None
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not [name for name in files if "/letir/" in name.replace("\\", "/")]


def test_an_executor_is_freed_with_its_own_call():
    fast = warmed(np.sin, X)
    call, gone = fast.__call__, weakref.ref(fast)
    assert fast.__letir_executor__.quick[0].own_call is call
    del fast
    gc.collect()

    assert gone() is None
    assert_same(np.sin(X), call(X))
    assert_same(np.sin(X[0]), call(X[0]))
    with pytest.raises(TypeError, match="sin"):
        call()


def test_wrong_arguments_are_the_functions_error_in_an_own_call():
    def f(x, y, z=2.0):
        return x * y + z

    fast = warmed(f, X, 2.0)

    for args, kwargs in [((X,), {}), ((), {}), ((X, 2.0, 3.0, 4.0), {}), ((X, 2.0), {"w": 1})]:
        told = []
        for call in (lt.jit(f), fast):
            with pytest.raises(TypeError) as caught:
                call(*args, **kwargs)
            told.append(str(caught.value))
        assert told[0] == told[1]
    for args, kwargs in [((X,), {"y": 2.0}), ((), {"y": X, "x": 1.0}), ((X, 2.0, 3), {})]:
        assert_same(f(*args, **kwargs), fast(*args, **kwargs))


def test_a_cleared_executor_forgets_its_quick_call():
    fast = warmed(np.sin, X)
    fast.clear()

    assert not fast.__letir_executor__.quick
    assert_same(np.sin(X), fast(X))


def test_subclasses_and_traced_values_are_told_apart():
    fast = warmed(np.sin, X)

    with pytest.warns(RuntimeWarning, match="as Python"):
        assert type(fast(np.ma.masked_array(X))) is np.ma.MaskedArray
    assert_same(np.cos(X), lt.grad(lambda x: fast(x).sum())(X))


def counted(x):
    return x * float(int(x.sum()))


def test_a_function_that_compiles_in_each_call_runs_as_python_in_the_end():
    fast = lt.jit(counted)
    with pytest.warns(RuntimeWarning, match="compiled 4 times, and 8 of 8 calls had no plan"):
        for n in range(60):
            x = np.full(2, float(n))
            assert_same(counted(x), fast(x))

    assert fast.counters["compiles"] == 4
    assert fast.counters["invocations"] == fast.counters["misses"] == 60
    fast.clear()
    assert_same(counted(X), fast(X))


def test_a_function_that_needs_one_plan_a_size_makes_ever_fewer():
    def alternating(x):
        return sum(x[i] * (-1) ** i for i in range(x.shape[0]))

    fast, compiled = lt.jit(alternating), []
    with pytest.warns(RuntimeWarning, match="(?s)6 times.*all sizes.*runs the Python function"):
        for n in range(1, 40):
            x = np.arange(float(n))
            before = fast.counters["compiles"]
            assert_same(alternating(x), fast(x))
            if fast.counters["compiles"] > before:
                compiled.append(n)

    assert compiled == [1, 2, 3, 4, 8, 16, 32]
    assert fast.counters["misses"] == fast.counters["invocations"] == 39
    assert (
        len(fast.__letir_executor__.cache.entries) == 7
    )  # sizes without a plan leave nothing behind


def test_a_function_of_many_decisions_on_numbers_runs_as_python_after_its_first_call():
    def collatz(n):
        steps = 0
        while n > 1:
            n = 3 * n + 1 if n % 2 else n // 2
            steps += 1
        return steps

    fast = lt.jit(collatz)

    assert [fast(n) for n in (871, 27, 6)] == [178, 111, 8]
    assert fast.counters["compiles"] == 1


def test_a_function_with_other_strings_in_each_call_runs_as_python_in_the_end():
    fast = lt.jit(lambda name, n: (f"{name} {2 * n}", 3 * n))
    with pytest.warns(RuntimeWarning, match="(?s)was compiled 10 times.*this call compiles"):
        for n in range(200):
            name = "a" * (n % 30)
            assert fast(name, n) == (f"{name} {2 * n}", 3 * n)

    assert fast.counters["compiles"] <= 41
    assert fast.counters["invocations"] == fast.counters["misses"] == 200


def test_plans_that_alternate_are_all_quick():
    def f(x, n):
        for _ in range(n):
            x = x * 2.0
        return x if x.sum() > 1.0 else -x

    fast = lt.jit(f)
    for n in range(120):
        assert_same(f(X * (n % 2), n % 3), fast(X * (n % 2), n % 3))
    before = fast.counters["compiles"]
    fast.__letir_executor__.call_by_key = None  # not needed any more
    for n in range(12):
        assert_same(f(X * (n % 2), n % 3), fast(X * (n % 2), n % 3))

    assert len(fast.__letir_executor__.quick) == before == 6


def test_calls_that_run_python_are_known_by_the_key_of_their_arguments():
    fast = lt.jit(many_decisions)
    for n in range(5):
        assert_same(many_decisions(X[0], n), fast(X[0], n))

    assert {True} == {entry.runs_python for entry in fast.__letir_executor__.cache.entries.values()}
    fast.__letir_executor__.forget_keys()  # as after an eviction
    assert_same(many_decisions(X[0], 1), fast(X[0], 1))
    assert [None] == [plan for _, plan, *_ in fast.__letir_executor__.keys.values()]


def test_a_function_that_nearly_always_has_a_plan_keeps_its_plans():
    fast = lt.jit(counted)
    for n in range(40):
        for m in (n, 1, 1, 2, 2):
            x = np.full(2, float(m))
            assert_same(counted(x), fast(x))

    assert not any(entry.runs_python for entry in fast.__letir_executor__.cache.entries.values())


def warmed_program(f, *args):
    """The compiled program of a function, which tests first for arguments like these."""
    fast = lt.compile(lt.trace(f, *args))
    for _ in range(2 * _CALLS_UNTIL_QUICK):
        fast(*args)
    return fast


def test_a_compiled_program_called_often_checks_its_arguments_still():
    p = {"x": X, "parts": (X[0], None)}
    fast = warmed_program(computed, p)
    assert fast.quick

    found = fast({"parts": (X[0], None), "x": 2 * X})
    assert list(found) == ["x", "name", "twice"]
    assert_same(2 * X, found["x"])
    with pytest.raises(ShapeError, match="expected"):
        fast({"x": X[:, :2], "parts": (X[0], None)})
    with pytest.raises(DTypeError):
        fast({"x": X.astype("f4"), "parts": (X[0], None)})
    with pytest.raises(DTypeError):
        fast(X)
    assert_same(3 * X, lt.trace(lambda x: fast({"x": 3 * x, "parts": (X[0], None)})["x"], X)(X))


def test_a_compiled_program_called_often_widens_numbers_still():
    fast = warmed_program(lambda x, s: x * s, X, 2.0)
    assert_same(3.0 * X, fast(X, 3))
    assert_same(0.5 * X, fast(X, 0.5))


def test_the_plan_that_fits_a_series_of_calls_is_tried_first():
    """Each plan before it would fail at its guard, in each call of the series."""
    fast, x = lt.jit(lambda x: 2 * x if x.sum() > 0 else x - 1), np.ones(3)
    for argument in [x] * 40 + [-x] * 40:
        fast(argument)

    for argument, expected in ((x, 2 * x), (-x, -x - 1), (x, 2 * x)):
        for _ in range(2):
            assert_same(expected, fast(argument))
        assert_same(expected, fast.__letir_executor__.quick[0].run((argument,), {}))


def test_a_compiled_program_called_often_says_where_a_guard_fails():
    def positive(x):
        return x * 2 if x.sum() > 0 else -x

    fast = warmed_program(positive, X)
    with pytest.raises(GuardError, match=r"test_quick_calls\.py"):
        fast(-X)
    assert_same(2 * X, fast(X))


def test_a_compiled_program_called_often_keeps_no_argument():
    fast = warmed_program(lambda x: x + 1, X)
    x = X.copy()
    seen = weakref.ref(x)
    fast(x)
    del x
    gc.collect()
    assert seen() is None


def test_a_function_that_runs_as_python_is_called_without_a_key():
    def f(x, g, scale=2.0):
        path = [x.sum()]
        for _ in range(5):
            path.append(g.normal() * scale)
        order = sorted(path)
        return order, [*map(path.index, order)]

    fast, ours, numpys = lt.jit(f), np.random.default_rng(2), np.random.default_rng(2)
    with pytest.warns(RuntimeWarning, match="compiled 4 times"):
        for _ in range(60):
            assert_same(f(X, numpys), fast(X, ours))

    assert len(fast.__letir_executor__.as_python) == 1
    assert not fast.__letir_executor__.as_python[0]((X[0], ours), {})
    assert_same(f(X[0], numpys, scale=0.5), fast(X[0], ours, scale=0.5))
    compiles = fast.counters["compiles"]
    fast(X, ours)
    assert compiles == fast.counters["compiles"]
    assert 62 == fast.counters["invocations"] == fast.counters["misses"] + fast.counters["hits"]
    fast.clear()
    assert not fast.__letir_executor__.as_python


def averaged(x, y):
    """A function of two vectors of one length and of a matrix with another one."""
    return {"mean": x.mean() + y.mean(), "sum": x + y}


def test_a_plan_for_all_sizes_has_one_quick_call_for_them():
    fast = lt.jit(averaged)
    for n in range(5, 8 + 5 * _CALLS_BY_KEY):
        fast(np.arange(float(n)), np.ones((n, n + 3)).mean(1))

    (quick,) = fast.__letir_executor__.quick
    for n, m, fits in [(3, 3, True), (100, 100, True), (4, 5, False), (1, 1, False)]:
        found = quick.run((np.ones(n), np.ones(m)), {})
        assert (found is not Miss) == fits
    for n in (2, 40, 1_000):
        x, y = np.linspace(0.1, 0.7, n), np.linspace(1.0, 3.0, n)
        expected, found = averaged(x, y), fast(x, y)
        assert_same(expected["sum"], found["sum"])
        assert_same(expected["mean"], found["mean"])
    assert fast.__letir_executor__.quick == (quick,)


def test_arguments_that_a_quick_call_for_all_sizes_does_not_fit_are_computed_too():
    fast = lt.jit(averaged)
    for n in range(5, 8 + 5 * _CALLS_BY_KEY):
        fast(np.arange(float(n)), np.ones(n))

    for x, y in [
        (np.ones(4), np.ones(1)),
        (np.ones((2, 3)), np.ones(3)),
        (np.ones(9)[::2], np.arange(5.0)),
        (np.ones(5, np.float32), np.arange(5.0)),
    ]:
        expected, found = averaged(x, y), fast(x, y)
        assert_same(expected["sum"], found["sum"])
        assert_same(expected["mean"], found["mean"])
    with pytest.raises(ValueError, match="broadcast"):
        fast(np.ones(4), np.ones(5))


def of_numbers(a, b):
    """A function of Python's numbers that takes longer by steps, and decides."""
    if (a < 3) != (b < a):
        return a * 2 + b, True
    return a - b, False


@pytest.mark.parametrize("is_faster", [False, True])
def test_pythons_numbers_are_computed_by_the_faster_of_plan_and_function(monkeypatch, is_faster):
    monkeypatch.setattr(
        GeneratedCall, "shortest_time", lambda call, *_: ("FUNCTION" in call.names) != is_faster
    )
    fast = warmed(of_numbers, 5, 2.0)

    assert fast.__letir_executor__.quick[0].own_call.__globals__.get("FUNCTION") is (
        of_numbers if is_faster else None
    )
    for a, b in [(5, 2.0), (2, 0.5), (7.5, 9), (2**62, 1.0), (-1, np.inf), (4, 3)]:
        expected, found = of_numbers(a, b), fast(a, b)
        assert expected == found
        assert [*map(type, expected)] == [*map(type, found)]
    assert fast.counters["compiles"] <= 6
    assert fast.counters["invocations"] == 2 * _CALLS_BY_KEY + 6


def test_a_function_of_numbers_that_branches_is_called_as_python(monkeypatch):
    monkeypatch.setattr(GeneratedCall, "shortest_time", lambda call, *_: "FUNCTION" in call.names)

    def doubled_above(x):
        return 2 * x if x > 0 else x

    fast = lt.jit(doubled_above)
    for _ in range(4 * _CALLS_BY_KEY):
        assert [fast(2.0), fast(-2.0)] == [4.0, -2.0]

    assert fast.__letir_executor__.quick[0].is_python
    assert fast.counters["compiles"] == 2


def test_a_function_that_runs_as_python_becomes_one_call_of_it():
    def shown(x):
        return f"{x:.2f}", x + 1

    fast = lt.jit(shown)
    with pytest.warns(RuntimeWarning, match="compiled"):
        for n in range(60):
            assert shown(n / 3) == fast(n / 3)

    assert fast.__call__.__globals__["FUNCTION"] is shown
    assert "7" == lt.jit(lambda x: fast(x)[0][0])(7.1)  # recorded by another function
    with pytest.raises(TypeError, match=r"is called with .*: too many positional arguments"):
        fast(1.0, 2.0)
    assert fast.counters["invocations"] == fast.counters["misses"] + fast.counters["hits"]
    fast.clear()
    assert "FUNCTION" not in fast.__call__.__globals__


def test_one_item_of_a_sequence_decides_that_the_function_is_called_as_python(monkeypatch):
    monkeypatch.setattr(GeneratedCall, "shortest_time", plans_take_longer)

    def total(xs):
        return sum(xs) / len(xs)

    fast = warmed(total, [1.0, 2.0, 3.0])

    assert fast.__letir_executor__.quick[0].is_python
    for xs in ([1.0, 2, 5.0], [1, 2, 3], [1.0, 2.0], (1.0, 2.0, 4.0), [2.0, X, X]):
        assert_same(total(xs), fast(xs))


def test_a_plan_without_steps_is_one_call_too():
    def with_words(x, text):
        return x, len(text.split())

    fast = warmed(with_words, 2.0, "to be or not")

    assert fast.__letir_executor__.quick[0].own_call is not None
    assert fast(3.0, "to be or not") == (3.0, 4)


def test_results_of_many_steps_on_pythons_numbers_count_as_numbers(monkeypatch):
    monkeypatch.setattr(GeneratedCall, "shortest_time", plans_take_longer)

    def congruential(seed):
        found = []
        for _ in range(9):
            seed = (1103515245 * seed + 12345) % 2**31
            found.append(seed)
        return found

    assert warmed(congruential, 7).__letir_executor__.quick[0].is_python


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sqrt(x) * 2,
        lambda x: x < 0.5,
        lambda x: np.array([x, 2 * x]),
        lambda x: x * float(np.float32(0.1)) * np.ones(()),
    ],
)
@pytest.mark.parametrize("is_faster", [False, True])
def test_functions_that_give_numpys_values_are_called_if_that_is_faster(monkeypatch, f, is_faster):
    monkeypatch.setattr(
        GeneratedCall, "shortest_time", lambda call, *_: ("FUNCTION" in call.names) != is_faster
    )
    fast = warmed(f, 0.7)

    assert is_faster == ("FUNCTION" in fast.__letir_executor__.quick[0].own_call.__globals__)
    for x in (0.7, 0.25, np.float64(2.0), np.abs(X), 3):
        assert_same(f(x), fast(x))


def test_an_error_of_a_function_of_numbers_is_pythons():
    def f(a, b):
        return math.sqrt(a) / b

    fast = warmed(f, 2.0, 3.0)
    for args in [(-1.0, 1.0), (1.0, 0.0)]:
        for _ in range(2 * _CALLS_BY_KEY):
            with pytest.raises((ValueError, ZeroDivisionError)) as expected:
                f(*args)
            with pytest.raises(type(expected.value)) as found:
                fast(*args)
            assert str(expected.value) == str(found.value)


def test_a_function_that_catches_an_exception_in_each_call_is_called_as_python():
    def bounded(x):
        with np.errstate(over="raise"):
            try:
                return np.exp(x)
            except FloatingPointError:
                return np.exp(np.minimum(x, 700.0))

    fast, large = lt.jit(bounded), X * 1e3
    for _ in range(2 * _CALLS_BY_KEY):
        assert_same(bounded(large), fast(large))

    assert fast.__letir_executor__.quick[0].is_python
    for x in (large, X, large, X.T.copy()):
        assert_same(bounded(x), fast(x))
    assert fast.counters["compiles"] <= 3


def test_an_error_of_a_function_called_as_python_happens_once():
    def f(a, b):
        with np.errstate(divide="raise"):
            try:
                return a / b
            except FloatingPointError:
                return np.linalg.inv(np.outer(a, b))

    fast = lt.jit(f)
    a, b = np.ones(1), np.zeros(1)
    for _ in range(2 * _CALLS_BY_KEY):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            fast(a, b)

    assert_same(f(a, a), fast(a, a))


Point = namedtuple("Point", "x y")


@dataclass
class Stump:
    column: int
    limit: float
    weights: list

    def predict(self, x):
        return np.where(x[:, self.column] < self.limit, self.weights[0], self.weights[1])


class Kind(Enum):
    RAMP = "ramp"
    TANH = "tanh"

    def __call__(self, x):
        return np.maximum(x, 0) if self is Kind.RAMP else np.tanh(x)


@attrs.frozen
class Pair:
    _x: float
    y: Any


@pytest.mark.parametrize(
    ("f", "args", "others"),
    [
        (lambda p: Point(p.y, p.x * p.y), (Point(2.0, X),), [(Point(X, 2),), (Point(1, 2),)]),
        (lambda g, x: g(x) + 1, (np.cos, X), [(np.sin, X), (np.cos, 2.0), (math.cos, 2.0)]),
        (lambda g, x: g(g(x)), (lambda x: x * SCALE, X), [(lambda x: x + SCALE, X)]),
        (lambda kind, x: x.astype(kind), (np.float32, X), [(np.int64, X), (float, X)]),
        (
            Stump.predict,
            (Stump(1, 0.5, [1.0, -1.0]), X),
            [(Stump(0, 0, [1.0, X[0, 0]]), X), (Stump(1, 0.25, [1.0, 2.0]), X + 0.5)],
        ),
        (lambda kind, x: kind(x), (Kind.RAMP, X), [(Kind.TANH, X), (np.cos, X)]),
        (lambda p: p._x * p.y, (Pair(2.0, X),), [(Pair(X, 2),), (Pair(1, Pair(0.0, X).y),)]),
    ],
)
def test_records_and_functions_are_tested_without_a_key(f, args, others):
    fast = warmed(f, *args)
    assert fast.__letir_executor__.quick[0].own_call is not None

    for some in (*others, args) * 2:
        assert_same(f(*some), fast(*some))
        assert type(f(*some)) is type(fast(*some))


def test_a_lambda_that_is_made_in_each_call_has_one_quick_call(monkeypatch):
    fast = lt.jit(lambda g, x: g(x) - 1)
    for n in range(4 * _CALLS_BY_KEY):
        if n == 3 * _CALLS_BY_KEY:
            monkeypatch.setattr(fast.__letir_executor__, "call_by_key", None)  # not needed any more
        assert_same(X * SCALE - 1, fast(lambda x: x * SCALE, X))


def test_changed_numbers_of_a_function_among_the_arguments_are_seen(monkeypatch):
    def scaled_by(k):
        return lambda x: x * k

    def with_default(x, k=2.0):
        return x * k

    fast = lt.jit(lambda g, x: g(x) - 1)
    for g in (scaled_by(3.0), with_default, lambda x: x * SCALE):
        for _ in range(2 * _CALLS_BY_KEY):
            assert_same(g(X) - 1, fast(g, X))
    for g in (scaled_by(3.0), scaled_by(4.0)):
        assert_same(g(X) - 1, fast(g, X))
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert_same(X * 5 - 1, fast(lambda x: x * SCALE, X))


SCALE = 2.0


def scaled(x):
    return x * SCALE


def halved(x):
    return sum([math.sqrt(part) for part in (x, 2 * x)]) / 2


def differentiated(x):
    return lt.grad(halved)(x)


def printed(x):
    print(x)
    return 2 * x


def noted(x):
    noted.last = 1
    return 2 * x


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (halved, []),
        (lambda x: np.float64(halved(x)) + abs(x), []),
        (scaled, [2.0]),
        (lambda x: scaled(x) + 1.0, [2.0]),
        (lambda x: x + X, None),
        (differentiated, None),
        (printed, None),
        (lambda x: printed(x) + 1.0, None),
        (noted, None),
        (lt.grad(halved), None),
        (lt.jit(halved), None),
        ((lambda k: lambda x: k * x)(3.0), [3.0]),
        ((lambda k: lambda x: k * x)(np.ones(3)), None),
        ((lambda g: lambda x: g(x) * x)(halved), []),
    ],
)
def test_numbers_that_functions_without_effects_read_are_found(f, expected):
    found = values_read(f)

    assert expected == (found and [value for *_, value in found.places])


def test_a_function_of_numbers_that_prints_has_no_quick_call(capsys):
    fast = lt.jit(printed)

    assert [fast(1.5) for _ in range(20)] == [3.0] * 20
    assert not fast.__letir_executor__.quick
    assert len(capsys.readouterr().out.splitlines()) == 20


def test_a_changed_global_counts_as_it_was_recorded(monkeypatch):
    monkeypatch.setattr(GeneratedCall, "shortest_time", plans_take_longer)
    fast = warmed(scaled, 1.5)
    monkeypatch.setitem(globals(), "SCALE", 7.0)

    assert fast(1.5) == 3.0


def test_two_threads_may_note_the_last_failure_of_a_quick_call_at_once():
    """One of them is interrupted by the other one where it looks at the class of its error."""
    (quick,) = warmed(lambda x: x * 2.0, X).__letir_executor__.quick
    in_parts, noted = quick.in_parts, []

    class Interrupted(Exception):
        @property
        def __class__(self):
            if not noted:
                noted.append(None)
                quick.tried_after(ValueError())
                quick.failures -= 1  # which the first thread has not seen
            return Interrupted

    assert in_parts is not None
    quick.failures = quick_calls._MAX_FAILURES - 1
    quick.tried_after(Interrupted())

    assert quick.run is in_parts

"""Calls of executors that are tried first: the same plans, results and errors as by keys."""

import gc
import weakref

import numpy as np
import pytest

import letir as lt
from letir.executor.executor import _CALLS_BY_KEY
from letir.testing import assert_same

X = np.linspace(-1.0, 2.0, 6).reshape(2, 3)


def warmed(f, *args, **kwargs):
    """An executor that tries the plan for these arguments first."""
    fast = lt.jit(f)
    for _ in range(2 * _CALLS_BY_KEY):
        fast(*args, **kwargs)
    assert fast.quick is not None
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
def test_results_are_those_of_the_function(args, kwargs):
    fast = warmed(computed, *args, **kwargs)

    for others, names in [(args, kwargs), *CALLS, *OTHERS]:
        expected, found = computed(*others, **names), fast(*others, **names)
        assert list(expected) == list(found)
        assert_same(expected["x"], found["x"])
        assert_same(expected["name"][0], found["name"][0])
        assert found["name"][1] is None
        assert_same(expected["twice"], found["twice"])


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


def test_a_branch_that_changes_for_good_is_tried_first():
    fast = warmed(lambda x: x * 2.0 if x[0, 0] > 0 else x - 1.0, -X)
    for _ in range(2 * _CALLS_BY_KEY):
        assert_same(X - 1.0, fast(X))
        assert_same(-X * 2.0, fast(-X))
    for _ in range(2 * _CALLS_BY_KEY):
        fast(X)

    assert fast.counters["compiles"] == 2
    assert fast.quick[-1]() is fast.debug_state().plans[0].optimized


class Broken(lt.LetirError):
    """An error after which the function is not called in place of its plan."""


def test_an_error_keeps_no_argument():
    fast = warmed(lambda x: x * 2.0, X)

    def fail(leaves):
        leaves.clear()  # as plans do
        raise Broken

    fast.quick = fast.quick[0], fail, *fast.quick[2:]
    x = X.copy()
    gone = weakref.ref(x)
    with pytest.raises(Broken) as caught:
        fast(x)
    del x
    gc.collect()

    assert gone() is None
    assert caught.value.__context__ is None


def test_a_cleared_executor_forgets_its_quick_call():
    fast = warmed(np.sin, X)
    fast.clear()

    assert fast.quick is None
    assert_same(np.sin(X), fast(X))


def test_subclasses_and_traced_values_are_told_apart():
    fast = warmed(np.sin, X)

    with pytest.raises(lt.DTypeError):
        fast(np.ma.masked_array(X))
    assert_same(np.cos(X), lt.grad(lambda x: fast(x).sum())(X))


def counted(x):
    return x * float(int(x.sum()))


def test_a_function_that_compiles_in_each_call_runs_as_python_in_the_end():
    fast = lt.jit(counted)
    with pytest.warns(RuntimeWarning, match="was compiled 10 times"):
        for n in range(60):
            x = np.full(2, float(n))
            assert_same(counted(x), fast(x))

    assert fast.counters["compiles"] <= 21
    assert fast.counters["invocations"] == fast.counters["misses"] == 60
    fast.clear()
    assert_same(counted(X), fast(X))


def test_a_function_that_nearly_always_has_a_plan_keeps_its_plans():
    fast = lt.jit(counted)
    for n in range(40):
        for m in (n, 1, 1, 2, 2):
            x = np.full(2, float(m))
            assert_same(counted(x), fast(x))

    assert not any(entry.is_pythons for entry in fast.cache.entries.values())

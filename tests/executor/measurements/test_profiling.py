"""Profiled plans, which are specialised for the arguments of their first calls [F3]."""

import threading

import numpy as np

import letir as lt
from letir import explain, jit
from letir.testing import assert_same

X = np.array([1.0, 2.0, 3.0])


def scaled(x, n, k):
    return x**n * k


def version(f):
    """The single plan of an executor."""
    (entry,) = f.__letir_executor__.cache.entries.values()
    return entry.plans[0]


def names(fn):
    return [bind.op.name for bind in fn.binds]


def test_the_first_calls_run_the_recorded_program():
    fast = jit(lambda x: np.sin(x) + np.sin(x), profile=2)

    for _ in range(2):
        fast(X)
        assert version(fast).specialized is None
    fast(X)

    assert 2 == names(version(fast).program).count("sin")
    assert 1 == len(version(fast).specialized.binds) or "sin" in names(version(fast).specialized)


def test_numbers_that_never_changed_become_constants():
    fast = jit(scaled, profile=3)
    for k in range(4):
        assert_same(scaled(X, 2, float(k)), fast(X, 2, float(k)))

    assert [1] == list(version(fast).constants)
    assert 2 == len(version(fast).specialized.params)


def test_other_numbers_than_the_profiled_ones_give_right_results():
    fast = jit(scaled, profile=1)
    fast(X, 2, 1.0)
    fast(X, 2, 1.0)

    for n, k in ((3, 1.0), (2, -1.0), (2, 1.0), (2, -0.0), (2, np.nan)):
        assert_same(scaled(X, n, k), fast(X, n, k))
    assert 1 == fast.counters["compiles"]


def test_zeros_of_different_sign_are_different_numbers():
    fast = jit(lambda x, k: x * k, profile=2)
    fast(X, 0.0)
    fast(X, -0.0)
    fast(X, 0.0)

    assert not version(fast).constants
    assert_same(X * -0.0, fast(X, -0.0))


def test_guards_select_among_profiled_plans():
    fast = jit(lambda x, k: x * k if x.sum() > 0 else x - k, profile=1)
    for _ in range(3):
        for sign in (1, -1):
            assert_same(X * 2 if sign > 0 else -X - 2, fast(sign * X, 2))

    assert 2 == fast.counters["compiles"]


def test_threads_profile_one_plan_together():
    fast, found = jit(scaled, profile=5), []

    def work():
        for k in range(20):
            found.append(np.array_equal(fast(X, 2, float(k % 3)), scaled(X, 2, float(k % 3))))

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]

    assert 160 == sum(found)
    assert [1] == list(version(fast).constants)


def test_profiled_functions_write_into_arguments_and_can_be_transformed():
    def fill(x, k):
        x[0] = k
        return x.sum()

    fast, x = jit(fill, profile=1), X.copy()
    for k in (5.0, 5.0, 5.0, 6.0):
        assert fast(x, k) == x.sum()
        assert x[0] == k
    slope = lt.grad(jit(lambda x, n: (x**n).sum(), profile=1))
    for _ in range(3):
        np.testing.assert_allclose(slope(X, 3), 3 * X**2)


def test_a_profiled_plan_can_be_explained():
    fast = jit(scaled, profile=1)
    for _ in range(3):
        found = explain(fast, X, 2, 1.0)

    assert "scaled" in str(found)

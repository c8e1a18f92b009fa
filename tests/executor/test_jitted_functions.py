"""Attributes that users set on jitted functions: they are the user's, as those of functions are."""

import copy
import functools
import inspect
import pickle

import numpy as np
import pytest

import letir as lt
from letir.executor.executor import Executor
from letir.testing import assert_same

X = np.arange(4.0)
CALLS = 12  # beyond the number from which a call has a test of its own


@lt.jit
def counted(x):
    """Counts its calls in an attribute."""
    counted.calls += 1
    return x * 2.0 + counted.calls


@lt.jit
def fibonacci(n):
    """Keeps its results in an attribute."""
    if n not in fibonacci.cache:
        fibonacci.cache[n] = n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
    return fibonacci.cache[n]


class Counter:
    """A method that counts its calls in an attribute of the function."""

    @lt.jit
    def run(self, x):
        """The argument plus the number of the call."""
        Counter.run.calls += 1
        return x + Counter.run.calls

    run.calls = 0


def test_a_function_counts_its_calls_in_an_attribute():
    counted.calls = 0

    assert [counted(X)[0] for _ in range(CALLS)] == list(range(1, CALLS + 1))
    assert counted.calls == CALLS


def test_a_method_counts_its_calls_in_an_attribute():
    counter, before = Counter(), Counter.run.calls

    found = [counter.run(X)[0] - before for _ in range(CALLS)]

    assert found == list(range(1, CALLS + 1))
    assert counter.run.calls == Counter.run.calls == before + CALLS


def test_a_function_keeps_its_results_in_an_attribute():
    fibonacci.cache = {}

    assert [fibonacci(n) for n in (1, 5, 20, 20)] == [1, 5, 6765, 6765]
    assert set(map(type, fibonacci.cache.values())) == {int}


def test_no_attribute_of_a_user_is_one_of_letirs():
    """Each attribute of the executor is set on a jitted function, which still works."""
    names = [name for name in vars(lt.jit(np.sin).__letir_executor__) if not name.startswith("__")]
    names += [name for name in vars(Executor) if not name.startswith("__")]
    public = set(dir(lt.jit(np.sin)))
    for name in sorted(set(names) - public):
        f = lt.jit(lambda x: (x * x).sum())
        setattr(f, name, 5)
        for _ in range(CALLS):
            assert f(X) == 14.0
        assert_same(2.0 * X, lt.grad(f)(X))
        assert lt.explain(f, X).function
        assert (getattr(f, name), f.counters["compiles"]) == (5, 1), name


def test_attributes_of_the_plain_function_are_copied():
    def scaled(x):
        return x * 3.0

    scaled.unit = "m"
    jitted = lt.jit(scaled)
    jitted.other = 2

    assert (jitted.unit, jitted.__wrapped__, jitted.__name__) == ("m", scaled, "scaled")
    assert not hasattr(scaled, "other")
    with pytest.raises(AttributeError, match="missing"):
        jitted.missing  # noqa: B018


def test_attributes_of_partials_and_bound_methods():
    partial = lt.jit(functools.partial(np.multiply, np.full(4, 3.0)))
    partial.calls = 3
    for _ in range(CALLS):
        assert_same(3.0 * X, partial(X))
    counter = Counter()

    assert partial.calls == 3
    assert counter.run.__func__ is Counter.run
    assert counter.run.__self__ is counter


def test_copies_are_the_function_and_pickles_keep_its_attributes():
    sine = lt.jit(np.sin)
    sine.calls = 3
    again = pickle.loads(pickle.dumps(sine))

    assert copy.copy(sine) is copy.deepcopy(sine) is sine
    assert pickle.loads(pickle.dumps(counted)) is counted
    assert again.calls == 3
    assert_same(np.sin(X), again(X))


def test_eager_gradients_see_changed_attributes():
    def scaled(x):
        return (x * counted.scale).sum()

    for scale in (2.0, 2.0, 2.0, 3.0, 3.0, 4.0):
        counted.scale = scale
        assert_same(np.full(4, scale), lt.grad(scaled)(X))


def test_bound_methods_are_equal_and_have_a_signature_without_the_object():
    counter, other = Counter(), Counter()

    assert counter.run == counter.run
    assert hash(counter.run) == hash(counter.run)
    assert counter.run != other.run
    assert counter.run != Counter.run
    assert str(inspect.signature(counter.run)) == "(x)"
    assert str(inspect.signature(Counter.run)) == "(self, x)"

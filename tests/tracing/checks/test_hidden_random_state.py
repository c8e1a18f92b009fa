"""Draws from hidden random state while a function is traced are errors [B2, B9]."""

import functools
import random
import subprocess
import sys

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

X = np.ones(3)
RNG = np.random.default_rng(0)


def noise():
    return np.random.normal(size=3)


def global_rng(x):
    return x + RNG.normal(size=3)


HAZARDS = {
    "normal": lambda x: x + np.random.normal(size=3),
    "one normal number": lambda x: x + np.random.normal(),
    "rand": lambda x: x * np.random.rand(3),
    "in a condition": lambda x: x if np.random.rand() < 2 else -x,
    "in a function of the module": lambda x: x + noise(),
    "many": lambda x: x + np.random.random(624).sum(),
    "binomial": lambda x: x + np.random.binomial(3, 0.5),
    "shuffle": lambda x: x[np.random.permutation(3)],
    "seeded": lambda x: (np.random.seed(3), x + np.random.rand())[1],
    "of Python": lambda x: x + random.random(),
    "gauss of Python": lambda x: x + random.gauss(0, 1),
    "a global generator": global_rng,
    "a default": lambda x, rng=RNG: x + rng.random(),
    "a RandomState": lambda x, r=np.random.RandomState(0): x + r.normal(),  # noqa: B008
}


@pytest.mark.parametrize("name", HAZARDS)
@pytest.mark.parametrize("odd", [False, True])
def test_a_draw_from_hidden_state_is_an_error_that_shows_the_replacement(name, odd):
    """Whether or not the generator holds a second normal number from an earlier draw."""
    np.random.seed(0)
    random.seed(0)
    if odd:
        np.random.normal()
        random.gauss(0, 1)

    with pytest.raises(lt.TraceError, match=r"numbers were drawn from") as raised:
        lt.trace(HAZARDS[name], X)

    assert "letir.random" in str(raised.value)


def test_the_error_says_the_line_and_the_function():
    with pytest.raises(lt.TraceError, match=r"letir.random.normal\(key, shape\)") as raised:
        lt.trace(lambda x: x + noise(), X)

    line = noise.__code__.co_firstlineno + 1
    assert f"test_hidden_random_state.py:{line}: normal" in str(raised.value)


def test_a_captured_generator_is_found_in_a_closure_and_a_method():
    rng = np.random.default_rng(0)

    class Model:
        def loss(self, x):
            return (x + rng.normal()).sum()

    for f in (Model().loss, functools.partial(Model.loss, Model())):
        with pytest.raises(lt.TraceError, match="a generator that is not an argument"):
            lt.grad(f)(X)


def test_draws_before_and_after_a_trace_are_allowed():
    np.random.normal()
    f = lt.trace(lambda x: x + 1, X)
    random.gauss(0, 1)
    np.random.normal()
    f = lt.trace(lambda x: f(x) + np.sqrt(x), X)

    assert_same(X + 2, f(X))


def test_checking_does_not_change_the_random_state():
    np.random.seed(5)
    expected = np.random.normal(size=3)
    np.random.seed(5)

    first = np.random.normal()
    lt.trace(np.sin, X)

    assert_same(expected, np.array([first, *np.random.normal(size=2)]))


def test_importing_a_module_during_a_trace_is_not_a_draw():
    code = """
import sys, numpy as np, letir
assert not {"numpy.random", "random"} & sys.modules.keys()
def f(x):
    import random
    import numpy.random
    return letir.nn.dropout(x, 3, rate=0.5)
def g(x):
    return x + np.random.rand()
letir.trace(f, np.ones(3))
print("traced")
"""
    drawn = code.replace("letir.trace(f", "letir.trace(g")
    for source, expected in ((code, "traced"), (drawn, "numbers were drawn from numpy.random")):
        command = [sys.executable, "-c", source]
        found = subprocess.run(command, check=False, capture_output=True, text=True)
        assert expected in found.stdout + found.stderr


def test_an_opaque_operation_may_draw():
    noisy = lt.opaque(
        lambda x: x + np.random.normal(size=3), lambda x: x, name="test_global_draws.noisy"
    )

    f = lt.trace(lambda x: noisy(x) * 2, X)

    assert not np.array_equal(f(X), f(X))

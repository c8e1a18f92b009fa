"""Draws from lists: of numbers, of traced values, and of other objects."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

MAKERS = [np.random.default_rng, np.random.RandomState]


def shuffled(rng, s):
    items = [s, 2 * s, 3 * s, 4 * s]
    rng.shuffle(items)
    return items


def shuffled_integers(rng, s):
    order = list(range(5))
    rng.shuffle(order)
    return np.array([1.0, 2.0, 4.0, 8.0, 16.0])[order] * s, order


def shuffled_rows(rng, s):
    rows = np.outer([s, 2 * s, 3 * s], [1.0, 10.0])
    rng.shuffle(rows)
    return rows


FUNCTIONS = [
    shuffled,
    shuffled_integers,
    shuffled_rows,
    lambda rng, s: rng.choice([s, 2 * s, 3 * s]),
    lambda rng, s: rng.choice([s, 2 * s, 3 * s], size=2, replace=False),
    lambda rng, s: rng.choice(3, p=[s / 4, 1 - s / 4, 0.0]) * s,
    lambda rng, s: rng.permutation([s, 2 * s, 3 * s]),
    lambda rng, s: rng.normal([s, 2 * s], [1.0, s]),
    lambda rng, s: rng.uniform([s, 2 * s], 5),
    lambda rng, s: rng.multivariate_normal([s, 1.0], [[1.0, 0.2], [0.2, 2.0]]),
]


@in_one_test
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_draws_from_lists_of_traced_values_are_numpys(f, make):
    program, jitted = lt.trace(f, make(0), 0.7), lt.jit(f)

    for seed, s in ((1, 0.5), (2, 1.5), (3, 0.5)):
        expected = f(make(seed), s)
        for recorded in (program, jitted):
            rng = make(seed)
            assert_same(expected, recorded(rng, s))
            after = make(seed)
            f(after, s)
            assert after.normal() == rng.normal()


@in_one_test
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_grad_sees_draws_in_functions_that_it_calls(f, make):
    def loss(rng, s):
        result = f(rng, s)
        first = np.asarray(result[0] if isinstance(result, tuple) else result)
        weights = np.cos(np.arange(np.size(first))).reshape(np.shape(first))
        return np.sum(first * weights)

    slope = lt.grad(loss, argnums=1)(make(1), 0.5)

    numeric = (loss(make(1), 0.5 + 1e-6) - loss(make(1), 0.5 - 1e-6)) / 2e-6
    assert slope == pytest.approx(numeric, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("make", MAKERS)
def test_the_choice_of_a_text_is_guarded(make):
    def f(rng, s):
        words = ["a", "bb", "ccc"]
        first = rng.choice(words)
        rng.shuffle(words)
        return s * len(first), "".join(words)

    program, jitted = lt.trace(f, make(0), 0.7), lt.jit(f)

    for seed in range(6):
        expected = f(make(seed), 0.5)
        assert expected == jitted(make(seed), 0.5)
        try:
            assert expected == program(make(seed), 0.5)
        except lt.GuardError:
            assert seed > 0


def test_a_randomstate_has_no_method_of_generators():
    def f(rng, s):
        return s * (rng.integers(3) if hasattr(rng, "integers") else rng.randint(3))

    for make in MAKERS:
        assert_same(f(make(1), 2.0), lt.trace(f, make(0), 1.0)(make(1), 2.0))

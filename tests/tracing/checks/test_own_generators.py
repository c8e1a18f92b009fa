"""Generators that a function makes itself, and draws whose number of random bits depends on
arguments: the state after such a draw is computed by the program [B9].
"""

import copy

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.executor.default_pipeline import is_faster_in_python
from tests.each_sample import in_one_test

RATES = (0.3, 0.3, 0.45, 0.6, 0.3, 0.7)


def numbers_of_successes(p):
    rng = np.random.default_rng(3)
    return np.array([rng.binomial(100, p) for _ in range(5)])


def numbers_of_a_random_state(p):
    rng = np.random.RandomState(3)
    return np.array([rng.poisson(10 * p) for _ in range(5)])


def allele_counts(p):
    rng = np.random.RandomState(3)
    counts = np.zeros(20)
    counts[0] = 50 * p
    for i in range(1, 20):
        counts[i] = rng.binomial(100, min(counts[i - 1] / 100, 1))
    return counts


def draws_without_parameters(p):
    rng = np.random.default_rng(3)
    n, numbers = rng.poisson(20 * p), [1, 2, 3, 4]
    rng.shuffle(numbers)
    return n, rng.normal(size=3), rng.integers(0, 9, 4), rng.permutation(6), numbers, rng.random()


def vectors(p):
    rng = np.random.default_rng(3)
    first = rng.gamma(20 * p)
    return first, rng.dirichlet([1.0, 2.0]), rng.multinomial(9, [0.3, 0.7]), rng.choice(5, 3)


def seeded_module(p):
    np.random.seed(3)
    return np.random.binomial(100, p), np.random.rand(3), np.random.choice([1, 2, 3], 2)


def seeded_again(p):
    rng = np.random.RandomState(3)
    first = rng.poisson(20 * p)
    rng.seed(5)
    return first, rng.rand(), rng.poisson(9 * p), rng.randn(2)


def two_generators(p):
    a, b = np.random.default_rng(3), np.random.default_rng(4)
    return [f.binomial(50, p) for f in (a, b, b, a, a)]


RECORDED = [
    *(numbers_of_successes, numbers_of_a_random_state, allele_counts, draws_without_parameters),
    *(vectors, seeded_module, seeded_again, two_generators),
]


def reads_the_state(p):
    rng = np.random.default_rng(3)
    n = rng.poisson(20 * p)
    return n, rng.bit_generator.state["state"]["state"] % 1000


def spawns(p):
    rng = np.random.default_rng(3)
    n = rng.poisson(20 * p)
    return n, rng.spawn(1)[0].random(), rng.random()


def copies(p):
    rng = np.random.default_rng(3)
    n = rng.poisson(20 * p)
    return n, copy.deepcopy(rng).random()


def draws_bytes(p):
    rng = np.random.RandomState(3)
    return rng.poisson(20 * p), rng.bytes(2)[0]


def gradient_inside(p):
    rng = np.random.default_rng(3)
    return lt.grad(lambda q: rng.gamma(3 * q) ** 2)(p), rng.random()


def check_same(expected, actual):
    """Check that two nested results have the same numbers."""
    if isinstance(expected, tuple | list):
        for a, b in zip(expected, actual, strict=True):
            check_same(a, b)
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-13)


@in_one_test
@pytest.mark.parametrize("f", RECORDED)
def test_programs_draw_what_numpy_draws_for_other_parameters(f):
    fn, fast = lt.trace(f, RATES[0]), lt.jit(f)

    for p in RATES:
        check_same(f(p), fn(p))
        check_same(f(p), fast(p))


@in_one_test
@pytest.mark.filterwarnings("ignore:jit calls")
@pytest.mark.parametrize("f", [reads_the_state, spawns, copies, draws_bytes, gradient_inside])
def test_states_that_a_program_cannot_hand_over_are_errors(f):
    with pytest.raises((lt.TraceError, lt.MissingRule)):
        lt.trace(f, RATES[0])

    fast = lt.jit(f)
    for p in RATES:
        check_same(f(p), fast(p))


def test_draws_that_no_parameter_changes_stay_constants():
    def noisy(x):
        rng = np.random.default_rng(3)
        return x * rng.normal(size=2) + rng.random()

    assert PRIMITIVES["generator_draw"] not in {b.op for b in lt.trace(noisy, np.ones(2)).binds}


def test_jit_calls_functions_that_do_little_but_draw_as_python():
    def much_work(x, p):
        return np.exp(x) * np.random.default_rng(3).binomial(100, p)

    few, many = lt.trace(allele_counts, 0.3), lt.trace(much_work, np.ones(1 << 15), 0.3)

    assert is_faster_in_python(allele_counts, few)
    assert not is_faster_in_python(much_work, many)

"""Generators kept between draws: each draw has the numbers and the state of NumPy's generator."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import letir as lt
from letir.ops.random.generator_states import state_of
from letir.testing import assert_same

MAKE = [
    np.random.default_rng,
    np.random.RandomState,
    lambda seed: np.random.Generator(np.random.Philox(seed)),
    lambda seed: np.random.Generator(np.random.SFC64(seed)),
    lambda seed: np.random.Generator(np.random.MT19937(seed)),
]


def drawn(rng):
    return [rng.normal(size=3), rng.standard_normal(), rng.permutation(4), rng.uniform(size=2)]


@pytest.mark.parametrize("make", MAKE)
def test_calls_go_on_where_the_last_one_stopped(make):
    fast, ours, numpys = lt.jit(drawn), make(3), make(3)

    for _ in range(12):
        for a, b in zip(drawn(numpys), fast(ours), strict=True):
            assert_same(a, b)
        assert_same(state_of(numpys), state_of(ours))


def test_the_same_state_twice_gives_the_same_numbers():
    fast = lt.jit(drawn)

    for _ in range(12):
        first, second = fast(np.random.default_rng(5)), fast(np.random.default_rng(5))
        for a, b in zip(first, second, strict=True):
            assert_same(a, b)


def test_threads_in_the_same_states_draw_the_same_numbers():
    fast, start = lt.jit(drawn), threading.Barrier(4)
    expected = [drawn(rng) for rng in [np.random.default_rng(7)] for _ in range(40)]

    def draw(_):
        rng = np.random.default_rng(7)
        start.wait()
        return [fast(rng) for _ in range(40)]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(draw, range(4)):
            for step, others in zip(expected, found, strict=True):
                for a, b in zip(step, others, strict=True):
                    assert_same(a, b)

"""Caches keep no constants of programs alive once a plan is dropped."""

import gc
import tracemalloc

import numpy as np
import pytest

import letir as lt
from tests.each_sample import in_one_test

N = 1 << 15
X = np.ones(N)
ROWS = np.ones((2, N))


def summed(big):
    return lambda x: np.tanh(x * big).sum()


def scanned(big):
    return lambda xs: lt.scan(lambda c, row: (c + (big * row).sum(), c), np.float64(0.0), xs)[0]


def backward(f, x):
    f(lt.Variable(x, requires_grad=True)).backward()


def failing(f, x):
    with pytest.raises(ValueError, match="broadcast"):
        f(x)


def for_sizes(f):
    for n in (5, 7, 9):
        f(X[:n])


WAYS = {
    "jit": lambda big: lt.jit(summed(big))(X),
    "compile": lambda big: lt.compile(lt.trace(summed(big), X))(X),
    "grad": lambda big: lt.grad(lt.jit(summed(big)))(X),
    "vmap": lambda big: lt.vmap(lt.jit(summed(big)))(ROWS),
    "variable": lambda big: backward(lt.jit(summed(big)), X),
    "error": lambda big: failing(lt.jit(lambda x: x * big + np.ones(3)), X),
    "index": lambda big: lt.jit(lambda x: x[np.argsort(big)])(X),
    "scan": lambda big: lt.jit(scanned(big))(ROWS),
    "grad_scan": lambda big: lt.grad(lt.jit(scanned(big)))(ROWS),
    "vmap_scan": lambda big: lt.vmap(lt.jit(scanned(big)))(ROWS[None]),
    "variable_scan": lambda big: backward(lt.jit(scanned(big)), ROWS),
    "map": lambda big: lt.jit(lambda xs: lt.map(lambda row: (row * big).sum(), xs))(ROWS),
    "cond": lambda big: lt.jit(lambda x: lt.cond(x[0] > 0, lambda: x * big, lambda: x - big))(X),
    "while": lambda big: lt.jit(lambda x: lt.while_loop(lambda x: x[0] > 1, lambda x: x * big, x))(
        X
    ),
    "sizes": lambda big: for_sizes(lt.jit(summed(big[:1]))),
}


@in_one_test
@pytest.mark.parametrize("way", WAYS)
def test_constants_are_freed_with_their_plan(way):
    def held() -> int:
        for _ in range(3):
            WAYS[way](np.random.default_rng(0).random(N))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    held()  # fill the caches that stay
    tracemalloc.start()
    try:
        before = held()
        assert held() - before < 8 * N
    finally:
        tracemalloc.stop()

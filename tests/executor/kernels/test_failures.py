"""Interrupts and failed allocations at every place of a call: the next call is right."""

import os
import sys
from contextlib import suppress

import numpy as np
import pytest

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.testing import assert_same
from tests.failing_allocations import allocations
from tests.own_thread import in_own_thread

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

FOLDER = os.path.dirname(lt.__file__)
X = np.random.default_rng(5).normal(size=(720, 500)) + 4


def rows(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True), np.log(e.sum(axis=-1)), (x * x).sum()


def elements(x):
    return x * 2 + 1, (np.sqrt(x * x) / x).astype("f4"), x > 4


def sorted_between(x):
    y = np.sort(np.tanh(x[:60]) * x[:60], axis=0) + 1
    return y @ y.T, (y * y - x[:60]).mean(axis=0)


def loop(x):
    return lt.fori_loop(0, 300, lambda i, v: v * 0.5 + 1 / (v + i + 1), x[0, :4]), x * x + x


def chain(x):
    a, b = x[0, 0], x[0, 1]
    for _ in range(60):
        a, b = a * 0.9 + b * 0.1, b - a * 0.01
    return a, b, np.stack([a, b]) + x[:2, :2]


def gradient(x):
    return lt.value_and_grad(lambda x: (np.tanh(x[:40] @ x[:500, :3]) ** 2).sum() + (x * x).mean())(
        x
    )


FUNCTIONS = [rows, elements, sorted_between, loop, chain, gradient]
EACH = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def threads(request):
    """Threads for all large kernels."""
    from letir.kernels import threads

    before, threads._MAX_RESTING = threads._MAX_RESTING, 0
    threads._pool.resting = threads._pool.pause = 0
    lt.set_num_threads(request.param)
    yield request.param
    threads._MAX_RESTING = before
    lt.set_num_threads(None)


# ---- allocations ----


@EACH
@pytest.mark.parametrize("warm", [1, 12])
def test_a_failed_allocation_leaves_a_plan_usable(function, warm, threads):
    """Memory ends at each allocation of a call, in a new plan and in one that runs often."""
    run, given = lt.compile(lt.trace(function, X)), X.copy()
    for _ in range(warm):
        expected = run(given)
    for n in range(1000):
        found = None
        with allocations(n) as count:
            with suppress(MemoryError):
                found = run(given)
            is_over = count() <= n
        assert is_over == (found is not None)
        assert_same(expected, run(given))
        assert_same(X, given)
        if is_over:
            assert_same(expected, found)
            break

    assert n < 999
    assert n or function is chain  # which allocates a few bytes


@EACH
def test_a_failed_allocation_leaves_a_function_usable(function):
    f = lt.jit(function)
    for _ in range(12):
        expected = f(X)
    for n in range(40):
        found = None
        with allocations(n) as count, suppress(MemoryError):
            found = f(X)
        assert (found is None) == (count() > n)
        assert_same(expected, f(X))


# ---- interrupts ----


@EACH
@pytest.mark.parametrize("threads", [3], indirect=True)
@in_own_thread
def test_an_interrupt_at_any_line_of_a_call_leaves_a_plan_usable(function, threads):
    """KeyboardInterrupt at each line of letir that a call runs."""
    run = lt.compile(lt.trace(function, X))
    for _ in range(12):
        expected = run(X)
    lines, at, errors = 0, None, np.geterr()

    def follow(frame, event, arg):
        nonlocal lines
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        if event == "line":
            lines += 1
            if lines == at:
                raise KeyboardInterrupt
        return follow

    for at in range(1, 400):
        lines = 0
        sys.settrace(follow)
        try:
            found = run(X)
        except KeyboardInterrupt:
            found = None
        finally:
            sys.settrace(None)
        if found is not None and lines < at:
            break
        assert_same(expected, run(X))
        assert np.geterr() == errors

    assert 1 < at < 399

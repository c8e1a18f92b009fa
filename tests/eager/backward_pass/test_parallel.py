"""Backward with worker threads [E3]."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given

import letir as lt
from letir import Variable, eager
from letir.testing import programs

RNG = np.random.default_rng(0)


def variables(*arrays):
    return [Variable(a, requires_grad=True) for a in arrays]


def branches(x, count=20):
    """Many independent branches of different lengths from one value, summed."""
    total = 0.0
    for i in range(count):
        y = x * (i + 0.1)
        for _ in range(i % 5):
            y = np.tanh(y) + x / 3
        total = total + y.sum()
    return total


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_gradients_have_the_bits_of_one_thread(workers):
    """[E3]"""
    array = RNG.normal(size=50)
    one, many = variables(array, array)

    branches(one).backward()
    branches(many).backward(workers=workers)

    lt.testing.assert_same(one.grad.numpy(), many.grad.numpy())


@np.errstate(all="ignore")  # the caller's errstate holds in the workers too
@given(programs())
def test_gradients_of_generated_programs_have_the_bits_of_one_thread(program):
    """[E3]"""
    fn, args = program
    found = []
    for workers in (1, 3):
        inputs = [as_variable(a) for a in args]
        outs = lt.run_forward(fn, *inputs)
        outs = [o for o in (outs if isinstance(outs, tuple) else (outs,)) if requires_grad(o)]
        if not outs:
            return
        cts = [np.ones_like(o.numpy()) for o in outs]
        eager.backward(outs, cts, workers=workers)
        found.append([v.grad for v in inputs if requires_grad(v)])

    for one, many in zip(*found, strict=True):
        assert (one is None) == (many is None)
        if one is not None:
            lt.testing.assert_same(one.numpy(), many.numpy())


def as_variable(array):
    inexact = hasattr(array, "dtype") and array.dtype.kind in "fc"
    return Variable(array, requires_grad=True) if inexact else array


def requires_grad(value):
    return isinstance(value, Variable) and value.requires_grad


def test_gradients_of_several_results_of_one_node_are_accumulated():
    """[E3]"""
    (x,) = variables(RNG.normal(size=(4, 6)))
    a, b, _ = np.split(x, 3, axis=1)

    eager.backward([(a * b).sum(), (b * 2).sum()], workers=3)

    expected = np.concatenate([b.numpy(), a.numpy() + 2, 0 * a.numpy()], axis=1)
    np.testing.assert_array_equal(expected, x.grad.numpy())


def test_independent_nodes_run_concurrently():
    """[E3] Two hooks wait for each other, which would never end on one thread."""
    barrier = threading.Barrier(2, timeout=1200)
    (x,) = variables(np.ones(3))
    a, b = np.exp(x), np.sin(x)

    def meet(ct):
        barrier.wait()

    for y in (a, b):
        y.register_hook(meet)

    (a + b).sum().backward(workers=2)

    np.testing.assert_array_equal(np.exp(1.0) + np.cos(np.ones(3)), x.grad.numpy())


def test_an_exception_reaches_the_caller_and_ends_all_workers():
    """[E3]"""

    def fails(ct):
        raise ZeroDivisionError("in a hook")

    (x,) = variables(RNG.normal(size=5))
    y = x * 2
    y.register_hook(fails)
    before = threading.active_count()

    with pytest.raises(ZeroDivisionError, match="in a hook"):
        (y.sum() + branches(x)).backward(workers=4)

    assert before == threading.active_count()
    assert x.grad is None


def test_of_several_exceptions_one_is_raised():
    """[E3]"""
    (x,) = variables(np.ones(3))
    parts = [np.exp(x) for _ in range(4)]
    for i, part in enumerate(parts):
        part.register_hook(lambda ct, i=i: [][i])

    with pytest.raises(IndexError):
        sum(parts).sum().backward(workers=4)


def test_slow_nodes_do_not_change_gradients():
    """[E3] Cotangents are summed in the order of their nodes, whichever arrives first."""

    def gradient(workers):
        (x,) = variables(np.array([1e16, 1.0, -1e16, 3.0]))
        parts = [np.sin(x), x * 1e16, x * -1e16, x * 1.5]
        for i, part in enumerate(parts):
            part.register_hook(lambda ct, i=i: time.sleep(0.002 * (i % 3)))
        sum(parts).sum().backward(workers=workers)
        return x.grad.numpy()

    lt.testing.assert_same(gradient(1), gradient(4))


def test_modes_of_the_caller_apply_in_the_workers():
    """[E3]"""
    (x,) = variables(np.array([0.0, 1.0]))
    seen = []
    y = np.exp(x)
    y.register_hook(lambda ct: seen.append(eager.is_grad_enabled()))

    (y * x).sum().backward(workers=2)

    assert seen == [False]


def test_values_are_freed_as_with_one_thread():
    """[E3], [E4]"""
    (x,) = variables(RNG.normal(size=5))
    y = branches(x)
    y.backward(workers=2)

    with pytest.raises(lt.TraceError, match="for the second time"):
        y.backward(workers=2)


def test_gradients_accepts_workers():
    """[E3]"""
    x, w = variables(RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2)))
    y = np.tanh(x @ w) @ w.T

    one = eager.gradients(y, [x, w], np.ones((3, 4)), retain_graph=True)
    many = eager.gradients(y, [x, w], np.ones((3, 4)), workers=2)

    for a, b in zip(one, many, strict=True):
        lt.testing.assert_same(a.numpy(), b.numpy())


@pytest.mark.parametrize("workers", [0, -1, 2.0, None])
def test_an_invalid_number_of_workers_is_an_error(workers):
    (x,) = variables(np.ones(2))

    with pytest.raises(lt.LetirError, match="workers must be"):
        x.sum().backward(workers=workers)

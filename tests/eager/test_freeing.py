"""[E4] Which values a history keeps alive, when they are freed, and long histories."""

import gc
import time
import weakref

import numpy as np
import pytest

from letir import Function, Variable
from letir.eager import gradients, history
from letir.eager.tape import Cut
from tests.hazards.small_stack import on_a_small_stack


@pytest.fixture(autouse=True)
def without_garbage_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def leaf(array=None):
    return Variable(np.ones(3) if array is None else array, requires_grad=True)


def test_a_value_that_no_rule_reads_is_freed_with_its_variable():
    """[E4]"""
    x = leaf()
    y = np.exp(x) + 1.0
    z = y * 2.0
    watched = weakref.ref(y.data)
    del y

    assert watched() is None
    assert z.requires_grad


def test_a_saved_value_is_freed_by_backward():
    """[E4]"""
    x = leaf()
    y = np.sin(x) + 0.0
    z = (y * y).sum()
    watched = weakref.ref(y.data)
    del y
    assert watched() is not None
    z.backward(retain_graph=True)
    assert watched() is not None
    z.backward()

    assert watched() is None


def test_a_history_is_freed_with_its_last_variable():
    """[E4] There is no reference cycle, even where an operation saves its own result."""
    x = leaf()
    y = np.exp(x)
    z = np.tanh(y * y)
    watched = [weakref.ref(y.data), weakref.ref(z.data), weakref.ref(z.grad_fn)]
    del y, z

    assert [None, None, None] == [ref() for ref in watched]


def test_views_create_no_reference_cycle():
    y = leaf() * 1.0
    part = y[1:]
    part += 1.0
    watched = [weakref.ref(y), weakref.ref(part), weakref.ref(y.data)]
    del y, part

    assert [None, None, None] == [ref() for ref in watched]


def test_hooks_create_no_reference_cycle():
    x = leaf()
    y = x * x
    y.register_hook(lambda g: None)
    y.grad_fn.register_hook(lambda *_: None)
    y.retain_grad()
    y.sum().backward()
    watched = [weakref.ref(y), weakref.ref(y.grad_fn)]
    del y

    assert [None, None] == [ref() for ref in watched]


def test_a_function_that_saves_its_result_creates_no_reference_cycle():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = np.exp(x)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            _, y = ctx.saved_tensors
            return grad * y

    y = Exp.apply(leaf())
    watched = [weakref.ref(y), weakref.ref(y.data), weakref.ref(y.grad_fn)]
    y.sum().backward(retain_graph=True)
    gradients(y.sum(), y)
    del y

    assert [None, None, None] == [ref() for ref in watched]


def test_gradients_with_a_history_create_no_reference_cycle():
    x = leaf()
    y = np.exp(x)
    dx = gradients(y.sum(), x, create_graph=True)
    watched = [weakref.ref(y.grad_fn), weakref.ref(dx.grad_fn)]
    del y, dx

    assert [None, None] == [ref() for ref in watched]


def test_an_error_in_backward_keeps_no_value_alive():
    x = leaf()
    y = np.exp(x) * 1.0
    handle = x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (y * y).sum().backward()
    handle.remove()
    watched = weakref.ref(y.data)
    del y

    assert watched() is None


def test_a_leaf_is_not_kept_alive_by_nodes_that_do_not_read_it():
    x = leaf()
    y = x + 1.0
    watched = weakref.ref(x)
    del x

    assert watched() is None
    assert y.requires_grad


def chain(x, length):
    """x * x, then - x, then * x and so on: maps 1 to ``1 - length / 2``."""
    y = x
    for i in range(length):
        y = y - x if i % 2 else y * x
    return y


@pytest.mark.parametrize("length", [30_000, pytest.param(10**6, marks=pytest.mark.slow)])
def test_long_histories_use_no_stack(length):
    """[A3] Histories are built, read, run backward and freed without recursion."""

    def act():
        x = leaf(np.float64(1.0))
        y = chain(x, length)
        program = history(y)
        y.backward(retain_graph=True)
        dx = gradients(y, x)
        watched = weakref.ref(y.grad_fn)
        del y
        return len(program), x.grad.item(), dx.item(), watched()

    count, grad, again, kept = on_a_small_stack(act)

    assert length == count
    assert grad == again
    assert kept is None


def test_a_long_history_is_freed_without_stack_after_backward():
    def act():
        y = chain(leaf(np.float64(1.0)), 10**5)
        y.backward()
        watched = weakref.ref(y.grad_fn)
        del y
        return watched()

    assert on_a_small_stack(act) is None


@pytest.mark.parametrize("others", range(4))
def test_cuts_stand_at_bounded_distances_along_a_history(others):
    """Also where only every second or third node is on the path to the leaf."""
    x = leaf(np.float64(1.0))
    y, gap, longest = x, 0, 0
    for _ in range(2000):
        y = y * x
        for _ in range(others):
            _ = x + 1.0
        gap = 0 if type(y.grad_fn) is Cut else gap + 1
        longest = max(gap, longest)

    assert longest < 300


def test_a_cut_keeps_shared_nodes_until_their_last_user_is_freed():
    x = leaf(np.float64(1.0))
    y = chain(x, 300)
    z = y
    for _ in range(300):
        z = z + 1.0
    middle = weakref.ref(y.grad_fn)
    del z
    assert middle() is not None
    y.backward()
    del y

    assert middle() is None
    assert x.grad is not None


def test_a_long_history_of_gradients_uses_no_stack():
    def act():
        x = leaf(np.float64(1.0))
        y = chain(x, 10**4)
        dx = gradients(y, x, create_graph=True)
        ddx = gradients(dx, x)
        return dx.requires_grad, ddx.item()

    assert on_a_small_stack(act)[0]


@pytest.mark.slow
def test_backward_takes_time_linear_in_the_length_of_the_history():
    """[A3] The cost of a node at length 10^6 is at most 1.5 times the one at 10^4."""

    def cost(length):
        x = leaf(np.float64(1.0))
        start = time.process_time()
        chain(x, length).backward()
        return (time.process_time() - start) / length

    cost(10**4)
    short = min(cost(10**4) for _ in range(5))
    long = min(cost(10**6) for _ in range(2))

    assert long < 1.5 * short

"""Variables: gradients through computations and replays."""

import numpy as np
import pytest

import letir as lt
from letir import Variable
from letir.eager import gradients, history


def leaf(*numbers, **options):
    return Variable(np.array(numbers), requires_grad=True, **options)


def test_replays_of_a_history_accumulate_gradients():
    """[B7] The example of the semantics page."""
    x, y = leaf(4.0), leaf(7.0)
    z = x * y
    program = history(z)
    z.sum().backward()

    assert (7.0, 4.0) == (x.grad.item(), y.grad.item())

    x.data, y.data = np.array([2.0]), np.array([3.0])
    program(x, y).sum().backward()

    assert (10.0, 6.0) == (x.grad.item(), y.grad.item())


def test_a_replay_on_fresh_leaves_has_gradients():
    """[B7]"""
    program = history(leaf(4.0) * leaf(7.0))
    x, y = leaf(2.0), leaf(3.0)
    lt.run_forward(program, x, y).sum().backward()

    assert (3.0, 2.0) == (x.grad.item(), y.grad.item())


def test_gradients_may_be_differentiated():
    x = leaf(1.0, 2.0)
    first = gradients((x**3).sum(), x, create_graph=True)
    second = gradients(first.sum(), x, create_graph=True)
    third = gradients(second.sum(), x)

    np.testing.assert_allclose([3.0, 12.0], first.data)
    np.testing.assert_allclose([6.0, 12.0], second.data)
    np.testing.assert_allclose([6.0, 6.0], third.data)


def test_backward_of_a_value_that_requires_no_grad_is_an_error():
    with pytest.raises(lt.TraceError, match="does not require grad"):
        Variable(1.0).backward()

"""A Variable has a copy of the array that it is made of, unless ``copy=False`` is given."""

import copy
import pickle

import numpy as np
import pytest

from letir import TraceError, Variable, no_grad
from letir.eager import gradients


def test_a_change_of_the_array_after_the_forward_pass_does_not_change_the_gradient():
    base = np.array([1.0, 2.0])
    x = Variable(base, requires_grad=True)
    y = (x * x).sum()
    base[:] = 100.0
    y.backward()

    np.testing.assert_array_equal([2.0, 4.0], x.grad.data)


def test_without_a_copy_the_variable_shares_the_array():
    base = np.array([1.0, 2.0])
    x = Variable(base, requires_grad=True, copy=False)
    y = (x * x).sum()
    base[:] = 100.0
    y.backward()

    assert x.data is base
    np.testing.assert_array_equal([200.0, 200.0], x.grad.data)


def test_a_write_through_a_variable_is_noticed_by_backward():
    x = Variable(np.array([1.0, 2.0]), requires_grad=True, copy=False)
    y = (x * x).sum()
    with no_grad():
        x *= 100.0

    assert x.version == 1
    with pytest.raises(TraceError, match="changed in place"):
        y.backward()


@pytest.mark.parametrize(
    "layout",
    [lambda x: x, lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x.T[::-1]],
)
def test_the_copy_has_the_memory_order_of_the_array(layout):
    """Products and sums round by it."""
    array = layout(np.random.default_rng(0).normal(size=(30, 40)))
    x = Variable(array)

    assert x.data.strides == array.strides
    assert not np.shares_memory(x.data, array)
    assert array.sum().tobytes() == x.sum().data.tobytes()


@pytest.mark.parametrize("other", [Variable, lambda x: x])
def test_a_variable_of_a_variable_has_a_copy(other):
    base = np.array([1.0, 2.0])
    x = Variable(other(base))
    x += 1.0

    np.testing.assert_array_equal([1.0, 2.0], base)


def test_a_copy_of_a_read_only_array_can_be_written_to():
    x = Variable(np.broadcast_to(1.0, 3))
    x[0] = 5.0

    np.testing.assert_array_equal([5.0, 1.0, 1.0], x.data)


@pytest.mark.parametrize("duplicate", [copy.copy, lambda x: pickle.loads(pickle.dumps(x))])
def test_duplicates_share_no_memory(duplicate):
    x = Variable(np.array([1.0, 2.0]), requires_grad=True)
    y = duplicate(x)

    assert y.requires_grad and not np.shares_memory(x.data, y.data)


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_do_not_share_the_memory_of_the_cotangent(create_graph):
    x, ct = Variable(np.ones(3), requires_grad=True), np.ones((3, 1))
    found = gradients(x.reshape(3, 1), x, ct, create_graph=create_graph)

    assert not np.shares_memory(found.data, ct)

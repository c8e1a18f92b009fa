"""Errors for in-place changes of arrays that others can see [B6].

Word by word; NN stands for the line at fault.
"""

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.errors import DTypeError, ShapeError, TraceError

X = np.array([1.0, 2.0, 3.0])


def test_an_argument_of_an_inner_function_cannot_be_changed_from_within(told):
    def program(x):
        y = x * 2

        def inner(z):
            y[0] = 1.0  # here
            return (y * z).sum()

        return lt.grad(inner)(x)

    message = """\
a traced float64[3] of an outer function cannot be changed in place
  at test_wrong_writes.py:NN
  return the new value from the inner function"""

    assert (TraceError, message) == told(program, X)


def test_an_ordinary_array_cannot_be_changed(told):
    def program(x):
        table = lnp.asarray(X)
        table[0] = x[0]  # here
        return table

    message = """\
float64[3] of an ordinary array cannot be changed in place
  at test_wrong_writes.py:NN
  copy it first: letir.numpy.array(a)"""

    assert (TraceError, message) == told(program, X)


@pytest.mark.parametrize("view", [np.diagonal, lambda y: np.broadcast_to(y, (2, 3, 3))])
def test_writing_into_arrays_that_numpy_protects_is_refused(view):
    def program(x):
        view(x * np.ones((3, 1)))[0] = 1.0
        return x

    with pytest.raises(ValueError, match="assignment destination is read-only"):
        program(X)
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        lt.trace(program, X)


def test_a_reshape_in_unknown_memory_order_cannot_be_changed(told):
    """[B6] Whether NumPy copies depends on the memory order, which letir does not guess."""

    def program(x):
        y = x.T @ x
        row = y.reshape(-1)
        y[0] = 1.0  # here
        return row

    message = """\
float64[3, 3] or a reshape of it is changed in place. Whether the other one changes \
too depends on NumPy's memory order, which is not known
  at test_wrong_writes.py:NN
  copy what you reshape, x.copy().reshape(...), or trace with concrete arrays"""

    assert (TraceError, message) == told(program, lt.ShapeDtype((3, 3)))


def test_integers_cannot_become_floats_in_place(told):
    def program(n):
        y = n * 2
        y += 0.5  # here
        return y

    message = """\
a result of dtype float64 cannot be written in place into int64[3]: casting is 'same_kind'
  at test_wrong_writes.py:NN
  write x = x + y, which makes a new array, or convert first: x.astype(float)"""
    assert (DTypeError, message) == told(program, np.arange(3))


def test_an_array_cannot_grow_in_place(told):
    def program(x):
        y = x * 2
        y += np.ones((2, 3))  # here
        return y

    message = """\
a result of shape (2, 3) cannot be written in place into shape (3,)
  at test_wrong_writes.py:NN
  write x = x + y, which makes a new array"""
    assert (ShapeError, message) == told(program, X)


def test_a_traced_value_cannot_be_changed_in_a_pause(told):
    def program(x):
        y = x * 2
        with lt.pause_tracing():
            y[0] = 1.0  # here
        return y

    message = """\
while tracing is paused, a traced float64[3] cannot be changed in place
  at test_wrong_writes.py:NN
  compute with a copy of it"""
    assert (TraceError, message) == told(program, X)

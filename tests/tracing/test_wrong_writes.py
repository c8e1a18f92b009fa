"""What a user is told who changes in place what others can see [B6].

Word by word; NN stands for the line at fault.
"""

import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError, ShapeError, TraceError

X = np.array([1.0, 2.0, 3.0])


def argument(x):
    x[0] = 1.0  # here
    return x


def augmented_argument(x):
    x += 1.0  # here
    return x


def out_argument(x):
    return np.add(x, 1.0, out=x)  # here


@pytest.mark.parametrize("program", [argument, augmented_argument, out_argument])
def test_an_argument_cannot_be_changed(told, program):
    message = """\
an argument of the traced function, float64[3], cannot be changed in place
  at test_wrong_writes.py:NN
  copy it first, x = x.copy(), or make a new array: x = x + y, x.at[i].set(v)"""

    assert (TraceError, message) == told(program, X)


def view_of_argument(x):
    part = x[1:]
    part += 1.0  # here
    return x


def test_an_argument_cannot_be_changed_through_a_view(told):
    message = """\
an argument of the traced function, float64[3], cannot be changed in place
  at test_wrong_writes.py:NN
  copy it first, x = x.copy(), or make a new array: x = x + y, x.at[i].set(v)"""

    assert (TraceError, message) == told(view_of_argument, X)


def reshaped(x):
    y = (x * 2).reshape(-1, 1)
    y += 1  # here
    return y


def view_of_view(x):
    y = x * np.ones((2, 1))
    y[0][1:][0] = 1.0  # here
    return y


def part_of_split(x):
    first, _, _ = np.split(x * 2, 3)
    first[0] = 1.0  # here
    return first


INDIRECT = [
    (reshaped, "float64[3, 1]", "float64[3]"),
    (view_of_view, "float64[2]", "float64[2, 3]"),
    (part_of_split, "float64[1]", "float64[3]"),
]


@pytest.mark.parametrize(("program", "kind", "base"), INDIRECT)
def test_a_view_that_is_no_plain_index_cannot_be_changed(told, program, kind, base):
    message = f"""\
{kind}, a view of {base} that is no plain x[i], cannot be changed in place
  at test_wrong_writes.py:NN
  copy it first, y = x.T.copy(), or write into the whole: x = x.at[i].set(v)"""

    assert (TraceError, message) == told(program, X)


def test_an_array_with_a_live_view_cannot_be_changed(told):
    def program(x):
        y = x * 2
        part = y[1:]
        y[0] = 1.0  # here
        return part

    message = """\
float64[3], of which another view is still in use, cannot be changed in place
  at test_wrong_writes.py:NN
  copy the view, y = x[i].copy(), or make a new array: x = x.at[i].set(v)"""
    assert (TraceError, message) == told(program, X)


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

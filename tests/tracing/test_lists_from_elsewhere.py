"""Functions of NumPy's that get lists of traced values from attributes and other functions."""

from collections import deque

import numpy as np
import pytest
from numpy import arcsinh, fmax, nanmedian

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test


class Points:
    """Holds a list."""

    def __init__(self, x):
        self.values = [x[0], 2 * x[1]]
        self.queue = deque(self.values, maxlen=3)


def rows(x):
    return [[x[0], 1.0], (2.0, x[1])]


def exp2(v):
    return np.exp2(v)


def own_arcsinh(v):
    return arcsinh(v)


def guarded_rint(v):
    try:
        return np.rint(v)
    except (lt.TraceError, TypeError):
        return np.zeros(2)


class Signal:
    """Holds an array, which NumPy asks for."""

    def __init__(self, values):
        self.values = np.asarray(values, float)

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


OBJECTS = {
    "ufunc": lambda x: np.tan(Signal(x)),
    "two operands": lambda x: np.nextafter(Signal(x), 1.0) + np.arctan2(1.0, Signal(x)),
    "imported name": lambda x: fmax(Signal(x), Signal(-x)),
    "method": lambda x: np.floor_divide.outer(Signal(x * x), Signal(x)),
    "function in Python": lambda x: np.nanpercentile(Signal(x), 30) + np.nanstd(Signal(x)),
}


@pytest.mark.parametrize("f", OBJECTS.values(), ids=OBJECTS)
def test_a_function_takes_an_object_that_holds_a_traced_array(f):
    x, y = np.array([0.5, -1.25]), np.array([2.5, 0.75])

    program = lt.trace(f, x)

    assert_same(f(y), program(y))
    assert_same(f(y), lt.jit(f)(y))


FUNCTIONS = {
    "attribute": lambda x: np.cbrt(Points(x).values),
    "argument of a helper": lambda x: exp2([x[0], 1.0]),
    "imported name": lambda x: own_arcsinh([x[0], 1.0]),
    "tuple": lambda x: np.arctan2((x[0], x[1]), (1.0, x[0])),
    "reduce": lambda x: np.fmin.reduce(Points(x).values),
    "reduce of an imported name": lambda x: fmax.reduce([x, 2 - x]),
    "outer of tuples": lambda x: np.copysign.outer((x[0], -1.0), x),
    "another name": lambda x: np.fabs(Points(x).values) + np.abs(Points(x).values),
    "error that is caught": lambda x: guarded_rint(Points(x).values),
    "in a nested derivative": lambda x: lt.grad(lambda y: np.deg2rad([y, x[0]]).sum())(x[1]),
    "a function in Python": lambda x: np.nanvar(Points(x).values) + np.trapezoid(Points(x).values),
    "imported function": lambda x: nanmedian(Points(x).values),
    "several functions": lambda x: (
        np.interp(0.5, [0.0, 1.0], Points(x).values) * np.fft.rfft(x.tolist())
    ),
    "gradient": lambda x: np.gradient(Points(x).values, [0.0, 2.0]),
    "linear algebra": lambda x: np.linalg.cond(rows(x)) + np.linalg.slogdet(rows(x))[1],
    "mean of a deque": lambda x: np.mean(Points(x).queue) + np.std(deque([x, 2 * x]), axis=0),
    "dot of deques": lambda x: np.dot(Points(x).queue, deque([x, 2 * x])),
    "deque in an expression": lambda x: x * Points(x).queue + np.argmax(Points(x).queue),
    "array of a deque": lambda x: np.array(Points(x).queue) + np.vstack(deque([x, x])),
    "star": lambda x: np.hypot(*zip(*[(a, b) for a, b in zip(x, 2 * x, strict=True)], strict=True)),
}


@in_one_test
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_takes_a_list_that_it_gets_from_elsewhere(f):
    x, y = np.array([0.5, -1.25]), np.array([2.5, 0.75])

    program = lt.trace(f, x)

    assert_same(f(x), program(x))
    assert_same(f(y), program(y))
    assert_same(f(y), lt.jit(f)(y))


def test_a_function_that_counts_is_not_called_twice():
    """The error is raised instead: what the first call changed cannot be undone."""
    calls = []

    def inner(v):
        return np.logaddexp2(v, 0.0).sum()  # no other test gives it a list

    def f(x):
        calls.append(len(calls))
        return inner([x, x * len(calls)])

    with pytest.raises(lt.TraceError, match="ordinary array"):
        lt.grad(f)(1.0)

    assert calls == [0]
    assert lt.grad(f)(1.0) == pytest.approx(2 / 3 + 2 * 4 / 5)


def test_draws_are_not_repeated():
    rng, same = np.random.default_rng(1), np.random.default_rng(1)

    def inner(v):
        return np.float_power(v, 2.0).sum()  # no other test gives it a list

    def f(x):
        return inner([x * rng.random(), x])

    with pytest.raises(lt.TraceError, match="ordinary array"):
        lt.grad(f)(1.0)
    same.random()

    assert lt.grad(f)(1.0) == pytest.approx(2 * same.random() ** 2 + 2)

"""``trace(..., check=True)`` records twice, and refuses values that became constants [B2]."""

import itertools
import re
import time

import numpy as np
import pytest

import letir as lt
from letir.errors import TraceError
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])
N = np.array([2, 0, 1])
counter = itertools.count()
seen: list = []


def leaks(x):
    with lt.pause_tracing():
        total = float(x.sum())
    return np.sin(x) * total  # here


def test_a_value_that_became_a_constant_is_reported_with_its_line(told):
    message = """\
check: recorded at other values, the function gives another program
  at test_baked_constants.py:NN: np.sin(x) * total
    lambda %0: float64[3]             lambda %0: float64[3]
    %1: float64[3] = sin(%0)          %1: float64[3] = sin(%0)
    %2: float64[3] = mul(%1, 6.0)  |  %2: float64[3] = mul(%1, 6.00NN)
    return %2                         return %2
  a value of its arguments is in the program as a number: compute with the traced value, or
  take letir.concrete(x), which records a guard"""

    kind, found = told(leaks, X, check=True)

    assert (TraceError, message) == (kind, re.sub(r"6\.00\d+", "6.00NN", found))


def remembers(x):
    seen.append(1)
    return x * len(seen)


CHANGING = {
    "a counter": lambda x: x * next(counter),
    "the clock": lambda x: x + time.perf_counter(),
    "a list that grows": remembers,
    "a number of operations": lambda x: sum([x] * next(counter), x),
    "a result": lambda x: (x, float(next(counter))),
    "an array": lambda x: x + np.array([next(counter), 0, 0]),
    "the nesting of results": lambda x: {str(next(counter)): x},
    "a setting": lambda x: x.reshape((3, 1) if next(counter) % 2 else (1, 3)),
}


@pytest.mark.parametrize("name", CHANGING)
def test_a_function_whose_result_changes_between_calls_is_refused(name):
    with pytest.raises(TraceError, match="it reads what changes between calls"):
        lt.trace(CHANGING[name], X, check=True)


def value_of(x):
    with lt.pause_tracing():
        return np.asarray(x)


BAKED = {
    "an array": lambda x: x + value_of(x),
    "a result": lambda x: (x, float(value_of(x)[0])),
    "an order": lambda x: (
        x[[int(i) for i in value_of(np.argsort(value_of(x) * [1, -1, 1]))]] * 2 + value_of(x).max()
    ),
    "a number of one argument": lambda x, y: x * float(value_of(y)),
    "an integer": lambda x, n: x * int(value_of(n)),
    "a leaf": lambda tree: tree["a"][0] * value_of(tree["b"]),
    "behind a guard that holds": lambda x: x * value_of(x) if x.sum() > 0 else x,
}
ARGUMENTS = {
    "a number of one argument": (X, 2.0),
    "an integer": (X, 3),
    "a leaf": ({"a": [X], "b": X.astype(np.float32)},),
}


@pytest.mark.parametrize("name", BAKED)
def test_a_value_read_from_an_argument_is_refused(name):
    with pytest.raises(TraceError, match="a value of its arguments is in the program"):
        lt.trace(BAKED[name], *ARGUMENTS.get(name, (X,)), check=True)


def newton(x):
    y = x
    while abs(y * y - x) > 1e-9:
        y = (y + x / y) / 2
    return y


def buffered(x):
    out = np.zeros(3)
    out[:2] = x[:2]
    return out


GOOD = {
    "plain": (lambda x: np.tanh(x) * 2 + X, X),
    "a branch": (lambda x: x if x[0] > 1.0 else -x, X),
    "a branch near its border": (lambda x: np.sin(x) if x[0] > 1.0005 else -x, X),
    "a loop until it converges": (newton, 2.0),
    "concrete": (lambda x: x * float(lt.concrete(x.sum())), X),
    "a mask": (lambda x: x[x > 1.0001], X),
    "lengths": (lambda x: (np.unique(np.floor(x)), np.nonzero(x > 1.0002)), X),
    "integers": (lambda n, x: x[n] * n.max(), N, X),
    "a count": (lambda n, x: sum(x for _ in range(n)), 3, X),
    "a choice": (lambda x: max(x[0], x[1]) * x, np.array([1.0, 1.0005, 2.0])),
    "a size": (lambda x: x.sum() / len(x), X),
    "what fails elsewhere": (lambda x: np.linalg.cholesky(x @ x.T * 0 + np.eye(1)), X[None]),
    "static arguments": (lambda x, name: getattr(np, name)(x), X, "tanh"),
    "complex numbers": (lambda x: x * np.conj(x), X + 1j),
    "single precision": (lambda x, s: x * s, X.astype(np.float32), 0.5),
    "nothing": (lambda x: x, np.zeros((0, 3))),
    "a type": (lambda x: x + 1, lt.ShapeDtype((3,), float)),
}


@in_one_test
@pytest.mark.parametrize("name", GOOD)
def test_the_check_does_not_change_the_program(name):
    f, *args = GOOD[name]

    assert lt.trace(f, *args) == lt.trace(f, *args, check=True)


def test_the_check_works_with_other_options():
    f = lt.trace(buffered, X, intercept=True, check=True)

    assert_same(buffered(2 * X), f(2 * X))
    assert lt.trace(np.sin, X, abstract=True, check=True) == lt.trace(np.sin, X)


def test_the_check_does_not_change_arguments():
    x = X.copy()

    lt.trace(np.sin, x, check=True)

    assert_same(X, x)


def test_the_check_passes_static_arguments_on():
    f = lt.trace(lambda x, module: module.sin(x), X, np, static_argnums=1, check=True)

    assert_same(np.sin(X), f(X, np))


def doubled(x):
    x *= 2
    return x.sum()


def test_a_function_that_writes_into_its_arguments_is_checked_on_copies():
    x = X.copy()

    lt.trace(doubled, x, check=True)

    assert_same(X, x)


def test_a_function_that_reads_what_recordings_cannot_see_is_refused(told):
    message = """\
check: the program and the function give different results
  the function: [array([2., 4., 6.])]
  the program:  [array([1., 2., 3.])]
  it reads what a recording cannot see: the type, identity or text of an argument
  use isinstance(x, numpy.ndarray), which answers as for an array"""

    def program(x):
        return x * 1 if getattr(x, "emitter", None) else x * 2

    assert (TraceError, message) == told(program, X, check=True)

import collections.abc
import functools
import math
from collections import deque
from enum import Enum, member

import numpy as np
import pytest
import scipy.special
from attrs import frozen

import letir as lt
from tests.each_sample import in_one_test

OPERATORS = {"sin": math.sin, "float": float, "softmax": scipy.special.softmax}
PAIR = (math.sin, [math.exp])
LIST = [np.add, math.sin]
QUEUE = deque([functools.partial(math.pow, 2.0)])
NUMBERS = (int, float)
KIND = float
Loopable = collections.abc.Iterable


class Functions(Enum):
    SINE = member(functools.partial(math.sin))


class Node:
    """A node of an expression tree."""

    kind = float
    function = staticmethod(math.sin)

    def __init__(self, f, *children):
        self.f, self.children = f, children

    def __call__(self, x):
        return self.f(*[child(x) for child in self.children]) if self.children else x

    def call_function(self, x):
        return self.function(x)


@frozen
class Layer:
    """A class with slots."""

    activate: object

    def __call__(self, x):
        return self.activate(x)


CALLS = {
    "dict": lambda x: OPERATORS["sin"](x) + OPERATORS["float"](x),
    "scipy": lambda x: OPERATORS["softmax"](np.array([x, 2 * x]))[0],
    "tuple": lambda x: PAIR[0](2 * x),
    "list in a tuple": lambda x: PAIR[1][0](2 * x),
    "list": lambda x: LIST[1](2 * x),
    "map": lambda x: sum(map(LIST[1], [x, 2 * x])),
    "partial in a deque": lambda x: QUEUE[0](2 * x),
    "enumeration": lambda x: Functions.SINE.value(2 * x),
    "tree": Node(math.sin, Node(math.cosh, Node(None))),
    "static method": Node(None).call_function,
    "slots": Layer(math.sin),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_in_containers_and_objects_are_recorded(name):
    f = CALLS[name]
    slope = (f(0.3 + 1e-6) - f(0.3 - 1e-6)) / 2e-6

    lt.testing.assert_same(lt.trace(f, 0.7)(0.3), f(0.3))
    lt.testing.assert_same(lt.jit(f, exact=True)(0.3), f(0.3))
    assert lt.grad(f)(0.3) == pytest.approx(slope)


def test_nothing_is_left_in_the_containers():
    lt.trace(CALLS["dict"], 0.7)
    lt.trace(CALLS["tuple"], 0.7)
    lt.trace(CALLS["static method"], 0.7)

    assert OPERATORS == {"sin": math.sin, "float": float, "softmax": scipy.special.softmax}
    assert OPERATORS["float"] is float
    assert PAIR[0] is math.sin
    assert Node.kind is float
    assert Node.function is math.sin


def test_an_item_that_the_function_replaces_is_kept():
    table = {"f": math.sin, "g": math.cos}

    def f(x):
        y = table["f"](x) + table["g"](x)
        table["f"] = math.exp
        return y

    lt.jit(f)(0.5)

    assert table == {"f": math.exp, "g": math.cos}


def test_a_rebound_item_is_read_by_the_next_recording():
    table = {"f": math.sin}
    assert lt.grad(lambda x: table["f"](2 * x))(0.25) == pytest.approx(2 * math.cos(0.5))

    table["f"] = math.exp

    assert lt.grad(lambda x: table["f"](2 * x))(0.25) == pytest.approx(2 * math.exp(0.5))


CLASS_TESTS = {
    "class attribute": lambda x: type(x) is Node.kind,
    "__class__": lambda x: x.__class__ is float,
    "any": lambda x: any(type(x) is kind for kind in NUMBERS),
    "another name": lambda x: type(x) is KIND,
    "default": lambda x, kind=float: type(x) is kind,
    "dict": lambda x: type(x) is OPERATORS["float"],
    "class with another name": lambda x: not isinstance(x, Loopable),
    "method": lambda x: getattr(x, "hex", None) is not None,
}


@in_one_test
@pytest.mark.parametrize("name", CLASS_TESTS)
@pytest.mark.parametrize("value", [0.5, 2, np.float64(0.5), np.array(0.5), np.ones(2)])
def test_questions_for_the_class_are_answered_as_without_a_recording(name, value):
    def f(x):
        return x * 2 if CLASS_TESTS[name](x) else x * 3

    lt.testing.assert_same(lt.trace(f, value)(value), f(value))

"""Generators, texts, dates, sets and other values without derivatives among the arguments."""

import array
import threading
from collections import ChainMap, Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test


@dataclass
class Sampler:
    """A dataclass that holds a generator."""

    rng: Any
    scale: float = 2.0


class Environment:
    """An object that holds a generator in a list."""

    def __init__(self, rng):
        self.parts = [rng]


def generator_in(place):
    while not hasattr(place, "normal"):
        if isinstance(place, dict):
            place = place["rng"]
        elif isinstance(place, list):
            place = place[0]
        else:
            place = getattr(place, "rng", None) or place.parts
    return place


@pytest.mark.filterwarnings("ignore:jit calls")
@in_one_test
@pytest.mark.parametrize(
    "put", [lambda g: g, lambda g: {"rng": [g]}, Sampler, Environment, lambda g: [Environment(g)]]
)
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize(
    "slope",
    [
        lambda f: lt.grad(f, argnums=1),
        lambda f: lt.jit(lt.grad(f, argnums=1)),
        lambda f: lt.jacobian(f, argnums=1),
        lambda f: lambda place, x: lt.vjp(f, place, x)[0] / x,
    ],
)
def test_generators_anywhere_in_the_arguments_advance_in_derivatives(put, make, slope):
    def f(place, x):
        return (generator_in(place).normal(size=2) * x).sum()

    derivative, ours, numpys = slope(f), put(make(3)), make(3)
    for _ in range(3):
        np.testing.assert_allclose(derivative(ours, 2.0), numpys.normal(size=2).sum())


class Linked:
    """An object that refers to itself."""

    def __init__(self, value):
        self.value, self.own = value, self


def size_of(value):
    if isinstance(value, Linked):
        value.value += 1.0
        return value.own.value
    if isinstance(value, np.ndarray) and value.dtype.names:
        return value["size"].sum()
    if isinstance(value, Counter):
        value.update("a")
    elif isinstance(value, set):
        value.add(5.0)
    return float(len(value))


@pytest.mark.filterwarnings("ignore:jit calls")
@in_one_test
@pytest.mark.parametrize(
    "make",
    [
        lambda: {1.0, 2.0},
        lambda: Counter("ab"),
        lambda: ChainMap({"a": 1}, {"b": 2}),
        lambda: array.array("d", [1.0, 2.0]),
        lambda: bytearray(b"ab"),
        lambda: np.array(["a", "b"]),
        lambda: np.array(["2020-01-01"], "datetime64[D]"),
        lambda: np.array([(1, 2.0), (2, 3.0)], [("key", int), ("size", float)]),
        lambda: Linked(3.0),
    ],
)
def test_other_values_are_passed_to_functions_that_are_differentiated(make):
    def f(value, x):
        return size_of(value) * (x**2).sum()

    x, slope = np.array([1.0, 2.0]), size_of(make())
    assert_same(2 * slope * x, lt.grad(f, argnums=1)(make(), x))
    assert_same(2 * slope * x, lt.jit(lt.grad(f, argnums=1))(make(), x))
    assert_same(2 * slope * x, lt.vjp(f, make(), x)[1](1.0)[1])
    assert_same(2 * slope * x, lt.jacobian(f, argnums=1)(make(), x))
    with pytest.raises(lt.DTypeError, match=r"has no derivative|not an array|at two places"):
        lt.grad(f)(make(), x)


def test_iterators_and_locks_are_refused():
    for value in (iter([1.0]), threading.Lock(), (v for v in [1.0])):
        with pytest.raises(lt.DTypeError, match="is not an array of numbers"):
            lt.grad(lambda value, x: x**2, argnums=1)(value, 2.0)

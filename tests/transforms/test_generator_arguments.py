"""NumPy's generators among the arguments of functions that are differentiated."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import letir as lt
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

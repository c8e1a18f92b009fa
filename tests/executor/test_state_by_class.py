"""State that methods of every kind change: inherited, properties, of classes, of arguments."""

import dataclasses
import functools
from typing import NamedTuple

import attrs
import numpy as np
import pytest

from letir import grad, jit

COUNT = {"n": 0}


def tick():
    """The number of calls so far."""
    COUNT["n"] += 1
    return COUNT["n"]


class Base:
    def run(self, x):
        return x * tick()


class Inherited(Base):
    pass


class Super(Inherited):
    def run(self, x):
        return super().run(x) * 1


class OfProperty:
    @property
    def number(self):
        return tick()

    def run(self, x):
        return x * self.number


class OfStaticMethod:
    @staticmethod
    def number():
        return tick()

    def run(self, x):
        return x * self.number()


class OfClassMethod:
    @classmethod
    def number(cls):
        return tick()

    def run(self, x):
        return x * self.number()


class OfCachedProperty:
    @functools.cached_property
    def number(self):
        return tick()

    def run(self, x):
        vars(self).pop("number", None)
        return x * self.number


class OfPartialMethod:
    def tick_and_add(self, n):
        return tick() + n

    number = functools.partialmethod(tick_and_add, 0)

    def run(self, x):
        return x * self.number()


class Meta(type):
    def number(cls):
        return tick()


class OfMetaclass(metaclass=Meta):
    def run(self, x):
        return x * type(self).number()


KINDS = (
    *(Inherited, Super, OfProperty, OfStaticMethod, OfClassMethod, OfCachedProperty),
    *(OfPartialMethod, OfMetaclass),
)


def of_global(kind):
    thing = kind()
    return lambda x: thing.run(x) + 0.0


def of_method(kind):
    return kind().run


def of_new_object(kind):
    return lambda x: kind().run(x)


@pytest.mark.parametrize("make", [of_global, of_method, of_new_object])
@pytest.mark.parametrize("kind", KINDS)
def test_what_methods_change_moves_on(make, kind):
    COUNT["n"] = 0
    jitted = jit(make(kind))

    assert [1.0, 2.0, 3.0, 4.0] == [jitted(1.0) for _ in range(4)]


@dataclasses.dataclass
class Data:
    x: np.ndarray

    def run(self):
        return self.x.sum() * tick()


@attrs.define
class Defined:
    x: np.ndarray

    def run(self):
        return self.x.sum() * tick()


class Named(NamedTuple):
    x: np.ndarray

    def run(self):
        return self.x.sum() * tick()


class Plain:
    def __init__(self, x):
        self.x = x

    def run(self):
        return self.x.sum() * tick()


@pytest.mark.filterwarnings("ignore:.*as Python, without a plan")
@pytest.mark.parametrize("kind", [Data, Defined, Named, Plain])
def test_what_methods_of_arguments_change_moves_on(kind):
    values = kind(np.ones(2))

    for f, args in (
        (lambda v: v.run(), (values,)),
        (lambda x, v: v.run() * x, (1.0, values)),
        (lambda d: d["a"][0].run(), ({"a": [values]},)),
    ):
        COUNT["n"] = 0
        jitted = jit(f)
        assert [2.0, 4.0, 6.0] == [jitted(*args) for _ in range(3)]


def test_what_parts_of_an_object_change_moves_on():
    class Model:
        def __init__(self):
            self.parts = [Plain(np.ones(2))]

        def loss(self, x):
            return self.parts[0].run() * x

    for make in (jit, lambda f: jit(grad(f))):
        COUNT["n"] = 0
        jitted = make(Model().loss)
        assert [2.0, 4.0, 6.0] == [jitted(1.0) for _ in range(3)]


def test_a_slot_that_a_derived_class_makes_a_property_is_no_state():
    class Number:
        __slots__ = ("value",)

    class Constant(Number):
        value = property(lambda self: (2.0,))

    constant, names = Constant(), []

    def f(x):
        names.append("f")
        return x * constant.value[0] * len(names)

    jitted = jit(f)

    assert [2.0, 4.0, 6.0] == [jitted(1.0) for _ in range(3)]

"""Which objects the search for state of a jitted function finds, and how they get it back."""

import builtins
import io
import sys
from datetime import timedelta
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

from letir import jit
from letir.executor.external_state.changes import restore_state
from letir.executor.plan_making import captured_state

LATE_MODULE = """
import sys
from datetime import timedelta
from types import ModuleType

class Late(ModuleType):
    def times(self, x):
        self.calls += 1
        return x * self.scale

scale, calls = 2.0, 0
sys.modules[__name__].__class__ = Late
"""


class Answer:
    pass


@pytest.fixture
def late():
    """A module whose class is a user's, as that of a package that loads its modules late."""
    module = ModuleType("late_module_of_test")
    sys.modules[module.__name__] = module
    exec(LATE_MODULE, vars(module))
    yield module
    del sys.modules[module.__name__]


def test_the_builtins_of_a_module_are_no_state_of_a_function(late):
    def f(x):
        return Answer() if x[0] > 0 else late.times(x)

    holders = captured_state([f])[1]

    assert all(holder is not vars(builtins) for holder in holders)


def test_a_function_that_uses_a_module_with_a_class_runs_as_python(late):
    compiled = jit(lambda x: Answer() if x[0] > 0 else late.times(x))

    with pytest.warns(RuntimeWarning, match="as Python, without a plan"):
        answer = compiled(np.ones(2))

    assert type(answer) is Answer
    assert compiled(-np.ones(2)).tolist() == [-2.0, -2.0]
    assert late.calls == 1


def test_the_variables_of_a_module_with_a_class_are_state(late):
    compiled = jit(lambda x: late.times(x) + late.calls)

    assert [2.0 + n for n in (1, 2, 3)] == [float(compiled(np.ones(1))[0]) for _ in range(3)]
    assert late.calls == 3


class Watched(dict):
    cleared = False

    def clear(self):
        self.cleared = True
        super().clear()


@pytest.mark.parametrize(
    ("now", "cleared"),
    [({"a": 1, "b": 2}, False), ({"b": 2, "a": 1}, True), ({"a": 1}, True)],
)
def test_a_dict_is_cleared_only_if_it_holds_other_items(now, cleared):
    """Another thread could find it empty meanwhile."""
    holder = Watched(now)

    restore_state([holder], [{"a": 1, "b": 2}])

    assert list(holder.items()) == [("a", 1), ("b", 2)]
    assert holder.cleared is cleared


class Log:
    sizes: ClassVar = [0]  # of the class: no attribute of the objects


class Population:
    """It reaches more objects than plain functions are searched for."""

    def __init__(self):
        self.members = [[n, [n]] for n in range(800)]
        self.generation = 0
        self.log = Log()

    def step(self, x):
        self.generation += 1
        self.log.sizes[0] += 1
        return self.generation * x


def test_a_method_of_a_large_object_that_changes_it_runs_as_python():
    ours, pythons = Population(), Population()
    step = jit(lambda population, x: population.step(x))

    expected = [pythons.step(x).tolist() for x in np.eye(3)]

    assert expected == [step(ours, x).tolist() for x in np.eye(3)]
    assert ours.generation == 3
    assert Log.sizes == [6]


class Appended(list):
    """A list that adds itself to other lists, as lists of pandas do."""

    def __radd__(self, other):
        return Appended([*other, *self])

    def __add__(self, other):
        return Appended([*self, *list(other)])

    __iadd__ = __add__


class Config(dict):
    """A dict whose items are its attributes."""

    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self


@pytest.mark.parametrize(
    "holder", [[Appended([np.ones(2)]), {"b": np.ones(3)}], Config(values=np.ones(2), keys=3.0)]
)
def test_users_containers_are_searched_without_their_methods(holder):
    calls = []

    def f(x):
        calls.append(len(holder))
        return x * 2

    found = captured_state([f])

    assert any(each is holder for each in found[1]) and found[2]
    assert jit(f)(2.0) == 4.0


class Fixed(list):
    """A list that refuses changes, such as some of pandas."""

    def __setitem__(self, place, item):
        raise TypeError("'Fixed' does not support changes")


MANY = Fixed([n] for n in range(3000))


class Writer:
    """A class with a file in memory, such as some of pandas."""

    buffer = io.BytesIO(b"ab")


def test_a_function_that_reaches_a_file_in_memory_runs_as_python_where_it_is_refused():
    def seconds(x):
        return timedelta(seconds=x[0]).total_seconds() + len(MANY) + len(Writer.buffer.getvalue())

    with pytest.warns(RuntimeWarning, match="as Python, without a plan"):
        assert jit(seconds)(np.ones(2)) == 3003.0

"""Methods and callable objects that store traced values in their object, which is no argument."""

import copy

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])


class Cell:
    """An object with state of several kinds."""

    def __init__(self):
        self.w, self.b, self.last, self.log = X.copy(), 0.5, None, []
        self.named, self.order = {"x": 1.0}, {"b": 1.0, "a": 2.0}

    def step(self, x):
        self.w = self.w - 0.5 * x
        return self.w.sum()

    def number(self, x):
        self.b = self.b + x.sum()
        return self.b * 2

    def cached(self, x):
        self.last, self.other = (x, [2 * x]), {"x": x.sum()}
        return self.last[1][0].sum()

    def logged(self, x):
        self.log.append((x.sum(), "sum"))
        self.named["x"] = x.sum()
        del self.order["b"]
        return self.log[-1][0]

    def __call__(self, x):
        return self.step(x)


@in_one_test
@pytest.mark.parametrize("name", ["step", "number", "cached", "logged", "__call__"])
def test_a_transform_leaves_values_in_the_object_as_a_plain_call_does(name):
    plain = Cell()
    getattr(plain, name)(2 * X)
    for slope in (lt.grad, lt.jacobian, lambda f: lambda x: lt.vjp(f, x)[1](1.0)[0]):
        ours = Cell()
        f = ours if name == "__call__" else getattr(ours, name)
        expected = lt.grad(getattr(Cell(), name))(2 * X)
        assert_same(expected, slope(f)(2 * X))
        assert [*vars(plain)] == [*vars(ours)]
        assert_same([*vars(plain).values()], [*vars(ours).values()])


@in_one_test
@pytest.mark.parametrize("name", ["step", "number", "logged", "__call__"])
def test_trace_refuses_a_method_that_replaces_a_value_of_its_object(name):
    cell = Cell()
    before = copy.deepcopy(cell)
    f = cell if name == "__call__" else getattr(cell, name)
    for record in (lt.trace, lambda f, x: lt.vmap(f)(np.stack([x, x]))):
        with pytest.raises(
            lt.TraceError, match=rf"make the object an argument: letir.trace\(Cell.{name}, "
        ):
            record(f, X)
        assert_same([*vars(before).items()], [*vars(cell).items()])
        assert [*before.order] == [*cell.order]
    program = lt.trace(getattr(Cell, name), Cell(), X)
    assert_same(getattr(before, name)(2 * X), program(cell, 2 * X))
    assert_same([*vars(before).items()], [*vars(cell).items()])


def test_a_recording_that_fails_gives_an_object_its_former_parts():
    class Failing(Cell):
        def __call__(self, x):
            self.logged(x)
            self.step(x)
            self.calls = 1
            raise ValueError("after the change")

    for call in (lt.trace, lambda f, x: lt.grad(f)(x)):
        cell = Failing()
        with pytest.raises(ValueError, match="after the change"):
            call(cell, X)
        assert (cell.log, cell.named, [*cell.order]) == ([], {"x": 1.0}, ["b", "a"])
        assert_same(X, cell.w)


def test_a_method_that_stores_what_it_had_not_stored_before_is_recorded():
    cell = Cell()
    assert_same(cell.cached(X), lt.trace(Cell().cached, X)(X))


def test_a_large_object_is_not_searched():
    class Large(Cell):
        def step(self, x):
            self.last = x * 2
            return x.sum()

    cell = Large()
    cell.log = [0.0] * 20_000
    assert_same(np.ones(3), lt.grad(cell.step)(X))
    with pytest.raises(lt.EscapedTracerError):
        cell.last + 1

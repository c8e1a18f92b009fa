"""Transforms of executors: executors provide them, and cache them by their options."""

import numpy as np

import letir as lt
from letir.transforms.jitted_functions import Transform


class Keeper:
    """Caches the transforms of a function, as executors do."""

    def __init__(self, f):
        self.f, self.kept = f, {}

    def __call__(self, *args):
        return self.f(*args)

    def __letir_transformed__(self, transform: Transform):
        return self.kept.setdefault(transform.key, Keeper(transform(self.f)))


def cube(x):
    return (x**3).sum()


def test_an_executor_answers_for_itself():
    keeper, x = Keeper(cube), np.array([1.0, 2.0])

    assert type(lt.grad(keeper)) is Keeper
    assert [3.0, 12.0] == list(lt.grad(keeper)(x))
    assert [[6.0, 0.0], [0.0, 12.0]] == lt.hessian(keeper)(x).tolist()


def test_transforms_are_cached_by_their_options():
    keeper = Keeper(cube)

    assert lt.grad(keeper) is lt.grad(keeper, 0) is lt.grad(keeper, argnums=0)
    assert lt.grad(keeper) is not lt.grad(keeper, argnums=(0,))
    assert lt.grad(keeper) is not lt.grad(keeper, has_aux=True)
    assert lt.grad(keeper) is not lt.value_and_grad(keeper)
    assert lt.vmap(keeper, in_axes=[0]) is lt.vmap(keeper, in_axes=[0])
    assert lt.vmap(keeper, in_axes=({"a": 0},)) is lt.vmap(keeper, in_axes=({"a": 0},))
    assert lt.vmap(keeper, in_axes=(1,)) is not lt.vmap(keeper, in_axes=(True,))


def test_transforms_of_a_function_that_keeps_its_transforms_nest():
    keeper = Keeper(cube)

    assert lt.vmap(lt.grad(keeper)) is lt.vmap(lt.grad(keeper))
    assert [[3.0, 12.0]] == lt.vmap(lt.grad(keeper))(np.array([[1.0, 2.0]])).tolist()


def test_other_callables_are_transformed_as_they_are():
    class Model:
        def __call__(self, x):
            return cube(x)

    assert [3.0] == list(lt.grad(Model())(np.ones(1)))

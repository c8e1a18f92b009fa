"""Broadcast operands [D10], and points without a derivative [D13]."""

import numpy as np
import pytest

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES
from letir.eval.evaluator import compute


def sum_to_size(x, shape):
    return compute(PRIMITIVES["sum_to_size"], (x,), Attrs(shape=shape))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [((2, 3), (3,)), ((2, 3), (1, 3)), ((2, 3), (2, 1)), ((4, 2, 3), (1, 1)), ((0, 3), (3,))],
)
def test_extra_axes_are_summed_away_and_axes_of_length_1_kept(found, wanted):
    """[D10]; an empty axis gives 0."""
    x = np.arange(np.prod(found), dtype=float).reshape(found)

    total = sum_to_size(x, wanted)

    assert (wanted, x.sum()) == (total.shape, total.sum())


def test_equal_shapes_give_the_same_object_and_0d_gets_the_full_sum():
    """[D10]."""
    x = np.ones((2, 3))

    assert x is sum_to_size(x, (2, 3))
    assert 6.0 == sum_to_size(x, ())


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 1), (2, 3)])
def test_a_broadcast_operand_has_a_gradient_of_its_own_shape(shape):
    """[D10]."""
    by_x = lt.grad(lambda x, y: (x * y).sum())(np.ones(shape), np.full((2, 3), 2.0))

    assert (shape, 12.0) == (np.shape(by_x), np.sum(by_x))


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (np.max, [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
        (np.min, [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]),
        (lambda x: np.maximum(x, x[::-1]).sum(), [1.0, 1.0], [1.0, 1.0]),
        (lambda x: np.maximum(x, 0).sum(), [-1.0, 0.0, 1.0], [0.0, 0.5, 1.0]),
        (lambda x: abs(x).sum(), [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]),
        (lambda x: np.sign(x).sum(), [-1.0, 0.0], [0.0, 0.0]),
        (lambda x: np.clip(x, 0.0, 1.0).sum(), [-1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 0.0]),
        (np.prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
        (np.prod, [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
        (lambda x: (x**0).sum() + (x**2).sum(), [0.0, 1.0], [0.0, 2.0]),
    ],
)
def test_a_point_without_a_derivative_follows_the_table(f, x, expected):
    """[D13]."""
    np.testing.assert_array_equal(expected, lt.grad(f)(np.array(x)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_nan_in_the_branch_not_taken_stays_there():
    """[D13]: of where; the untaken logarithm of a negative number is nan."""
    x = np.array([-1.0, 2.0])

    found = lt.grad(lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0).sum())(x)

    np.testing.assert_array_equal([0.0, 0.5], found)


def test_of_two_writes_to_one_place_the_last_has_the_gradient():
    """[D13]."""
    places = np.array([0, 0, 1])

    found = lt.grad(lambda v: (np.zeros_like(v).at[places].set(v) * np.arange(1.0, 4.0)).sum())

    np.testing.assert_array_equal([0.0, 1.0, 2.0], found(np.array([5.0, 6.0, 7.0])))

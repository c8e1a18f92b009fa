"""Differences, numerical gradients, integrals and interpolation as users call them."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same, check_grads
from tests.each_sample import in_one_test

X = np.array([[0.5, -1.25, 2.0, 0.25], [1.5, 0.75, -0.625, 1.0], [0.1, 0.7, 1.2, -0.4]])
V = np.array([0.12, 0.55, 1.15, 1.45])

CALLS = {
    "diff with ends": lambda x, v: np.diff(x, prepend=0.0, append=x[:, :1]),
    "diff of constants": lambda x, v: np.diff(np.ones(3), append=v[0]),
    "gradient": lambda x, v: np.gradient(x),
    "gradient of one axis": lambda x, v: np.gradient(v),
    "gradient, one spacing": lambda x, v: np.gradient(x, 0.5, axis=(1, 0), edge_order=2),
    "gradient, traced spacings": lambda x, v: np.gradient(x, v[0], v),
    "gradient along an axis": lambda x, v: np.gradient(x, v, axis=-1),
    "gradient, listed places": lambda x, v: np.gradient(x, [0.0, 0.5, 2.0], axis=0),
    "trapezoid": lambda x, v: np.trapezoid(x, dx=0.25) + np.trapezoid(x, v),
    "trapezoid of places": lambda x, v: np.trapezoid(X, x, axis=0),
    "interp": lambda x, v: np.interp(x, v, v**2),
    "interp beyond": lambda x, v: np.interp(x, v, np.arange(4.0), left=v[1], right=-1),
    "interp, period": lambda x, v: np.interp(x, v, v**3, period=1.3),
    "interp of constants": lambda x, v: np.interp(0.7, V, v),
}


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_recorded_and_replayed_bitwise(name):
    f = CALLS[name]
    x, v = X[::-1] * 1.25, V * 1.1

    assert_same(f(x, v), lt.run_forward(lt.trace(f, X, V), x, v))


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_a_call_agree_with_differences(name):
    check_grads(CALLS[name], (X, V))


def test_integers_give_the_dtypes_of_numpy():
    x = np.array([3, 1, 2, 7], np.uint8)
    for f in (np.diff, np.gradient, np.trapezoid, np.ediff1d, lambda x: np.interp(x, V, V)):
        assert_same(f(x), lt.run_forward(lt.trace(f, x), x))


def test_searches_are_recorded_with_integer_results():
    def f(x, v):
        return v[np.searchsorted(v, x) % 4] + x * np.digitize(x, v, right=True)

    assert_same(f(X, V), lt.run_forward(lt.trace(f, X, V), X, V))
    check_grads(f, (X, V))


def test_an_array_that_is_too_short_is_refused_with_the_required_length():
    with pytest.raises(lt.ShapeError, match=r"edge_order \+ 1 elements"):
        lt.trace(np.gradient, np.ones(1))
    with pytest.raises(lt.DTypeError, match="one number or array for each axis"):
        lt.trace(lambda x: np.gradient(x, 1.0, 1.0, 1.0), X)
    with pytest.raises(lt.ShapeError, match="at least one dimensional"):
        lt.trace(np.diff, np.float64(1.0))
    with pytest.raises(lt.ShapeError, match="xp and fp must be 1-d and of one length"):
        lt.trace(lambda x: np.interp(x, V, V[1:]), X)


def test_interp_has_a_zero_derivative_outside_the_points_and_at_infinity():
    """[D13]"""
    x = np.array([-5.0, np.inf, -np.inf, 9.0])

    by_x, by_fp = lt.grad(lambda x, fp: np.interp(x, V, fp).sum(), argnums=(0, 1))(x, V**2)

    assert_same(np.zeros(4), by_x)
    assert_same(np.array([2.0, 0.0, 0.0, 2.0]), by_fp)

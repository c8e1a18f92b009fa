"""Settings of NumPy's functions that are traced numbers: the order of a norm, beta of kaiser."""

import math

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same
from tests.each_sample import in_one_test

X, M = np.array([1.0, -2.0, 0.0, 3.0]), np.arange(9.0).reshape(3, 3) - 4


@in_one_test
@pytest.mark.parametrize("x", [X, X + 5, M[1], np.float32(X), np.arange(4), X + 1j])
@pytest.mark.parametrize("p", [2.5, 0.5, 1.0, 0.0, 2.0, math.inf, -math.inf, np.float64(3.0)])
def test_norms_of_a_traced_order(x, p):
    def f(x, p):
        return np.linalg.norm(x, ord=p), np.linalg.norm(x, p, axis=0, keepdims=True)

    assert_same(f(x, p), lt.trace(f, x, p)(x, p))
    assert_same(f(x, p), lt.jit(f)(x, p))


@in_one_test
@pytest.mark.parametrize("p", [1.0, -1.0, 2.0, math.inf])
def test_matrix_norms_of_a_traced_order(p):
    f = np.linalg.norm

    np.testing.assert_allclose(lt.trace(f, M, p)(M, p), f(M, p))
    with pytest.raises(ValueError, match="Invalid norm order for matrices"):
        lt.trace(f, M, 2.5)


def test_a_plan_for_one_formula_is_not_used_for_another():
    def f(p):
        return np.linalg.norm(X, p)

    program, jitted = lt.trace(f, 3.5), lt.jit(f)

    assert_same(f(2.5), program(2.5))
    with pytest.raises(lt.GuardError):
        program(1.0)
    for p in (3.5, 2.5, 1.0, math.inf, 0.0):
        assert_same(f(p), jitted(p))


@in_one_test
@pytest.mark.parametrize("p", [2.5, 0.5, 3.5])
def test_the_slope_of_a_norm_with_respect_to_its_order(p):
    f, h = lambda p: np.linalg.norm(X, p), 1e-6

    np.testing.assert_allclose(lt.grad(f)(p), (f(p + h) - f(p - h)) / (2 * h), rtol=1e-6)


@in_one_test
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_kaiser_of_a_traced_beta(n):
    def f(beta):
        return np.kaiser(n, beta)

    for beta in (8.6, 0.0):
        assert_same(f(beta), lt.trace(f, 3.0)(beta))


def test_kaiser_of_a_symbolic_size():
    program = lt.trace(lambda x: np.kaiser(len(x), 5.0), lt.ShapeDtype((lt.Size("n"),), float))

    assert_same(np.kaiser(6, 5.0), program(np.ones(6)))


def test_the_choices_of_choose_differ_in_shape():
    def f(x):
        return np.choose([0, 1, 0, 2], [x, x[1], 4.0])

    assert_same(f(X), lt.trace(f, X + 1)(X))


def test_lists_are_not_split():
    with pytest.raises(AttributeError, match="'list' object has no attribute"):
        lt.trace(lambda x: np.split([x[0], x[1]], 2), X)

    assert_same([X[:1], X[1:2]], lt.trace(lambda x: np.array_split([x[0], x[1]], 2), X)(X))


def test_polygamma_of_a_number_is_an_array_as_in_scipy():
    special = pytest.importorskip("scipy.special")

    def f(x):
        return special.polygamma(1, x), special.polygamma(2, x * 1)

    for x in (2.5, X + 3):
        assert_same(f(x), lt.trace(f, x)(x))
        assert_same(f(x), lt.jit(f)(x))


NUMBERS_OF_POINTS = [3.0, 1.0, 1, 0, 0.5, 1.1, 2.5, -2.0, 3.7, np.float32(2.5), np.int8(4), True]


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
@pytest.mark.parametrize("m", NUMBERS_OF_POINTS, ids=repr)
def test_windows_of_traced_numbers_of_points_are_numpys(name, m):
    more = (8.6,) if name == "kaiser" else ()

    def window(m):
        return getattr(np, name)(m, *more)

    with np.errstate(invalid="ignore"):  # of the root in kaiser(1.1)
        expected, *others = window(m), lt.jit(window)(m), lt.trace(window, m)(m)

    for found in others:
        assert found.shape == expected.shape and found.dtype == expected.dtype
        assert_close(expected, found, rtol=1e-13, atol=1e-15)

"""scipy.linalg.eigh of one and of two matrices, with derivatives."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

linalg = pytest.importorskip("scipy.linalg")

RNG = np.random.default_rng(0)
A, B = [x @ x.T + np.eye(4) for x in RNG.normal(size=(2, 4, 4))]
WEIGHTS = np.arange(16.0).reshape(4, 4)


def symmetric(x):
    return (x + np.swapaxes(x, -1, -2)) / 2


def values_and_squares(w, v):
    """A number that does not depend on the signs of the vectors."""
    return (w * WEIGHTS[0]).sum() + (v**2 * WEIGHTS).sum()


FUNCTIONS = {
    "one matrix": (lambda x: values_and_squares(*linalg.eigh(symmetric(x))), A),
    "its upper triangle": (
        lambda x: values_and_squares(*linalg.eigh(symmetric(x), lower=False)),
        A,
    ),
    "the first of two": (lambda x: values_and_squares(*linalg.eigh(symmetric(x), B)), A),
    "the second of two": (lambda x: values_and_squares(*linalg.eigh(A, symmetric(x))), B),
    "vectors only": (lambda x: (linalg.eigh(A, symmetric(x))[1] ** 2 * WEIGHTS).sum(), B),
    "values only": (lambda x: linalg.eigh(symmetric(x), B, eigvals_only=True)[1], A),
}


def differences(f, x, h=1e-6):
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = h
        result[place] = (f(x + step) - f(x - step)) / (2 * h)
    return result


@in_one_test
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_and_tangents_are_those_of_differences(name):
    f, x = FUNCTIONS[name]
    expected, direction = differences(f, x), symmetric(WEIGHTS)

    np.testing.assert_allclose(lt.grad(f)(x), expected, rtol=1e-5, atol=1e-6)
    tangent = lt.jvp(f, (x,), (direction,))[1]
    np.testing.assert_allclose(tangent, (expected * direction).sum(), rtol=1e-5)


def test_second_derivatives_agree_with_differences():
    def f(t):
        return values_and_squares(*linalg.eigh(A + t * B, B + t**2 * np.eye(4)))

    h = 1e-4
    expected = (f(0.5 + h) - 2 * f(0.5) + f(0.5 - h)) / h**2
    np.testing.assert_allclose(lt.grad(lt.grad(f))(0.5), expected, rtol=1e-5)


@in_one_test
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
def test_values_are_those_of_scipy(dtype):
    a = (A * 3).astype(dtype)
    f = lambda x: linalg.eigh(x, B)  # noqa: E731

    assert_same(f(a), lt.trace(f, a)(a))
    assert_same(linalg.eigh(a), lt.jit(linalg.eigh)(a))


def test_other_options_are_scipys_without_a_derivative():
    def f(x):
        return linalg.eigh(symmetric(x), subset_by_value=[-1.0, 5.0])[0].sum()

    assert_same(f(A), lt.trace(f, A)(A))
    with pytest.raises(lt.MissingRule, match="eigh has no derivative"):
        lt.grad(f)(A)

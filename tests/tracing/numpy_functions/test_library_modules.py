"""Functions of NumPy and of math that a test replaces, as by ``unittest.mock.patch``."""

import functools
import math
from unittest import mock

import numpy as np
import pytest

import letir as lt
from tests.each_sample import in_one_test

X = np.array([0.5, 1.5, 2.5])

REPLACED = {
    "a ufunc": (np, "sin", lambda x: np.sin([x[0], x[1]]).sum()),
    "a function": (np, "mean", lambda x: np.mean([x[0], x[1] * 2])),
    "a function that makes an array": (np, "stack", lambda x: np.stack([x[0], x[1]]).sum()),
    "a maker": (np, "zeros", lambda x: (np.zeros(3) + x).sum()),
    "linear algebra": (np.linalg, "norm", lambda x: np.linalg.norm([x[0], x[1]])),
    "math": (math, "exp", lambda x: math.exp(x[0])),
    "a scalar class": (np, "float64", lambda x: np.float64(x[0]) * 2.0),
}
TRANSFORMS = {"grad": lt.grad, "jit": lt.jit, "jacobian": lt.jacobian}


def replacement(x):
    return (x[0] if type(x) is list else x) * 7.0


def anew(f):
    return type(f)(f.__code__, f.__globals__)


@in_one_test
@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_replaced_function_is_called(name, transform):
    module, function, f = REPLACED[name]
    make = TRANSFORMS[transform]
    for _ in range(3):
        before = make(anew(f))(X)  # the library has its stand-in
    with mock.patch.object(module, function, mock.Mock(side_effect=replacement)) as called:
        if name == "a maker":
            called.side_effect = lambda n: np.full(n, 7.0)
        found = make(anew(f))(X)
        expected = f(X) if transform == "jit" else None
    assert called.called
    assert expected is None or found == expected
    np.testing.assert_array_equal(make(anew(f))(X), before)


def test_a_name_of_a_users_module_keeps_the_original():
    space = {"mean": np.mean, "__name__": "users_module"}
    exec("def f(x): return mean([x[0], x[1]])", space)
    with mock.patch("numpy.mean", replacement):
        np.testing.assert_array_equal(lt.grad(space["f"])(X), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(lt.grad(space["f"])(X), [0.5, 0.5, 0.0])


def test_a_wrapper_of_the_original_is_recorded():
    f = lambda x: np.mean(x * x) + np.sin(x).sum()  # noqa: E731
    expected = lt.grad(f)(X)
    with (
        mock.patch("numpy.mean", wraps=np.mean) as mean,
        mock.patch("numpy.sin", functools.partial(np.sin)),
    ):
        np.testing.assert_allclose(lt.grad(anew(f))(X), expected)
    assert mean.call_count == 1

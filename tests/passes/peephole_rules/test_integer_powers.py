"""``multiply_powers``: cubes and fourth powers as products."""

import numpy as np
import pytest

import letir as lt
from letir import passes
from letir.testing import assert_same

X = np.linspace(-2.0, 2.0, 101)


def names(fn) -> list[str]:
    return [bind.op.name for bind in fn.binds]


@pytest.mark.parametrize(("exponent", "count"), [(3, 2), (4, 2), (3.0, 2), (4.0, 2)])
def test_a_power_becomes_products_within_two_ulp(exponent, count):
    fn = passes.multiply_powers(lt.trace(lambda x: x**exponent, X))

    assert ["mul"] * count == names(fn)
    np.testing.assert_array_max_ulp(X**exponent, fn(X), maxulp=2)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16])
def test_integers_wrap_around_as_numpys(dtype):
    x = np.arange(100).astype(dtype)

    assert_same(x**3, passes.multiply_powers(lt.trace(lambda x: x**3, x))(x))


def test_a_square_is_shared():
    fn = passes.multiply_powers(lt.trace(lambda x: (x * x, x**3, x**4), X))

    assert ["mul"] * 3 == names(fn)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: x**5, X),
        (lambda x: x**-3, X),
        (lambda x: x**2.5, X),
        (lambda x: x**3, X + 1j),
        (lambda x: x**3, X.astype(np.float16)),
        (lambda x: x**3.0, np.arange(3)),
    ],
)
def test_powers_that_products_would_change_stay(f, x):
    fn = lt.trace(f, np.ones_like(x))

    assert passes.multiply_powers(fn) is fn


def test_powers_of_python_numbers_stay():
    fn = lt.trace(lambda x: x**3, 2.0)

    assert passes.multiply_powers(fn) is fn


def test_exact_programs_keep_powers():
    fn = lt.trace(lambda x: x**3, X)

    assert passes.multiply_powers(fn, exact=True) is fn
    assert_same(X**3, lt.jit(lambda x: x**3, exact=True)(X))


def test_infinities_and_zeros_equal_those_of_powers():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e200, -1e200, 1e-200, -1e-200])
    fn = passes.multiply_powers(lt.trace(lambda x: (x**3, x**4), np.ones(9)))
    with np.errstate(all="ignore"):
        assert_same((x**3, x**4), fn(x))


def test_powers_in_bodies_are_multiplied():
    fn = lt.trace(lambda x: lt.fori_loop(0, 2, lambda i, x: x**3, x), X)

    assert "power(" not in str(passes.multiply_powers(fn))

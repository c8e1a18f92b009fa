"""The derivative of gamma random numbers with respect to their shape, beside values of mpmath."""

import numpy as np
import pytest
import scipy.special

import letir as lt
from letir.ops.special.gamma_gradient import gamma_slope

# a, x, dx/da at a fixed F(x; a), and its derivative by a; central differences with 60 digits
VALUES = [
    (0.01, 60.699999999999996, 103.02882976559185, -9841.953124973328),
    (0.01, 1000000000.0, 121.28415117574377, -10001.621203505423),
    (0.5, 0.5, 1.3373525943353346, -2.0209723976761604),
    (0.5, 3.1, 2.9460695176329565, -3.6425635395947262),
    (0.5, 121.71320343559643, 6.745805827686013, -4.859954072766763),
    (2.0, 4.0, 1.5059739450020433, -0.3939955589425627),
    (2.0, 5.0, 1.6580687280597064, -0.41772716308631597),
    (2.0, 73.07228714274746, 3.9354776983841346, -0.5997276858184081),
    (2.0, 100002.0, 11.090282028965072, -0.6448296153576492),
    (100.5, 242.70224750584185, 1.5072303047435054, -0.0064336704749451724),
    (100.5, 1000000000.0, 16.118093089114826, -0.009999901546480231),
    (5000.0, 5150.0, 1.0148860384012635, -0.00010099538335301646),
    (5000.0, 5633.756492761104, 1.0608911389171143, -0.00010398654117421638),
    (5000.0, 1000000000.0, 12.206233668825561, -0.00020000879494364062),
]


@pytest.mark.parametrize("order", [1, 2])
def test_the_derivative_is_right_below_and_above_the_mean(order):
    a, x, *expected = np.array(VALUES).T

    found = lt.trace(lambda a, x: gamma_slope(a, x, order=order), a, x)(a, x)

    assert np.allclose(expected[order - 1], found, rtol=1e-11, atol=0)


def test_the_gradient_of_gammainc_ends_for_any_number():
    a = np.array([0.3, 2.0, 50.0, 2.0, 2.0, 2.0])
    x = np.array([1e5, 1e300, 1e4, np.inf, np.nan, 0.0])

    with np.errstate(all="ignore"):
        found = lt.grad(lambda a: scipy.special.gammainc(a, x).sum())(a)

    assert np.array_equal([0.0, 0.0, 0.0], found[:3])
    assert np.isnan(found[4])


def test_the_derivative_at_the_ends_of_the_range_and_of_empty_arrays():
    x = np.array([0.0, 1e300, np.inf, np.nan])

    zero, last, at_infinity, unknown = lt.trace(lambda x: gamma_slope(2.0, x), x)(x)

    assert zero == 0.0
    assert 690 < last < 691
    assert at_infinity == last
    assert np.isnan(unknown)
    assert lt.trace(lambda x: gamma_slope(x, x), x[:0])(x[:0]).shape == (0,)


def test_the_incomplete_gamma_function_has_no_slope_by_its_shape_at_the_ends():
    """At 0 and at infinity it is 0 and 1 for every shape; the density at 0 may be infinite."""
    ends, inner = np.array([0.0, np.inf]), np.array([0.5])

    def total(a, x):
        return scipy.special.gammainc(a, x).sum() - scipy.special.gammaincc(a, x).sum()

    assert lt.grad(total)(0.5, ends) == 0.0
    assert lt.grad(total)(0.5, np.concatenate([ends, inner])) == lt.grad(total)(0.5, inner)
    assert lt.grad(lt.grad(total))(0.5, ends) == 0.0

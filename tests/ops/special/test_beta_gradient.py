"""The derivatives of the incomplete beta function by its parameters, beside values of mpmath."""

import numpy as np
import pytest
from scipy import special

import letir as lt
from letir.ops.special.beta_gradient import betainc_slope
from letir.testing import assert_close

# a, b, x, and the derivatives of betainc by a, by b, twice by a, by both, twice by b: central
# differences with 60 digits
VALUES = [
    (
        0.01,
        0.02,
        0.25,
        -22.695963112610688,
        11.000700450643658,
        1513.4165799848852,
        355.099810110793,
        -732.5487521072374,
    ),
    (
        0.5,
        0.5,
        1e-12,
        -1.798115151723368e-05,
        8.825424006105412e-07,
        0.0005083247953281513,
        -2.387997140358093e-05,
        -8.709315489782339e-07,
    ),
    (
        2.0,
        3.0,
        0.25,
        -0.22805360232434638,
        0.1069215300522914,
        0.1644808469250216,
        -0.04464473226386036,
        -0.0004179387762597931,
    ),
    (
        2.0,
        3.0,
        0.75,
        -0.044557592210088925,
        0.05867901052561945,
        -0.01776517811715429,
        0.04125423161306626,
        -0.06510074436338723,
    ),
    (
        1.0,
        1.0,
        0.999,
        -0.0009994998332499509,
        0.006907755278982142,
        9.999999165832627e-07,
        0.006259616293799537,
        -0.04771708299430561,
    ),
    (
        40.0,
        0.5,
        0.5,
        -7.972080536349474e-14,
        5.632262708050239e-13,
        5.625946892940574e-14,
        -3.944738182632176e-13,
        2.2515575106943963e-12,
    ),
    (
        0.5,
        40.0,
        0.01,
        -0.7068420824957758,
        0.006016271131588782,
        0.35614322950380023,
        0.0062252862443577545,
        -0.0001361313416649249,
    ),
    (
        120.5,
        80.25,
        0.6,
        -0.023021906268694003,
        0.0345747796720211,
        0.00012463896948212172,
        -4.3210006298049784e-05,
        -0.00015159282229404469,
    ),
    (
        120.5,
        80.25,
        0.1,
        -1.547630157356558e-67,
        7.0205336282754675e-68,
        2.7820815877499407e-67,
        -1.259023432639883e-67,
        5.6658870486964584e-68,
    ),
    (
        5000.0,
        3.0,
        0.9995,
        -0.00012826099208494425,
        0.24705504530715564,
        1.285239575013634e-08,
        7.815812117645999e-07,
        -0.0485577050539109,
    ),
    (
        5000.0,
        7000.0,
        0.42,
        -0.0032638255602833103,
        0.002347307287016983,
        -2.5734960169881498e-05,
        1.874296028331207e-05,
        -1.36473419161517e-05,
    ),
    (
        100000.0,
        0.5,
        0.99999,
        -2.0755400814900982e-06,
        0.38983520771803665,
        3.113323094398775e-11,
        -4.075333381722573e-06,
        0.2134964522636769,
    ),
]
ORDERS = [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]


@pytest.mark.parametrize("place", range(5))
def test_the_derivatives_by_the_parameters_are_right_below_and_above_the_mean(place):
    a, b, x, *expected = np.array(VALUES).T
    by_a, by_b = ORDERS[place]

    found = lt.trace(lambda *operands: betainc_slope(*operands, by_a=by_a, by_b=by_b), a, b, x)

    assert np.allclose(expected[place], found(a, b, x), rtol=1e-10, atol=0)


@pytest.mark.parametrize(
    ("forward", "back"),
    [(special.betainc, special.betaincinv), (special.betaincc, special.betainccinv)],
)
def test_second_derivatives_agree_with_those_of_the_inverse(forward, back):
    """x(p; a, b) inverts p(x; a, b), so that the derivatives of the pair are those of p."""
    a, b, p = np.array([0.4, 2.0, 80.0]), np.array([1.5, 0.7, 30.0]), np.array([0.1, 0.5, 0.9])

    def total(a, b, p):
        return forward(a, b, back(a, b, p)).sum()

    first = lt.grad(total, (0, 1, 2))(a, b, p)
    second = lt.hessian(total)(a, b, p), lt.jacfwd(lt.grad(total, 2))(a, b, p)

    for expected, found in zip([np.zeros(3), np.zeros(3), np.ones(3)], first, strict=True):
        assert_close(expected, found, rtol=1e-9, atol=1e-12)
    for found in second:
        assert_close(np.zeros((3, 3)), found, rtol=1e-8, atol=1e-9)


def test_at_the_ends_the_function_does_not_depend_on_its_parameters():
    a, x = np.array([0.5, 1.0, 2.0, 3.0]), np.array([[0.0], [1.0]])

    assert np.all(lt.grad(lambda a: special.betainc(a, 2.0, x).sum())(a) == 0.0)
    assert np.all(lt.hessian(lambda a: special.betainc(a, 2.0, x).sum())(a) == 0.0)
    assert np.all(lt.grad(lambda a: special.betaincinv(a, 2.0, x).sum())(a) == 0.0)


def test_derivatives_of_every_order_at_the_ends_of_the_range():
    """The densities x(1 - x)**2 * 12 and x * exp(-x) are polynomials beside 0."""
    beta = lt.grad(lt.grad(lambda x: special.betainc(2.0, 3.0, x)))
    gamma = lt.grad(lt.grad(lambda x: special.gammainc(2.0, x)))

    assert [12.0, 0.0] == [round(float(beta(0.0)), 12), round(float(beta(1.0)), 12)]
    assert [1.0, -2.0] == [float(gamma(0.0)), float(lt.grad(gamma)(0.0))]


def test_parameters_out_of_range_give_nan_and_empty_arrays_stay_empty():
    slope = lt.grad(lambda a: special.betainc(a, np.array([2.0, -1.0, np.nan]), 0.5).sum())
    each = lt.vmap(lt.grad(special.betainc), (None, 0, None))(
        1.5, np.array([2.0, -1.0, np.nan]), 0.5
    )

    assert np.isnan(slope(1.5))
    assert [True, False, False] == np.isfinite(each).tolist()
    assert lt.grad(lambda a: special.betainc(a, 2.0, 0.5).sum())(np.ones((0, 3))).shape == (0, 3)

"""Derivatives of the distribution functions of scipy.special by their parameters."""

import numpy as np
import pytest
from scipy import special, stats

import letir as lt
from letir.testing import assert_close, check_grads

# df, t, and the derivative of stdtr by df: central differences with 40 digits
STUDENT = [
    (0.05, -50.0, -2.052424077542089),
    (0.05, 2.0, 1.0187510660283534),
    (0.5, 1e-06, 1.5393024180290267e-07),
    (1.0, -1e-09, -6.148065706075626e-11),
    (1.0, -3.0, -0.10040852260827625),
    (2.5, 0.3, 0.0042226324389301375),
    (2.5, -8.0, -0.005037163937471957),
    (10.0, 2.0, 0.0014226686074741706),
    (10.0, -50.0, -2.860348642449332e-13),
    (100.0, 1.0, 1.2037892855727073e-05),
    (100.0, -8.0, -6.1543590971261e-14),
]
# function -> operands with derivatives
CALLS = {
    "fdtr": (2.5, 3.5, 0.8),
    "fdtrc": (40.0, 0.7, 3.0),
    "fdtri": (2.5, 3.5, 0.3),
    "gdtr": (1.5, 2.5, 0.8),
    "gdtrc": (0.5, 30.0, 70.0),
    "chdtr": (2.5, 0.8),
    "chdtrc": (30.0, 20.0),
    "chdtri": (2.5, 0.3),
    "stdtr": (2.5, -0.8),
    "stdtrit": (2.5, 0.3),
}


def test_the_derivative_of_stdtr_by_the_degrees_of_freedom_is_right_in_the_tails_too():
    df, t, expected = np.array(STUDENT).T

    assert np.allclose(expected, lt.grad(lambda df: special.stdtr(df, t).sum())(df), 1e-10, 0)
    assert lt.grad(lambda df: special.stdtr(df, 0.5))(np.inf) == 0.0


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_by_every_parameter_agree_with_differences(name):
    function = getattr(special, name)

    check_grads(function, CALLS[name], order=2, rtol=1e-5)


@pytest.mark.parametrize("name", ["bdtr", "bdtrc", "nbdtr", "nbdtrc"])
def test_derivatives_by_the_probability_agree_with_differences(name):
    function = getattr(special, name)

    check_grads(lambda p: function(np.array([0, 2, 4]), 5, p), (0.3,), order=2, rtol=1e-5)
    with pytest.raises(lt.MissingRule, match="rounds the number of trials"):
        lt.grad(lambda n: function(2.0, n, 0.3))(5.0)


def test_at_the_ends_derivatives_are_finite():
    ends = np.array([0.0, np.inf])

    assert np.all(lt.grad(lambda a: special.fdtr(a, 3.0, ends).sum())(0.5) == 0.0)
    assert np.all(lt.grad(lambda a: special.chdtr(a, ends).sum())(0.5) == 0.0)
    assert lt.grad(lambda p: special.bdtr(5, 5, p))(0.3) == 0.0
    assert lt.grad(lambda p: special.pdtr(0, p))(0.0) == -1.0


def test_quantiles_of_t_and_beta_are_inverses_for_each_shape():
    q = np.array([0.01, 0.4, 0.97])

    def student(df):
        return stats.t.cdf(stats.t.ppf(q, df), df).sum() + stats.t.sf(stats.t.isf(q, df), df).sum()

    def beta(a, b):
        upper = stats.beta.sf(stats.beta.isf(q, a, b), a, b)
        return stats.beta.cdf(stats.beta.ppf(q, a, b), a, b).sum() + upper.sum()

    assert_close(0.0, lt.grad(student)(3.5), atol=1e-12)
    assert_close((0.0, 0.0), lt.grad(beta, (0, 1))(3.5, 0.7), atol=1e-12)


def test_the_density_of_t_with_infinitely_many_degrees_of_freedom_is_normal():
    x = np.array([-1.0, 0.0, 3.0])

    assert_close(stats.norm.logpdf(x), lt.trace(lambda df: stats.t.logpdf(x, df), 1.0)(np.inf))
    assert lt.grad(lambda df: stats.t.logpdf(x, df).sum())(np.inf) == 0.0

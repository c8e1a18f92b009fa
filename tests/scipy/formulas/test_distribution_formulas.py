"""The formulas of distributions, which are recorded from SciPy's own methods."""

import numpy as np
import pytest
from scipy import stats

import letir as lt
from letir.testing import assert_close, check_grads
from tests.scipy.formulas.test_formulas import compare_formulas

X, Q, K = np.array([0.4, 0.8, 1.1]), np.array([0.2, 0.55, 0.83]), np.array([0, 1, 3])
# name -> shape parameters, location and scale
CONTINUOUS = {
    "lognorm": (0.7, 0.1, 1.3),
    "weibull_min": (1.7, 0.1, 1.3),
    "pareto": (2.3, -0.8, 1.1),
    "gumbel_r": (0.1, 1.2),
    "gumbel_l": (0.1, 1.2),
    "rayleigh": (0.1, 1.2),
    "invgamma": (2.3, 0.1, 1.2),
    "halfnorm": (0.1, 1.2),
    "loguniform": (0.2, 3.3),
    "maxwell": (0.1, 1.2),
    "powerlaw": (1.7, 0.1, 1.9),
    "dweibull": (1.7,),
    "hypsecant": (),
}
DISCRETE = {
    "binom": (5, 0.4),
    "geom": (0.4,),
    "nbinom": (3.3, 0.4),
}


def method_of(name, method):
    """The method as a function that reads its name while it is recorded."""
    space = {"stats": stats}
    exec(f"def call(x, *p): return stats.{name}.{method}(x, *p)", space)
    return space["call"]


@pytest.mark.parametrize("name", CONTINUOUS)
def test_formulas_of_densities_and_quantiles_are_those_of_scipy(name):
    methods = ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")
    for method in methods if name != "powerlaw" else methods[:3]:
        x = Q if method in ("ppf", "isf") else X

        assert compare_formulas(method_of(name, method), (x, *CONTINUOUS[name])) == 1
        check_grads(method_of(name, method), (x, *CONTINUOUS[name]), order=1, rtol=1e-4)


@pytest.mark.parametrize("name", DISCRETE)
def test_formulas_of_probabilities_are_those_of_scipy(name):
    for method in ("pmf", "logpmf", "cdf", "sf"):
        compare_formulas(method_of(name, method), (K + (name == "geom"), *DISCRETE[name]))


@pytest.mark.parametrize("name", ["lognorm", "weibull_min", "pareto", "gumbel_r"])
def test_second_derivatives_of_distributions_agree_with_differences(name):
    for method, x in (("logpdf", X), ("cdf", X), ("ppf", Q)):
        check_grads(method_of(name, method), (x, *CONTINUOUS[name]), order=2, rtol=1e-3)


def test_derivatives_with_respect_to_a_probability():
    check_grads(lambda p: stats.binom.logpmf(K, 5, p), (0.4,), order=2, rtol=1e-4)
    check_grads(lambda p: stats.binom.cdf(K, 5, p), (0.4,), order=2, rtol=1e-4)
    check_grads(lambda p: stats.geom.logpmf(K + 1, p), (0.4,), order=2, rtol=1e-4)
    check_grads(lambda n, p: stats.nbinom.logpmf(K, n, p), (3.3, 0.4), order=2, rtol=1e-4)


def test_derivatives_of_moments_agree_with_differences():
    for method in ("mean", "var", "std", "entropy"):
        space = {"stats": stats}
        exec(f"def call(a, m, s): return stats.lognorm.{method}(a, m, s)", space)
        check_grads(space["call"], (0.7, 0.1, 1.3), order=2, rtol=1e-4)


def test_the_derivative_of_a_distribution_function_without_a_formula_is_the_density():
    """SciPy integrates the density; derivatives with respect to its shape are not known."""
    x = 1.3
    slope = lt.grad(lambda x: stats.exponpow.cdf(x, 0.8) + stats.nakagami.cdf(x, 1.3))(x)
    known = lt.grad(lambda x: stats.genexpon.cdf(x, 0.8, 1.2, 0.5))(x)

    assert_close(slope, stats.exponpow.pdf(x, 0.8) + stats.nakagami.pdf(x, 1.3))
    assert_close(known, stats.genexpon.pdf(x, 0.8, 1.2, 0.5))
    with pytest.raises(lt.MissingRule, match="SciPy has no formula for the derivative"):
        lt.grad(lambda a: stats.powerlaw.sf(0.3, a))(1.7)


def test_outside_of_the_support_derivatives_are_zero():
    assert lt.grad(lambda x: stats.lognorm.pdf(x, 0.7))(-1.0) == 0.0
    assert lt.grad(lambda s: stats.lognorm.cdf(-1.0, s))(0.7) == 0.0

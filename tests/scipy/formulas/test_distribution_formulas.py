"""The formulas of distributions, which are recorded from SciPy's own methods."""

import numpy as np
import pytest
from scipy import special, stats

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


# name -> shape parameters; the distribution function of the second half is integrated
OTHERS = {
    "burr": (2.5, 1.3),
    "crystalball": (1.2, 2.5),
    "dgamma": (1.3,),
    "genextreme": (-0.2,),
    "gengamma": (1.4, -1.5),
    "genhalflogistic": (0.3,),
    "genpareto": (0.0,),
    "kappa4": (0.2, 0.1),
    "laplace_asymmetric": (1.7,),
    "loggamma": (1.4,),
    "pearson3": (0.7,),
    "trapezoid": (0.2, 0.7),
    "triang": (0.5,),
    "truncnorm": (-1.0, 0.7),
    "truncpareto": (1.8, 4.3),
    "kappa3": (1.4,),
    "norminvgauss": (1.3, 0.4),
    "powerlaw": (1.7,),
    "rice": (0.9,),
    "skewnorm": (1.7,),
    "vonmises": (2.3,),
    "wrapcauchy": (0.4,),
}


@pytest.mark.parametrize("name", OTHERS)
def test_distributions_have_derivatives_with_respect_to_every_parameter(name):
    shapes = OTHERS[name]
    q = np.array([0.03, 0.4, 0.93])
    x = getattr(stats, name).ppf(q, *shapes) * 1.3 + 0.2

    for method, point in (("logpdf", x), ("cdf", x), ("logsf", x), ("ppf", q)):
        compare_formulas(method_of(name, method), (point, *shapes, 0.2, 1.3))
        check_grads(method_of(name, method), (point, *shapes, 0.2, 1.3), order=1, rtol=1e-5)


@pytest.mark.parametrize("name", ["rice", "skewnorm", "truncnorm", "pearson3"])
def test_second_derivatives_of_integrated_and_other_tails_agree_with_differences(name):
    shapes = OTHERS[name]
    x = float(getattr(stats, name).ppf(0.3, *shapes))

    for method, point in (("cdf", x), ("logsf", x), ("ppf", 0.3)):
        check_grads(method_of(name, method), (point, *shapes, 0.0, 1.3), order=2, rtol=1e-4)


def test_derivatives_of_integrated_tails_are_exact():
    """The derivative of the tail of skewnorm is known; that of rice is by a Bessel function."""
    x, a = np.array([-20.0, -1.0, 0.3, 2.0, 6.0]), 1.7
    skew = -np.exp(-x * x * (1 + a * a) / 2) / (np.pi * (1 + a * a))
    y, b = np.array([0.01, 0.5, 2.0, 7.0]), 1.3
    rice = -y * np.exp(-0.5 * (y - b) ** 2) * special.i1e(y * b)

    assert np.allclose(skew, lt.jacfwd(lambda a: stats.skewnorm.cdf(x, a))(a), rtol=1e-10, atol=0)
    assert np.allclose(rice, lt.jacfwd(lambda b: stats.rice.cdf(y, b))(b), rtol=1e-10, atol=0)


def test_derivatives_at_the_middle_and_far_out_are_finite():
    for name, shape in (("gennorm", 1.3), ("dgamma", 1.0), ("dweibull", 1.0)):
        found = lt.grad(method_of(name, "cdf"), (0, 1))(0.0, shape)
        assert_close((getattr(stats, name).pdf(0.0, shape), 0.0), found)
    assert_close(0.5, lt.grad(stats.laplace.cdf)(0.0))
    with np.errstate(over="ignore"):  # SciPy computes both sides
        far = lt.grad(stats.laplace_asymmetric.logsf, (0, 1))(150.0, 0.1)
    assert_close((-0.1, -150.0 - 0.2 / 1.01), far)  # log sf is -z k - log(k**2 + 1)


def test_quantiles_at_the_ends_of_a_support_move_with_it():
    ends = np.array([0.0, 1.0])

    assert lt.grad(lambda loc: stats.arcsine.ppf(ends, loc, 2.0).sum())(0.5) == 2.0
    assert lt.grad(lambda scale: stats.arcsine.ppf(ends, 0.5, scale).sum())(2.0) == 1.0
    assert lt.grad(lambda loc: stats.weibull_min.ppf(0.0, 1.3, loc))(0.5) == 1.0


def test_derivatives_of_discrete_tails_and_moments():
    check_grads(lambda p: stats.bernoulli.cdf(np.array([-1, 0, 1]), p), (0.3,), order=2)
    check_grads(lambda a: stats.dlaplace.sf(np.array([-2, 0, 1]), a), (0.7,), order=2)
    check_grads(stats.poisson.std, (0.7,), order=2)
    check_grads(lambda n, p: stats.nbinom.var(n, p) + stats.nbinom.mean(n, p), (3.3, 0.4), order=2)


def test_what_depends_on_a_shape_parameter_without_a_derivative_is_refused():
    with pytest.raises(lt.MissingRule, match="genhyperbolic"):
        lt.grad(lambda p: stats.genhyperbolic.cdf(0.3, p, 1.5, 0.2))(0.7)
    with pytest.raises(lt.MissingRule, match="landau"):
        lt.grad(stats.landau.pdf)(0.7)


def test_outside_of_the_support_derivatives_are_zero():
    assert lt.grad(lambda x: stats.lognorm.pdf(x, 0.7))(-1.0) == 0.0
    assert lt.grad(lambda s: stats.lognorm.cdf(-1.0, s))(0.7) == 0.0
    assert lt.grad(lambda c: stats.genpareto.cdf(7.0, c))(-0.5) == 0.0

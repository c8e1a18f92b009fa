"""Methods of SciPy's distributions that code has read before it is recorded."""

import threading

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

stats = pytest.importorskip("scipy.stats")

logpdf = stats.norm.logpdf
prior = stats.norm(0.5, 2.0)
shaped = stats.gamma(2.0, scale=1.5)
vector = stats.multivariate_normal(np.zeros(2), np.eye(2) + 0.3)
BY_NAME = {"cdf": stats.norm.cdf, "sf": stats.laplace.sf}


class Model:
    def __init__(self):
        self.prior = stats.norm(1.0, 2.0)
        self.link = stats.norm.cdf

    def density(self, x):
        return self.prior.logpdf(x) + self.link(x)


def by_default(x, density=stats.expon.logpdf):
    return density(x)


def in_closure(f):
    return lambda x: f(x) * 2.0


FUNCTIONS = {
    "name": lambda x: logpdf(x, 0.5, scale=2.0),
    "frozen": lambda x: prior.logpdf(2.0 * x),
    "shaped": lambda x: shaped.pdf(x) + shaped.cdf(x),
    "vector": lambda x: vector.logpdf(np.array([x, 1.0])),
    "dict": lambda x: BY_NAME["cdf"](x) + BY_NAME["sf"](x),
    "object": Model().density,
    "default": by_default,
    "closure": in_closure(stats.beta(2.0, 3.0).logpdf),
    "itself": stats.norm.logpdf,
    "frozen itself": prior.cdf,
    "class": lambda x: stats.rv_continuous.logpdf(stats.norm, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_methods_are_recorded_wherever_they_are_held(name):
    f = FUNCTIONS[name]

    np.testing.assert_allclose(lt.trace(f, 0.7)(0.4), f(0.4), rtol=1e-13)
    np.testing.assert_allclose(lt.jit(f)(0.4), f(0.4), rtol=1e-13)
    slope = (f(0.4 + 1e-6) - f(0.4 - 1e-6)) / 2e-6
    np.testing.assert_allclose(lt.grad(f)(0.4), slope, rtol=1e-7)


def test_counts_have_the_mass_of_a_captured_distribution():
    mass = stats.poisson(2.5).logpmf
    assert_same(mass(np.arange(4)), lt.trace(lambda x: x + mass(np.arange(4)), 0.0)(0.0))
    np.testing.assert_allclose(
        lt.grad(lambda rate: stats.poisson.logpmf(3, rate))(2.5), 3 / 2.5 - 1, rtol=1e-12
    )


def test_scipys_methods_have_their_code_again():
    code = stats.rv_continuous.logpdf.__code__
    with pytest.raises(ZeroDivisionError):
        lt.trace(lambda x: prior.logpdf(x) + 1 / 0, 0.5)
    assert stats.rv_continuous.logpdf.__code__ is code
    lt.trace(FUNCTIONS["vector"], 0.5)
    assert stats.rv_continuous.logpdf.__code__ is code


def test_other_threads_get_scipys_numbers_meanwhile():
    found = []

    def compute():
        found.append((prior.logpdf(0.3), vector.pdf([0.1, 0.2]), stats.norm.fit([1.0, 2.0])))

    def f(x):
        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()
        return prior.logpdf(x)

    lt.trace(f, 0.5, check=False)
    compute()
    assert found[0] == found[1]


def test_a_distribution_without_a_formula_is_recorded_as_a_call_of_scipy():
    distribution = stats.gumbel_r(0.0, 1.0)
    program = lt.trace(distribution.logpdf, 0.5)

    assert_same(distribution.logpdf(1.5), program(1.5))

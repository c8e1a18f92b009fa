"""Derivatives of SciPy's functions compared with ``jax.scipy``, up to the second order."""

import importlib

import numpy as np
import pytest
from scipy import special

import letir as lt
import letir.scipy
from letir.testing import assert_close

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
POSITIVE = np.array([0.5, 1.25, 3.5])
OTHERS = np.array([1.1, 0.43, 2.7])
WITHIN = np.array([0.15, 0.5, 0.8])
A = np.array([[2.0, 0.5, 0.25], [-0.125, 1.5, 0.375], [0.25, -0.5, 3.0]])
B = np.array([[1.0, -0.5], [0.25, 2.0], [0.75, -1.5]])
COUNTS = np.array([0.0, 1.0, 4.0])

OF_REALS = "expit log_expit erf erfc ndtr log_ndtr i0 i1 i0e i1e"
OF_POSITIVE = "gammaln gamma digamma entr expi exp1 spence"
OF_PROBABILITIES = "logit erfinv ndtri"
OF_TWO = "xlogy xlog1py rel_entr kl_div beta betaln gammainc gammaincc zeta poch"
BY_SECOND = ("zeta",)  # JAX has no derivative with respect to the first argument


class Ours:
    """SciPy's ufuncs, and the namespaces of letir."""

    special, stats = letir.scipy.special, letir.scipy.stats
    linalg, signal, integrate = letir.scipy.linalg, letir.scipy.signal, letir.scipy.integrate


def called(name: str):
    """A function of scipy.special in either library."""
    return lambda m, *args: getattr(m.special, name)(*args)


FUNCTIONS = {
    **{name: (called(name), (X,)) for name in OF_REALS.split()},
    **{name: (called(name), (POSITIVE,)) for name in OF_POSITIVE.split()},
    **{name: (called(name), (WITHIN,)) for name in OF_PROBABILITIES.split()},
    **{
        name: (called(name), (POSITIVE, OTHERS)) for name in OF_TWO.split() if name not in BY_SECOND
    },
    "zeta": (lambda m, q: m.special.zeta(2.5, q), (POSITIVE,)),
    "polygamma": (lambda m, x: m.special.polygamma(2, x), (POSITIVE,)),
    "betainc": (lambda m, x: m.special.betainc(1.5, 2.5, x), (WITHIN,)),
    "logsumexp": (lambda m, x: m.special.logsumexp(x, axis=1), (X,)),
    "logsumexp b": (lambda m, x, b: m.special.logsumexp(x, axis=0, b=b), (X, X * X)),
    "logsumexp sign": (
        lambda m, x: m.special.logsumexp(x, b=-x * x, axis=1, return_sign=True)[0],
        (X,),
    ),
    "softmax": (lambda m, x: m.special.softmax(x, axis=1), (X,)),
    "log_softmax": (lambda m, x: m.special.log_softmax(x, axis=0), (X,)),
    "norm.logpdf": (lambda m, x, a, b: m.stats.norm.logpdf(x, a, b), (X, X[0], POSITIVE)),
    "norm.pdf": (lambda m, x: m.stats.norm.pdf(x), (X,)),
    "norm.cdf": (lambda m, x, b: m.stats.norm.cdf(x, scale=b), (X, POSITIVE)),
    "norm.logcdf": (lambda m, x: m.stats.norm.logcdf(x), (X * 8,)),
    "norm.sf": (lambda m, x: m.stats.norm.sf(x), (X,)),
    "norm.ppf": (lambda m, p: m.stats.norm.ppf(p), (WITHIN,)),
    "t.logpdf": (lambda m, x, df: m.stats.t.logpdf(x, df), (X, POSITIVE)),
    "beta.logpdf": (lambda m, x, a, b: m.stats.beta.logpdf(x, a, b), (WITHIN, POSITIVE, OTHERS)),
    "beta.cdf": (lambda m, x: m.stats.beta.cdf(x, 1.5, 2.5), (WITHIN,)),
    "gamma.logpdf": (lambda m, x, a: m.stats.gamma.logpdf(x, a), (POSITIVE, OTHERS)),
    "gamma.cdf": (lambda m, x, a: m.stats.gamma.cdf(x, a), (POSITIVE, OTHERS)),
    "chi2.logpdf": (lambda m, x, a: m.stats.chi2.logpdf(x, a), (POSITIVE, OTHERS)),
    "chi2.cdf": (lambda m, x: m.stats.chi2.cdf(x, 3.0), (POSITIVE,)),
    "expon.logpdf": (lambda m, x, s: m.stats.expon.logpdf(x, scale=s), (POSITIVE, OTHERS)),
    "poisson.logpmf": (lambda m, mu: m.stats.poisson.logpmf(COUNTS, mu), (POSITIVE,)),
    "poisson.cdf": (lambda m, mu: m.stats.poisson.cdf(COUNTS, mu), (POSITIVE,)),
    "multivariate_normal": (
        lambda m, x, mean, a: m.stats.multivariate_normal.logpdf(x, mean, a @ a.T),
        (X, X[0], A),
    ),
    "expm": (lambda m, a: m.linalg.expm(a), (A,)),
    "sqrtm": (lambda m, a: m.linalg.sqrtm((a @ a.T).astype(complex)).real, (A,)),
    "solve_triangular": (lambda m, a, b: m.linalg.solve_triangular(a, b), (A, B)),
    "solve_triangular T": (
        lambda m, a, b: m.linalg.solve_triangular(a, b, trans=1, lower=True, unit_diagonal=True),
        (A, B),
    ),
    "cho_solve": (
        lambda m, a, b: m.linalg.cho_solve(m.linalg.cho_factor(a @ a.T), b),
        (A, B),
    ),
    "block_diag": (lambda m, a, b: m.linalg.block_diag(a, b) ** 2, (A, B)),
    "toeplitz": (lambda m, a: m.linalg.toeplitz(a) ** 2, (OTHERS,)),
    "convolve": (lambda m, a, b: m.signal.convolve(a, b, mode="same"), (X[0], OTHERS)),
    "convolve 2": (lambda m, a, b: m.signal.convolve(a, b, mode="valid"), (A, B[:2])),
    "trapezoid": (lambda m, y, x: m.integrate.trapezoid(y, x), (OTHERS, POSITIVE)),
}
LACKS = {
    "sqrtm": "JAX has no derivative of sqrtm",
    "log_expit": "JAX has no log_expit",
    "spence": "JAX gives nan",
}
FIRST_ORDER = {"exp1", "gammainc", "gammaincc", "gamma.cdf"}  # JAX has no second derivative
DIFFERS = {
    # up to the rounding of its series
    **dict.fromkeys(("gammainc", "gammaincc", "gamma.cdf"), 1e-7),
    "poisson.cdf": 1e-7,
}


class Jax:
    """JAX in double precision."""

    def __init__(self):
        self.jax = pytest.importorskip("jax", reason="JAX is not installed")
        self.jax.config.update("jax_enable_x64", True)
        for name in ("special", "stats", "linalg", "signal", "integrate"):
            setattr(self, name, importlib.import_module(f"jax.scipy.{name}"))


def case_of(name: str) -> tuple:
    """(JAX, function, arguments, weights of the results, positions)."""
    if name in LACKS:
        pytest.skip(LACKS[name])
    call, args = FUNCTIONS[name]
    out = np.asarray(call(Ours, *args))
    weights = np.cos(np.arange(out.size)).reshape(out.shape)
    return Jax(), call, args, weights, tuple(range(len(args)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_agree_with_jax(name):
    jax, call, args, weights, every = case_of(name)

    found = lt.grad(lambda *a: (call(Ours, *a) * weights).sum(), argnums=every)(*args)
    expected = jax.jax.grad(lambda *a: (call(jax, *a) * weights).sum(), argnums=every)(*args)

    assert_close(call(jax, *args), call(Ours, *args))
    assert_close(expected, found, rtol=DIFFERS.get(name))


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - FIRST_ORDER))
def test_second_derivatives_agree_with_jax(name):
    jax, call, args, weights, every = case_of(name)

    def second(grad, module):
        first = grad(lambda *a: (call(module, *a) * weights).sum(), argnums=every)
        along = [np.sin(np.arange(x.size) + 1.0).reshape(x.shape) for x in args]

        def paired(*a):
            return sum((g * v).sum() for g, v in zip(first(*a), along, strict=True))

        return grad(paired, argnums=every)(*args)

    assert_close(second(jax.jax.grad, jax), second(lt.grad, Ours), rtol=1e-6, atol=1e-7)


def at_quantile(q: float):
    """The quantile of this probability as a function of the shape parameter."""
    return lambda a: special.gammaincinv(a, q)


def test_implicit_derivatives_of_gamma_numbers_agree_with_jax():
    jax = Jax().jax
    a = np.array([0.05, 0.5, 2.0, 30.0, 500.0])
    for quantile in (0.01, 0.5, 0.99):
        x = special.gammaincinv(a, quantile)
        expected = jax.lax.random_gamma_grad(a, x)
        found = lt.jvp(at_quantile(quantile), (a,), (np.ones(5),))[1]
        assert_close(expected, found, rtol=1e-6)

"""letir.scipy: SciPy's own functions outside of traces, the same numbers and derivatives inside."""

import numpy as np
import pytest
import scipy
from scipy import stats

import letir as lt
import letir.scipy
from letir.testing import assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, 3.625]])
P = np.array([[0.5, 0.25, 0.8], [0.15, 0.75, 0.625]])
COUNTS = np.array([0.0, 1.0, 4.0, -1.0, 1.5])
EDGES = np.array([-np.inf, -1.0, -0.0, 0.5, 1.0, 2.0, np.inf, np.nan])
A = np.array([[2.0, 0.5, 0.25], [-0.125, 1.5, 0.375], [0.25, -0.5, 3.0]])
SPD = A @ A.T
B = np.array([[1.0, -0.5], [0.25, 2.0], [0.75, -1.5]])
LONG, SHORT = np.linspace(-1.0, 2.0, 7) ** 2, np.array([0.5, -1.0, 2.0])
ODD, EVEN = np.sin(np.arange(7.0)), np.cos(np.arange(6.0))
TIMES = np.array([0.0, 0.3, 1.0, 1.4, 2.5, 3.0, 4.5])


def decay(y, t, a):
    return -a * y + np.sin(t)


# name -> (call of a module like scipy, arguments)
CALLS = {
    "norm.pdf": (lambda m, x: m.stats.norm.pdf(x), (X,)),
    "norm.logpdf": (lambda m, x, a, b: m.stats.norm.logpdf(x, a, b), (X, X[0], P[0])),
    "norm.cdf scale": (lambda m, x, b: m.stats.norm.cdf(x, scale=b), (X, P)),
    "norm.sf": (lambda m, x: m.stats.norm.sf(x, loc=0.5), (X * 10,)),
    "norm.logcdf": (lambda m, x: m.stats.norm.logcdf(x), (X * -20,)),
    "norm.logsf": (lambda m, x: m.stats.norm.logsf(x), (X * 20,)),
    "norm.ppf": (lambda m, p: m.stats.norm.ppf(p, 0.5, 2.0), (P,)),
    "norm.isf": (lambda m, p: m.stats.norm.isf(p), (P,)),
    "norm frozen": (lambda m, x, a: m.stats.norm(a, 2.0).logpdf(x), (X, X[0])),
    "norm of a number": (lambda m, x: m.stats.norm.cdf(x), (0.5,)),
    "t.logpdf": (lambda m, x, df: m.stats.t.logpdf(x, df), (X, P[0] * 9)),
    "t.cdf": (lambda m, x: m.stats.t.cdf(x, 3, 0.5, 2.0), (X,)),
    "t.ppf": (lambda m, p: m.stats.t.ppf(p, 4), (P,)),
    "beta.logpdf": (lambda m, x, a, b: m.stats.beta.logpdf(x, a, b), (P, P[0] + 1, 2.5)),
    "beta.cdf": (lambda m, x: m.stats.beta.cdf(x, 2, 3, -0.5, 2.25), (X,)),
    "beta.ppf": (lambda m, p: m.stats.beta.ppf(p, 2, 3), (P,)),
    "gamma.logpdf": (lambda m, x, a, s: m.stats.gamma.logpdf(x, a, scale=s), (X, P[0] * 4, P[1])),
    "gamma.cdf": (lambda m, x, a: m.stats.gamma.cdf(x, a), (X, P[0] * 4)),
    "gamma.sf": (lambda m, x, a: m.stats.gamma.sf(x, a), (X, P[0] * 4)),
    "gamma.ppf": (lambda m, p, a: m.stats.gamma.ppf(p, a), (P, P[0] * 4)),
    "chi2.logpdf": (lambda m, x, df: m.stats.chi2.logpdf(x, df), (X, P[0] * 9)),
    "chi2.cdf": (lambda m, x, df: m.stats.chi2.cdf(x, df), (X, P[0] * 9)),
    "expon.logpdf": (lambda m, x, s: m.stats.expon.logpdf(x, scale=s), (X, P[0])),
    "expon.ppf": (lambda m, p: m.stats.expon.ppf(p), (P,)),
    "poisson.logpmf": (lambda m, mu: m.stats.poisson.logpmf(COUNTS, mu), (1.5,)),
    "poisson.pmf": (lambda m, mu: m.stats.poisson.pmf(COUNTS[:, None], mu, 1), (P[0],)),
    "poisson.cdf": (lambda m, mu: m.stats.poisson.cdf(COUNTS, mu), (1.5,)),
    "poisson.sf": (lambda m, mu: m.stats.poisson.sf(COUNTS, mu=mu), (1.5,)),
    "multivariate_normal": (
        lambda m, x, mean, s: m.stats.multivariate_normal.logpdf(x, mean, s @ s.T),
        (X, X[0], A),
    ),
    "multivariate_normal.pdf": (
        lambda m, x: m.stats.multivariate_normal.pdf(x, np.zeros(3), np.array([0.5, 1.0, 2.0])),
        (X[0],),
    ),
    "multivariate_normal of numbers": (lambda m, x: m.stats.multivariate_normal.logpdf(x), (X[0],)),
    "multivariate_normal of one element": (
        lambda m, x: m.stats.multivariate_normal.logpdf(x, np.zeros(3), np.eye(3)),
        (X[0][:1],),
    ),
    "t.logcdf": (lambda m, x: m.stats.t.logcdf(x, 3), (X,)),
    "t.logsf": (lambda m, x: m.stats.t.logsf(x, 3, 0.5), (X,)),
    "beta.logsf": (lambda m, x: m.stats.beta.logsf(x, 2, 3), (P,)),
    "gamma.logcdf": (lambda m, x, a: m.stats.gamma.logcdf(x, a), (P, P[0] * 4)),
    "gamma.isf": (lambda m, p, a: m.stats.gamma.isf(p, a), (P, P[0] * 4)),
    "chi2.isf": (lambda m, p: m.stats.chi2.isf(p, 3), (P,)),
    "expon.logsf": (lambda m, x: m.stats.expon.logsf(x, scale=2.0), (P,)),
    "uniform.logpdf": (lambda m, x, s: m.stats.uniform.logpdf(x, 0.1, s), (P, 2.0)),
    "uniform.cdf": (lambda m, x: m.stats.uniform.cdf(x), (X,)),
    "laplace.logpdf": (lambda m, x, a: m.stats.laplace.logpdf(x, a, 2.0), (X, 0.3)),
    "laplace.cdf": (lambda m, x: m.stats.laplace.cdf(x), (X * 300,)),
    "laplace.ppf": (lambda m, p: m.stats.laplace.ppf(p), (P * 0.9,)),
    "logistic.logpdf": (lambda m, x: m.stats.logistic.logpdf(x, scale=0.5), (X,)),
    "logistic.sf": (lambda m, x: m.stats.logistic.sf(x), (X * 300,)),
    "cauchy.logpdf": (lambda m, x: m.stats.cauchy.logpdf(x, 0.5), (X,)),
    "cauchy.cdf": (lambda m, x: m.stats.cauchy.cdf(x), (X,)),
    "multivariate_normal frozen": (
        lambda m, x, s: m.stats.multivariate_normal(np.ones(3), s @ s.T).logpdf(x),
        (X, A),
    ),
    "multivariate_normal.entropy": (
        lambda m, s: m.stats.multivariate_normal.entropy(np.ones(3), s @ s.T),
        (A,),
    ),
    "multivariate_normal of one variance": (
        lambda m, x, s: m.stats.multivariate_normal.logpdf(x, 0.5, s),
        (X[0], 2.0),
    ),
    "multivariate_normal singular": (
        lambda m, b: m.stats.multivariate_normal.logpdf(
            (b @ np.array([0.5, 1.0])), np.zeros(3), b @ b.T, allow_singular=True
        ),
        (B,),
    ),
    "dirichlet.logpdf": (
        lambda m, z, a: m.stats.dirichlet.logpdf(np.exp(z) / np.exp(z).sum(), a),
        (SHORT, P[0] + 1),
    ),
    "dirichlet.pdf of fewer": (lambda m, x, a: m.stats.dirichlet.pdf(x, a), (P[1, :2] / 2, P[0])),
    "dirichlet of columns": (
        lambda m, z, a: m.stats.dirichlet(a).logpdf(z.T / z.T.sum(0)),
        (P, P[0] + 1),
    ),
    "dirichlet.entropy": (lambda m, a: m.stats.dirichlet.entropy(a), (P[0] + 1,)),
    "dirichlet.mean": (lambda m, a: m.stats.dirichlet(a).mean(), (P[0],)),
    "dirichlet.var": (lambda m, a: m.stats.dirichlet.var(a), (P[0],)),
    "solve_sylvester": (lambda m, a, b, q: m.linalg.solve_sylvester(a, b, q), (A, SPD[:2, :2], B)),
    "solve_continuous_lyapunov": (lambda m, a: m.linalg.solve_continuous_lyapunov(a, SPD), (A,)),
    "solve_discrete_lyapunov": (
        lambda m, a: m.linalg.solve_discrete_lyapunov(a / 5, np.eye(3)),
        (A,),
    ),
    "solve_banded": (lambda m, ab, b: m.linalg.solve_banded((1, 1), ab, b), (A + 1, B)),
    "solve_banded wide": (
        lambda m, ab, b: m.linalg.solve_banded((0, 2), ab, b),
        (A[::-1] + 1, B[:, 0]),
    ),
    "solveh_banded": (
        lambda m, ab, b: m.linalg.solveh_banded(ab, b),
        (np.array([[0.0, 0.5, -0.25], [2.0, 3.0, 1.5]]), B),
    ),
    "solveh_banded lower": (
        lambda m, ab, b: m.linalg.solveh_banded(ab, b, lower=True),
        (np.array([[2.0, 3.0, 1.5], [0.5, -0.25, 0.0]]), B),
    ),
    "circulant": (lambda m, c: m.linalg.circulant(c), (SHORT,)),
    "hankel": (lambda m, c, r: m.linalg.hankel(c, r), (SHORT, LONG)),
    "hankel of one": (lambda m, c: m.linalg.hankel(c), (SHORT,)),
    "solve_toeplitz": (lambda m, c, b: m.linalg.solve_toeplitz(c, b), (SHORT + 3, B)),
    "eigvalsh": (lambda m, a: m.linalg.eigvalsh(a @ a.T), (A,)),
    "eigvalsh of a pair": (lambda m, a: m.linalg.eigvalsh(a + a.T, a @ a.T), (A,)),
    "svd": (lambda m, b: m.linalg.svd(b, full_matrices=False)[1], (B,)),
    "svdvals": (lambda m, b: m.linalg.svdvals(b), (B,)),
    "norm": (lambda m, b: m.linalg.norm(b, 1), (B,)),
    "polar": (lambda m, a: m.linalg.polar(a)[1], (A,)),
    "cosm": (lambda m, a: m.linalg.cosm(a), (A,)),
    "sinm": (lambda m, a: m.linalg.sinm(a), (A,)),
    "expm": (lambda m, a: m.linalg.expm(a), (A,)),
    "expm stacked": (lambda m, a: m.linalg.expm(a), (np.stack([A, A.T]),)),
    "logm": (lambda m, a: m.linalg.logm(a), (SPD,)),
    "logm complex": (lambda m, a: m.linalg.logm(a.astype(complex) * 1j).imag, (SPD,)),
    "sqrtm": (lambda m, a: m.linalg.sqrtm(a), (SPD,)),
    "sqrtm complex": (lambda m, a: m.linalg.sqrtm(a.astype(complex)).real, (SPD,)),
    "solve_triangular": (lambda m, a, b: m.linalg.solve_triangular(a, b), (A, B)),
    "solve_triangular T": (
        lambda m, a, b: m.linalg.solve_triangular(a, b, "T", lower=True, unit_diagonal=True),
        (A, B[:, 0]),
    ),
    "solve_triangular C": (
        lambda m, a, b: m.linalg.solve_triangular(a + 0.5j * a.T, b, trans=2).real,
        (A, B),
    ),
    "cho_solve": (
        lambda m, a, b: m.linalg.cho_solve(m.linalg.cho_factor(a @ a.T), b),
        (A, B),
    ),
    "cho_solve lower": (
        lambda m, a, b: m.linalg.cho_solve(m.linalg.cho_factor(a @ a.T, lower=True), b),
        (A, B[:, 1]),
    ),
    "block_diag": (lambda m, a, b: m.linalg.block_diag(a, np.ones((1, 2)), b), (A, B)),
    "toeplitz": (lambda m, c, r: m.linalg.toeplitz(c, r), (SHORT, LONG)),
    "toeplitz of one": (lambda m, c: m.linalg.toeplitz(c), (SHORT,)),
    "solve": (lambda m, a, b: m.linalg.solve(a, b), (A, B)),
    **{
        f"convolve {mode} {n}": (
            lambda m, a, b, mode=mode: m.signal.convolve(a, b, mode),
            (LONG, SHORT) if n == 1 else (A, B[:2]),
        )
        for mode in ("full", "same", "valid")
        for n in (1, 2)
    },
    "convolve small by large": (lambda m, a, b: m.signal.convolve(a, b, "same"), (SHORT, LONG)),
    "fftconvolve axes": (lambda m, a, b: m.signal.fftconvolve(a, b, "same", 0), (A, A[:2])),
    "correlate": (lambda m, a, b: m.signal.correlate(a, b), (LONG, SHORT)),
    "trapezoid": (lambda m, y, x: m.integrate.trapezoid(y, x), (ODD, TIMES)),
    "cumulative_trapezoid": (
        lambda m, y, x: m.integrate.cumulative_trapezoid(y, x, initial=0),
        (np.stack([ODD, LONG]), TIMES),
    ),
    "simpson odd": (lambda m, y: m.integrate.simpson(y, dx=0.5), (ODD,)),
    "simpson even": (lambda m, y: m.integrate.simpson(y, dx=0.5), (EVEN,)),
    "simpson at places": (lambda m, y, x: m.integrate.simpson(y, x), (ODD, TIMES)),
    "simpson of 2": (lambda m, y, x: m.integrate.simpson(y, x), (ODD[:2], TIMES[:2])),
    "simpson along an axis": (
        lambda m, y, x: m.integrate.simpson(y, x=x, axis=0),
        (np.stack([EVEN, LONG[:6]], 1), TIMES[:6]),
    ),
}


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_outside_a_trace_the_namespace_gives_scipys_results(name):
    call, args = CALLS[name]

    if "cho_solve" not in name:
        assert_same(call(scipy, *args), call(letir.scipy, *args))


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_a_replay_gives_scipys_numbers(name):
    call, args = CALLS[name]
    expected = call(scipy, *args)

    with np.errstate(all="ignore"):
        found = lt.trace(lambda *a: call(letir.scipy, *a), *args)(*args)

    assert np.asarray(expected).dtype == np.asarray(found).dtype
    assert_close(expected, found, rtol=1e-11, atol=1e-14)


@in_one_test
@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"t.ppf"}))  # SciPy is accurate to 1e-6 only
def test_derivatives_agree_with_differences(name):
    call, args = CALLS[name]

    def finite(*args):
        out = call(letir.scipy, *args)
        return np.where(np.isfinite(out), out, 0.0)

    with np.errstate(all="ignore"):
        check_grads(finite, args)


SUPPORTS = {
    "norm": (),
    "t": (2.5,),
    "beta": (2.0, 1.0),
    "gamma": (1.0,),
    "chi2": (2.0,),
    "expon": (),
}


@in_one_test
@pytest.mark.parametrize("name", SUPPORTS)
@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "sf"])
def test_at_and_beyond_the_edges_of_the_support_values_agree_with_scipy(name, method):
    shape = SUPPORTS[name]
    expected = getattr(getattr(stats, name), method)(EDGES, *shape)

    with np.errstate(all="ignore"):
        f = getattr(getattr(letir.scipy.stats, name), method)
        found = lt.trace(lambda x: f(x, *shape), EDGES)(EDGES)
        gradient = lt.grad(lambda x: f(x, *shape).sum())(np.array([-1.0, 0.5, 2.0]))

    assert_close(expected, found, rtol=1e-12)
    assert not np.isnan(gradient).any()


METHODS = ["pdf", "cdf", "sf", "logpdf", "logcdf", "logsf", "ppf", "isf"]
FAR = np.array([-1e200, -1e20, -40.0, -0.5, 0.0, 1e-20, 1e-8, 0.3, 2.0, 40.0, 1e20, 1e200, np.nan])
ENDS = np.array([-1.0, -0.0, 0.0, 1e-300, 1e-9, 0.3, 0.5, 0.9, 1 - 1e-12, 1.0, 1.5, np.inf, np.nan])


@in_one_test
@pytest.mark.parametrize("name", [*SUPPORTS, "uniform", "laplace", "logistic", "cauchy"])
@pytest.mark.parametrize("method", ["pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf"])
def test_far_values_and_probabilities_at_and_beyond_their_ends_agree_with_scipy(name, method):
    shape = SUPPORTS.get(name, ())
    distribution = getattr(stats, name)
    x = ENDS if method in ("ppf", "isf") else FAR
    with np.errstate(all="ignore"):
        expected = getattr(distribution, method)(x, *shape)
        found = lt.trace(lambda x: getattr(distribution, method)(x, *shape), x)(x)

    assert_close(expected, found, rtol=1e-9, atol=0)


def test_logarithms_of_probabilities_near_one_have_derivatives():
    chi2, t = stats.chi2, stats.t

    for f in (
        lambda x: chi2.logsf(0.2 * x, 5.0),
        lambda x: t.logcdf(3.0 + x, 3.0),
        lambda x: stats.cauchy.logpdf(x * 1e150) + stats.cauchy.logpdf(x),
        lambda q: stats.cauchy.ppf(q * 0.1) + stats.cauchy.isf(1 - 0.1 * q),
    ):
        check_grads(f, (0.4,), order=2)


@pytest.mark.parametrize("name", [*SUPPORTS, "uniform", "laplace", "logistic", "cauchy"])
def test_of_a_number_values_are_scalars_as_scipys(name):
    distribution = getattr(stats, name)(*SUPPORTS.get(name, ()))

    def program(x):
        return [getattr(distribution, method)(x) for method in METHODS]

    for found in (lt.trace(program, 0.25)(0.25), lt.jit(program)(0.25)):
        assert_close(program(0.25), found)
        assert [type(value) for value in found] == [np.float64] * len(METHODS)


def test_a_scale_that_is_not_positive_gives_nan():
    f = lt.trace(lambda x, s: letir.scipy.stats.norm.logpdf(x, 0, s), X, 1.0)

    assert np.isnan(f(X, -1.0)).all()
    assert np.isnan(f(X, 0.0)).all()


def test_a_density_is_recorded_as_one_bind():
    f = lt.trace(lambda x, a: letir.scipy.stats.gamma(a, scale=2.0).logpdf(x), X, 1.5)

    assert ["gamma_logpdf"] == [bind.op.name for bind in f.binds]


def test_other_attributes_of_a_distribution_are_scipys():
    assert_same(
        stats.norm.rvs(size=3, random_state=1), letir.scipy.stats.norm.rvs(size=3, random_state=1)
    )
    assert letir.scipy.stats.kstest is stats.kstest
    assert 0.5 == letir.scipy.stats.norm(0.5).mean()


def test_a_function_that_is_not_recorded_is_an_error_with_the_reason():
    for call in (
        lambda x: letir.scipy.stats.norm(x).rvs(),
        lambda x: letir.scipy.stats.dirichlet.cov(x[0]),
        lambda x: letir.scipy.stats.norm(x).expect(),
        lambda x: letir.scipy.special.polygamma(x, x),
    ):
        with pytest.raises(lt.MissingRule, match="of traced values is not recorded"):
            lt.trace(call, X)
    with pytest.raises(TypeError, match="norm has the parameters"):
        lt.trace(lambda x: letir.scipy.stats.norm.pdf(x, df=3), X)


def test_a_real_matrix_may_have_a_complex_root():
    root = letir.scipy.linalg.sqrtm
    a = -SPD

    program = lt.trace(root, a)

    assert_close(scipy.linalg.sqrtm(a), program(a))
    with pytest.raises(lt.GuardError):
        program(SPD)
    compiled = lt.jit(root)
    for matrix in (SPD, a, 2 * SPD, 2 * a):
        assert_close(scipy.linalg.sqrtm(matrix), compiled(matrix))
    check_grads(lambda a: root(a).imag, (a,), order=1)


def test_higher_derivatives_of_a_root_stay_on_its_branch():
    a = np.array([[1.0, 2.0, 0.25], [0.5, -1.5, 0.25], [0.125, 0.5, 2.0]])  # a negative eigenvalue

    def total(a):
        root = letir.scipy.linalg.sqrtm(a.astype(complex))
        return (root * (1 - 0.5j)).real.sum() + (root * root.T).imag.sum()

    check_grads(total, (a,), order=2)
    assert_close(lt.hessian(total)(a), lt.jacrev(lt.grad(total))(a))


def test_stacks_of_sylvester_equations_are_solved_one_by_one():
    stack = np.stack([A @ A.T + np.eye(len(A)), 2 * A @ A.T + 3 * np.eye(len(A))])
    solve = letir.scipy.linalg.solve_sylvester

    found = lt.vmap(solve)(stack, stack + 1, stack)

    expected = [scipy.linalg.solve_sylvester(a, a + 1, a) for a in stack]
    assert_close(np.stack(expected), found)
    check_grads(lambda a: lt.vmap(solve)(a, a + 1, a), (stack,), order=2)


def test_a_point_outside_of_the_simplex_is_scipys_error():
    f = letir.scipy.stats.dirichlet.logpdf

    with pytest.raises(ValueError, match="simplex"):
        lt.trace(f, np.array([0.5, 0.6, 0.2]), P[0])
    with pytest.raises(lt.GuardError):
        lt.trace(f, np.array([0.5, 0.25, 0.25]), P[0])(np.array([0.5, 0.6, 0.2]), P[0])


# ---- differential equations ----

ODE = {"rtol": 1e-10, "atol": 1e-10}
START, RATES = np.array([1.0, -0.5]), np.array([0.5, 1.5])


def solved(y0, t, a, **options):
    return letir.scipy.integrate.odeint(decay, y0, t, (a,), **{**ODE, **options})


def test_solutions_of_differential_equations_agree_with_scipy():
    expected = scipy.integrate.odeint(decay, START, TIMES, (RATES,), **ODE)
    f = lt.trace(solved, START, TIMES, RATES)

    assert_same(expected, solved(START, TIMES, RATES))
    assert_same(expected, f(START, TIMES, RATES))
    assert "odeint" == f.binds[-1].op.name


@pytest.mark.parametrize("rtol", [1e-10, np.array([1e-10, 1e-11]), [1e-10, 1e-11]], ids=str)
def test_derivatives_of_a_solution_agree_with_the_closed_form(rtol):
    """y' = -a y: y = y0 exp(-a t). Equations of derivatives have more parts than tolerances."""
    options = {**ODE, "rtol": rtol}

    def solution(y0, t, a):
        return letir.scipy.integrate.odeint(lambda y, s, a: -a * y, y0, t, (a,), **options)

    def closed(y0, t, a):
        return y0 * np.exp(-a * (t[:, None] - t[0]))

    args = START, TIMES[:4] + 0.5, RATES
    weights = np.cos(np.arange(8.0)).reshape(4, 2)
    for f, g in ((lt.grad, lt.grad), (lt.jacfwd, lt.jacfwd)):
        expected = f(lambda *a: (closed(*a) * weights).sum(), argnums=(0, 1, 2))(*args)
        found = g(lambda *a: (solution(*a) * weights).sum(), argnums=(0, 1, 2))(*args)
        assert_close(expected, found, rtol=1e-7, atol=1e-8)


def test_second_derivatives_of_a_solution_agree_with_the_closed_form():
    def solution(a):
        return letir.scipy.integrate.odeint(lambda y, s, a: -a * y, START, TIMES[:3], (a,), **ODE)

    expected = lt.hessian(lambda a: (START * np.exp(-a * TIMES[:3, None])).sum())(RATES)

    assert_close(expected, lt.hessian(lambda a: solution(a).sum())(RATES), rtol=1e-6, atol=1e-7)


def test_values_captured_by_the_right_hand_side_become_arguments():
    def end(a):
        return letir.scipy.integrate.odeint(lambda y, t: -a * y, START, TIMES[:2], **ODE)[-1].sum()

    expected = lt.grad(lambda a: (START * np.exp(-a * TIMES[1])).sum())(RATES)

    assert_close(expected, lt.grad(end)(RATES), rtol=1e-7)


def test_mapped_equations_are_solved_one_by_one():
    starts = np.stack([START, START + 1])

    found = lt.vmap(lambda y: solved(y, TIMES[:3], RATES))(starts)

    assert_close(np.stack([solved(y, TIMES[:3], RATES) for y in starts]), found, rtol=1e-8)


def test_a_function_of_scipy_in_a_vectorized_one_is_recorded():
    exponentials = np.vectorize(scipy.linalg.expm, signature="(n,n)->(n,n)")
    stack = np.stack([np.eye(2), np.ones((2, 2))])

    assert_close(exponentials(stack), lt.jit(exponentials)(stack))


def test_a_triangular_solve_checks_its_operands_but_not_its_cotangents():
    matrix = np.array([[2.0, 0.0], [1.0, 4.0]])
    right, infinite = np.array([0.0, 1.0]), np.array([1.0, np.inf])

    def solved(b, check=True):
        return scipy.linalg.solve_triangular(matrix, b, lower=True, check_finite=check)

    program = lt.trace(solved, right)
    with pytest.raises(ValueError, match="infs or NaNs"):
        program(infinite)
    with np.errstate(all="ignore"):
        assert_close(solved(infinite, False), lt.jit(lambda b: solved(b, False))(infinite))
        slope = lt.grad(lambda b: np.sqrt(solved(b)).sum())(right)  # infinite at the first number
    assert not np.isfinite(slope[0])
    assert_close(0.25, slope[1])


@pytest.mark.parametrize("options", [{}, {"b": np.array([1.0, 0.0, 2.0])}, {"return_sign": True}])
def test_the_logarithm_of_a_sum_of_exponentials_is_a_scalar(options):
    x = np.arange(3.0)

    found = lt.trace(lambda x: scipy.special.logsumexp(x, **options), x)(x)

    for part in found if isinstance(found, tuple) else (found,):
        assert type(part) is np.float64


def test_a_singular_covariance_has_the_derivatives_at_a_constant_rank():
    """By the pseudoinverse P: -P/2 + P d d^T P/2; both modes agree also at second order."""
    factor = np.array([[1.0, 0.2], [2.0, 0.1], [0.5, 3.0], [0.3, -1.0]])
    mean, along = np.array([0.1, -0.4, 1.0, 2.0]), np.array([0.5, 1.0])
    covariance, rest = factor @ factor.T, factor @ along
    inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)

    def density(x, mean, cov):
        return stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)

    def of_factor(factor):
        return density(mean + factor @ along, mean, factor @ factor.T)

    args = mean + rest, mean, covariance
    expected = 0.5 * (np.outer(inverse @ rest, inverse @ rest) - inverse)
    assert_close((-inverse @ rest, inverse @ rest, expected), lt.grad(density, (0, 1, 2))(*args))
    assert_close(lt.hessian(density, 2)(*args), lt.jacfwd(lt.jacfwd(density, 2), 2)(*args))
    check_grads(of_factor, (factor,), order=2, rtol=1e-4)
    assert np.all(lt.grad(density, 2)(mean, mean, np.zeros((4, 4))) == 0.0)


def test_logarithms_of_matrices_agree_with_scipy_for_all_sizes_and_scales():
    rng = np.random.default_rng(5)
    jordan, turn = np.array([[2.0, 1.0], [0.0, 2.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])
    general = [rng.normal(size=(n, n)) * 0.2 + np.eye(n) for n in (1, 2, 4)]
    logm = letir.scipy.linalg.logm
    program = lt.trace(logm, jordan)

    for a in [jordan, turn, 1e-6 * jordan, *general, 1e5 * general[2]]:
        again = program if a.shape == (2, 2) else lt.trace(logm, a)
        assert_close(scipy.linalg.logm(a), again(a), rtol=1e-12, atol=1e-14)
    check_grads(logm, (general[2],), order=2, rtol=1e-5)
    check_grads(logm, (np.stack([jordan, turn]),), order=1)
    assert lt.trace(logm, np.diag([-1.0, 2.0])).ret.args[0].type.dtype == complex
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        program(np.zeros((2, 2)))

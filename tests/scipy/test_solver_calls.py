"""SciPy's solvers are recorded with the functions that they call."""

import functools
import math
import warnings

import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.optimize import brentq

import letir as lt
from letir.testing import assert_close, check_grads
from tests.each_sample import in_one_test

TIMES = np.linspace(0.0, 1.0, 12)


def cube_root(a):
    return brentq(lambda t: t**3 - a, 0, 3)


def by_math(a):
    return brentq(lambda t: math.exp(t) - 2 * a, 0, 3)


def with_args(a):
    return optimize.brentq(lambda t, b, c: b * t**2 - c, 0, 3, args=(2.0, a))


def circle(a):
    def equations(z):
        x, y = z
        return [x**2 + y**2 - a, x - 2 * y]

    return optimize.fsolve(equations, [1.0, 1.0], xtol=1e-13)


def of_a_system(a):
    found = optimize.root(lambda z: np.array([z[0] ** 2 - a, z[1] * z[0] - 1]), [1.0, 1.0])
    return found.x if found.success else np.zeros(2)


def by_newton(a):
    return optimize.newton(lambda t: np.cos(t) - a * t, 0.5, fprime=lambda t: -np.sin(t) - a)


def nearest(a):
    def distance(w):
        return ((w - a) ** 2).sum() + w[0] ** 4

    found = optimize.minimize(distance, np.zeros(3))
    return found.x, found.fun


def with_gradient(a):
    def cost(w):
        return ((w - a) ** 2).sum(), 2 * (w - a)

    return optimize.minimize(cost, np.zeros(2), jac=True, method="CG").x


def valley(a):
    return optimize.minimize_scalar(lambda t: (t - a) ** 2 + t).x


def fitted(a):
    y = a * np.exp(-2.0 * TIMES)
    best, covariance = optimize.curve_fit(lambda t, b, c: b * np.exp(-c * t), TIMES, y)
    return best, np.sqrt(np.diag(covariance))[0] < 1


def residuals(a):
    found = optimize.least_squares(lambda p: p[0] * TIMES + p[1] - a * TIMES, [1.0, 0.5])
    return found.x


def area(a):
    bell = integrate.quad(lambda t: np.exp(-a * t * t), 0, np.inf)[0]
    return bell + integrate.quad(np.sin, 0, a)[0]


def steps(a):
    found = integrate.solve_ivp(lambda t, y: -a * y, (0, 1), [1.0])
    return found.y[0, -1], found.t[1:3]


def constrained(a):
    found = optimize.minimize(
        lambda x: ((x - a) ** 2).sum(),
        np.zeros(3),
        method="SLSQP",
        bounds=[(0, None)] * 3,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
    )
    return found.x, found.success


def by_root_scalar(a):
    found = optimize.root_scalar(lambda t: t**3 - a, bracket=[0, 3], method="brentq")
    return found.root, found.converged


CASES = [cube_root, by_math, with_args, circle, of_a_system, by_newton, nearest, with_gradient]
CASES += [by_root_scalar, constrained, valley, fitted, area, steps, residuals]


def same(expected, actual):
    """Check that nested results agree up to the tolerances of the solvers."""
    if isinstance(expected, tuple):
        for a, b in zip(expected, actual, strict=True):
            same(a, b)
    else:
        assert np.asarray(expected).dtype == np.asarray(actual).dtype
        np.testing.assert_allclose(expected, actual, rtol=1e-7, atol=1e-9)


@in_one_test
@pytest.mark.parametrize("f", CASES)
def test_solvers_replay_at_other_arguments(f):
    program = lt.trace(f, 1.5)

    assert "scipy_solve" in [bind.op.name for bind in program.binds]
    same(f(1.5), program(1.5))
    try:
        found = program(1.75)
    except lt.GuardError:  # the text with which it ends depends on the values
        assert f is residuals
    else:
        same(f(1.75), found)


@in_one_test
@pytest.mark.parametrize("f", CASES)
@pytest.mark.filterwarnings("error")
def test_jit_compiles_recorded_solvers(f):
    fast = lt.jit(f)

    for a in (1.5, 1.25, 1.75):
        same(f(a), fast(a))
    assert fast.counters["compiles"]


def scalar_root(a):
    return by_root_scalar(a)[0]


@pytest.mark.parametrize(
    "f", [cube_root, by_math, with_args, circle, of_a_system, by_newton, scalar_root]
)
def test_roots_have_the_derivative_of_the_implicit_function_theorem(f):
    def total(a):
        return np.sum(f(a) * np.arange(1.0, 1.0 + np.size(f(a))))

    expected = (total(1.5 + 1e-5) - total(1.5 - 1e-5)) / 2e-5

    np.testing.assert_allclose(expected, lt.grad(total)(1.5), rtol=1e-5)
    np.testing.assert_allclose(expected, lt.jvp(total, (1.5,), (1.0,))[1], rtol=1e-5)
    np.testing.assert_allclose(expected, lt.jit(lt.grad(total))(1.5), rtol=1e-5)


def test_functions_without_a_name_are_recorded():
    def area(a):
        return integrate.quad(functools.partial(np.multiply, a), 0.0, 2.0)[0]

    assert area(3.0) == pytest.approx(lt.trace(area, 3.0)(3.0))
    assert lt.grad(area)(3.0) == pytest.approx(2.0)


def test_the_second_derivative_of_a_root():
    np.testing.assert_allclose(-2 / 9 * 1.5 ** (-5 / 3), lt.grad(lt.grad(cube_root))(1.5))


def test_roots_for_captured_arrays():
    def ends(w):
        return optimize.fsolve(lambda z: z**3 + z - w, np.ones(3), xtol=1e-13).sum()

    w = np.array([1.0, 2.0, 0.5])
    z = optimize.fsolve(lambda z: z**3 + z - w, np.ones(3), xtol=1e-13)

    np.testing.assert_allclose(1 / (3 * z**2 + 1), lt.grad(ends)(w), rtol=1e-9)


def test_other_derivatives_are_errors_that_name_the_solver():
    with pytest.raises(lt.MissingRule, match=r"scipy\.\w+\.\w+ has no derivative"):
        lt.grad(valley)(1.5)


# ---- derivatives of integrals ----


def decayed(a, b):
    """An integral whose integrand and limits depend on arguments."""
    return integrate.quad(lambda t: np.exp(-a * t) * np.cos(b[0] * t) + b[1], 0.1, a)[0]


def test_derivatives_of_an_integral_by_parameters_and_limits_agree_with_differences():
    check_grads(decayed, (1.3, np.array([0.4, 2.0])), order=2, rtol=1e-5)
    check_grads(area, (1.5,), order=2, rtol=1e-5)


def test_derivatives_of_integrals_are_those_of_closed_forms():
    bell = lt.grad(lambda a: integrate.quad(lambda t: np.exp(-a * t * t), 0, np.inf)[0])
    power = lt.grad(lambda a: integrate.quad(lambda t, c: t**c, 0, 1, args=(a,))[0])
    corner = lt.grad(lambda a: integrate.quad(lambda t: abs(t - a), 0, 1, points=[0.3])[0])
    ends = lt.grad(lambda a, b: integrate.quad(np.sin, a, b)[0], (0, 1))
    same_end = lt.grad(lambda a: integrate.quad(lambda t: np.sin(a * t), a, a)[0])

    assert_close(-np.sqrt(np.pi) / 4 / 2.0**1.5, bell(2.0))
    assert_close(3 * np.sqrt(np.pi) / 8 / 2.0**2.5, lt.grad(bell)(2.0))
    assert_close(-1 / 2.5**2, power(1.5))
    assert_close(-1 / 2.5**2, lt.jit(power)(1.5))
    assert_close(2 * 0.3 - 1, corner(0.3))
    assert_close((-np.sin(0.3), np.sin(1.0)), ends(0.3, 1.0))
    assert_close(0.0, same_end(0.7))


def test_derivatives_of_integrals_that_are_not_known_are_refused():
    def weighted(a):
        return integrate.quad(lambda t: np.sin(a * t), 0, 1, weight="cos", wvar=3.0)[0]

    with pytest.raises(lt.MissingRule, match="write the weight into the function"):
        lt.grad(weighted)(1.0)
    with pytest.raises(lt.MissingRule, match="only roots and integrals have"):
        lt.grad(lambda a: integrate.quad(lambda t: np.sin(a * t), 0, 1)[1])(1.0)


def test_a_derivative_whose_integral_diverges_is_nan():
    with warnings.catch_warnings(action="ignore"):  # SciPy warns of it
        slope = lt.grad(lambda a: integrate.quad(lambda t: a / t, 0, 1)[0])(1.0)

    assert np.isnan(slope)


def test_the_second_derivative_of_a_root_with_further_results():
    root = lt.trace(lambda a: by_root_scalar(a)[0], 1.5)

    check_grads(root, (1.5,), order=2, rtol=1e-4)


def test_programs_are_written_and_read():
    for f in CASES:
        program = lt.trace(f, 1.5)
        again = lt.parse(lt.dumps(program))

        assert program == again
        same(f(1.5), again(1.5))


def counting(a):
    calls = [0]

    def f(t):
        calls[0] += 1
        return t**3 - a

    return brentq(f, 0, 3), calls[0]


def branching(a):
    return brentq(lambda t: t - a if t > 1 else -1.0, 0, 3)


def whole_numbers_first(a):
    return optimize.minimize_scalar(lambda t: (t - a) ** 2, bracket=(0, 1)).x


def with_an_event(a):
    def ground(t, y):
        return y[0]

    ground.terminal = True
    found = integrate.solve_ivp(lambda t, y: [y[1], -9.81], (0, 9), [a, 0.0], events=ground)
    return found.t[-1]


@pytest.mark.parametrize("f", [counting, branching, with_an_event])
def test_functions_that_are_no_bodies_run_as_python(f):
    fast = lt.jit(f)

    with pytest.warns(RuntimeWarning, match="as Python"):
        for a in (1.5, 1.25):
            assert f(a) == fast(a)
    with pytest.raises(lt.LetirError):
        lt.trace(f, 1.5)


def in_memory(a):
    return optimize.newton(lambda z: z**2 - a * (memoryview(z).nbytes // 16), np.array([a, 2 * a]))


def test_a_function_whose_recording_raises_runs_in_the_solver():
    fast = lt.jit(in_memory)

    with pytest.warns(RuntimeWarning, match="as Python"):
        assert in_memory(1.5).tolist() == fast(1.5).tolist()


def started_at_integers(a):
    ends = optimize.fsolve(lambda z: z**2 - a, [1, 2])
    best, _ = optimize.curve_fit(lambda t, b, c: b * t + c, TIMES, a * TIMES, p0=(1, 1))
    return ends, np.round(best, 6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("f", [whole_numbers_first, started_at_integers])
def test_solvers_that_start_at_integers(f):
    fast = lt.jit(f)

    for a in (1.5, 1.25):
        same(f(a), fast(a))


def root_or_nan(a):
    try:
        return brentq(lambda t: t**3 - a, 0, 3)
    except ValueError:
        return np.nan


def test_an_error_that_the_function_catches_takes_the_same_path():
    program, fast = lt.trace(root_or_nan, 1.5), lt.jit(root_or_nan)

    with pytest.raises(lt.GuardError):
        program(-1.0)
    assert np.isnan(lt.trace(root_or_nan, -1.0)(-2.0))
    for a in (1.5, -1.0, 1.25, -2.0):
        np.testing.assert_allclose(root_or_nan(a), fast(a))
    with pytest.raises(ValueError, match="different signs"):
        lt.trace(lambda a: brentq(lambda t: t**3 - a, 0, 3), -1.0)


def test_a_solver_without_traced_values_is_scipys():
    program = lt.trace(lambda x: x * brentq(lambda t: t - 1 if t > 0.5 else -1, 0, 3), 2.0)

    assert 3.0 == pytest.approx(program(3.0))


@pytest.mark.parametrize("name", ["optimize.show_options", "os.system"])
def test_a_file_cannot_name_another_function(name):
    text = lt.dumps(lt.trace(cube_root, 1.5))

    with pytest.raises(lt.LetirError, match="not among the functions of SciPy"):
        lt.parse(text.replace("optimize.brentq", name))(1.5)


def test_vmap_solves_for_each_example():
    program = lt.vmap(lt.trace(cube_root, 1.5))

    np.testing.assert_allclose(np.cbrt([1.0, 2.0]), program(np.array([1.0, 2.0])))

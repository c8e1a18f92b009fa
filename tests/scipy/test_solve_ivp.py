"""scipy.integrate.solve_ivp in recorded functions: SciPy's numbers, and derivatives."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import letir as lt
from letir.testing import assert_close

TIMES = np.linspace(0.0, 2.0, 5)
START = np.array([1.0, 0.5])
EXACT = {"rtol": 1e-9, "atol": 1e-9}


def oscillator(t, y, mu):
    return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]


@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"])
def test_each_method_gives_scipys_numbers(method):
    def states(y0, mu):
        found = solve_ivp(oscillator, (0, 2), y0, method, t_eval=TIMES, args=(mu,))
        assert found.success
        return found.y, found.t

    program, compiled = lt.trace(states, START, 0.5), lt.jit(states)
    source = lt.to_source(program)

    assert "solve_ivp" in source
    for start, mu in ((START, 0.5), (2 * START, 1.5)):
        expected = states(start, mu)
        assert_close(expected, program(start, mu), rtol=1e-12)
        assert_close(expected, compiled(start, mu), rtol=1e-12)


@pytest.mark.parametrize("times", [[0.5, 1.0], [0.0, 2.0], [1.5]])
def test_times_may_be_some_of_the_interval(times):
    def states(rate):
        return solve_ivp(lambda t, y: -rate * y, (0, 2), [1.0, 2.0], t_eval=times).y

    assert_close(states(1.5), lt.trace(states, 0.5)(1.5), rtol=1e-12)


def test_derivatives_agree_with_the_closed_form():
    def end(rate, start):
        found = solve_ivp(lambda t, y: -rate * y, (0, 1), [start], t_eval=[1.0], **EXACT)
        return found.y[0, -1]

    by_rate, by_start = lt.grad(end, argnums=(0, 1))(2.0, 3.0)

    assert by_rate == pytest.approx(-3 * np.exp(-2.0), rel=1e-6)
    assert by_start == pytest.approx(np.exp(-2.0), rel=1e-6)
    assert lt.jacfwd(end)(2.0, 3.0) == pytest.approx(-3 * np.exp(-2.0), rel=1e-6)


def test_a_solution_that_depends_on_no_argument_is_that_of_scipy():
    def scaled(x):
        found = solve_ivp(lambda t, y: -y, (0, 1), [1.0])
        return x * found.y[0, -1], found.nfev

    assert_close(scaled(START), lt.trace(scaled, START)(START))


@pytest.mark.parametrize(
    "options",
    [{}, {"t_eval": TIMES, "events": lambda t, y: y[0]}, {"t_eval": TIMES, "max_step": 0.1}],
)
def test_other_options_are_recorded_without_a_derivative(options):
    def solved(y0):
        return solve_ivp(lambda t, y: -y, (0, 2), y0, **options).y

    assert_close(solved(1.5 * START), lt.trace(solved, START)(1.5 * START))
    with pytest.raises(lt.MissingRule, match=r"scipy.integrate.solve_ivp has no derivative"):
        lt.grad(lambda y0: solved(y0).sum())(START)


def test_dense_output_is_refused():
    with pytest.raises(lt.MissingRule, match="no events"):
        lt.trace(
            lambda y0: solve_ivp(lambda t, y: -y, (0, 2), y0, dense_output=True).sol(1.0), START
        )


def test_a_solver_that_stops_is_an_error_of_the_replay():
    def end(rate):
        return solve_ivp(lambda t, y: rate * y**2, (0, 2), [1.0], t_eval=[2.0]).y

    program = lt.trace(end, -1.0)

    with np.errstate(all="ignore"), pytest.raises(lt.GuardError, match="stopped before"):
        program(5.0)

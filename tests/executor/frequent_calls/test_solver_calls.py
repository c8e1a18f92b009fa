"""Functions that call SciPy: its solvers, whose callbacks take less time as Python than as plans,
and functions that a plan would call as Python does.
"""

import numpy as np
import pytest
from scipy import integrate, linalg, optimize, signal, spatial

import letir as lt
from letir import jit
from letir.testing import assert_same

POINTS = np.random.default_rng(3).normal(size=(20_000, 2))


def area(a):
    return integrate.quad(lambda x: np.exp(-a * x * x), 0.0, 1.0)[0]


def root(a):
    return optimize.brentq(lambda x: x**3 - a, 0.0, 5.0)


def decay(y, k):
    return integrate.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), y).y[:, -1]


def oscillation(omega):
    return integrate.odeint(lambda y, t: [y[1], -omega * omega * y[0]], [1.0, 0.0], [0.0, 1.0])


def hull(points):
    found = spatial.ConvexHull(points)
    return found.volume, points[found.vertices]


def factors(a):
    lu = linalg.lu_factor(a)
    return linalg.lu_solve(lu, a[0]), linalg.qr(a)[1]


def gate(x):
    z = signal.stft(x, nperseg=8)[2]
    return signal.istft(np.where(np.abs(z) < np.median(np.abs(z)), 0, z), nperseg=8)[1]


def hull_of_many(points):
    return spatial.ConvexHull(np.exp(np.sin(points)) * np.cos(points)).volume


def slope(a):
    return lt.grad(root)(a)


def large(a):
    return optimize.brentq(lambda x: (x * a).sum() - 1.0, 0.0, 5.0)


def runs_python(fast):
    return [entry.runs_python for entry in fast.__letir_executor__.cache.entries.values()]


@pytest.mark.parametrize(
    ("f", "args"),
    [
        *((area, (0.7,)), (root, (2.0,)), (decay, (np.array([1.0, 2.0]), 0.5))),
        *((oscillation, (0.5,)), (hull, (POINTS[:9],)), (factors, (POINTS[:2],))),
        (gate, (POINTS[:32, 0],)),
    ],
)
def test_few_operations_beside_calls_of_scipy_run_as_python_after_the_first_call(f, args):
    fast = jit(f)

    fast(*args)  # letir's own odeint differs in its last digits
    for _ in range(19):
        assert_same(f(*args), fast(*args))

    assert runs_python(fast) == [True]
    assert fast.counters["compiles"] == 1
    assert fast.counters["misses"] == fast.counters["invocations"] == 20


def test_a_plan_computes_derivatives_of_roots_and_large_callbacks():
    derivative, inner, of_arrays = jit(lt.grad(root)), jit(slope), jit(large)

    for _ in range(3):
        assert np.allclose([derivative(2.0), inner(2.0)], 2.0 ** (-2 / 3) / 3, rtol=1e-9)
        of_arrays(np.ones(10_000))

    assert runs_python(derivative) == runs_python(inner) == runs_python(of_arrays) == [False]


def test_many_operations_beside_a_call_of_scipy_have_a_plan():
    fast = jit(hull_of_many)
    for _ in range(3):
        assert np.isclose(hull_of_many(POINTS), fast(POINTS))
    assert runs_python(fast) == [False]

"""Polynomials as users call them; result lengths that depend on zeros are guarded [B2]."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same, check_grads
from tests.each_sample import in_one_test

P, Q = np.array([0.5, -1.25, 2.0, 0.75]), np.array([1.5, 0.3])
X, Y = np.array([0.1, 0.45, 0.9, 1.6, 2.0]), np.array([0.3, -0.7, 1.1, 0.4, 0.2])

CALLS = {
    "polyval": lambda p, q: np.polyval(p, q) + np.polyval(Q, p[0]),
    "polyval of constants": lambda p, q: np.polyval(P, q),
    "polyadd": lambda p, q: np.polyadd(p, q) * np.polysub(q, p),
    "polyadd of a number": lambda p, q: np.polyadd(q[0], [1.0, 2.0]),
    "polymul": np.polymul,
    "polymul of zeros": lambda p, q: np.polymul([0.0, 0.0, 2.0], q),
    "polydiv": np.polydiv,
    "polydiv by more": lambda p, q: np.polydiv(q, p),
    "polyder": lambda p, q: np.polyder(p, 2),
    "polyint": lambda p, q: (np.polyint(p), np.polyint(p, 2, k=q), np.polyint(q, 3, 0.5)),
    "poly": lambda p, q: np.poly(p),
    "poly of a matrix": lambda p, q: np.poly(np.reshape(p, (2, 2))),
    "roots": lambda p, q: np.roots(p),
    "roots at zero": lambda p, q: np.roots(np.concatenate([p, np.zeros(2)])),
    "one root": lambda p, q: np.roots(q),
    "polyfit": lambda p, q: np.polyfit(X[:4], p, 2),
    "polyfit of all": lambda p, q: np.polyfit(X[:4] * q[0], p, 1, w=[1.0, 2.0, 1.0, 0.5]),
    "polyfit, full": lambda p, q: np.polyfit(X[:4], p, 1, full=True)[:2],
    "polyfit, cov": lambda p, q: np.polyfit(X[:4], p, 1, cov=True),
    "polyfit, unscaled": lambda p, q: np.polyfit(p, Y[:4], 1, cov="unscaled"),
}


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_recorded_and_replayed_bitwise(name):
    f = CALLS[name]
    p, q = P * 1.25, Q[::-1] * 1.1

    assert_same(f(p, q), lt.run_forward(lt.trace(f, P, Q), p, q))


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_a_call_agree_with_differences(name):
    order = 1 if "root" in name else 2
    check_grads(CALLS[name], (P, Q), order=order)


def test_leading_zeros_are_guarded():
    program = lt.trace(np.polymul, P, Q)

    with pytest.raises(lt.GuardError):
        lt.run_forward(program, np.array([0.0, 1.0, 2.0, 3.0]), Q)
    with pytest.raises(lt.TraceError, match="trace with concrete arguments"):
        lt.trace(np.polymul, P, Q, abstract=True)


def test_conjugate_roots_give_a_real_polynomial_under_a_guard():
    pair = np.array([1 + 2j, 1 - 2j])
    program = lt.trace(np.poly, pair)

    assert_same(np.poly(pair * 2), lt.run_forward(program, pair * 2))
    with pytest.raises(lt.GuardError):
        lt.run_forward(program, np.array([1 + 2j, 3 - 2j]))


def test_an_underdetermined_fit_warns_as_in_numpy():
    def f(y):
        return np.polyfit(np.ones(3), y, 2)

    with warnings.catch_warnings(action="ignore"):
        program = lt.trace(f, Y[:3])

    with pytest.warns(np.exceptions.RankWarning):
        lt.run_forward(program, Y[:3])


def test_calls_that_numpy_refuses_are_refused():
    with pytest.raises(lt.DTypeError, match=r"polyfit: x of shape .* do not fit"):
        lt.trace(lambda x: np.polyfit(x, Y[:2], 1), X)
    with pytest.raises(lt.ShapeError, match="degree must be at least 0"):
        lt.trace(lambda x: np.polyfit(x, Y, -1), X)
    with pytest.raises(lt.ShapeError, match="cov='unscaled'"):
        lt.trace(lambda x: np.polyfit(x, Y[:2], 1, cov=True), X[:2])
    with pytest.raises(lt.ShapeError, match="coefficients of a polynomial must have one axis"):
        lt.trace(lambda x: np.polymul(x, P), X[None])
    with pytest.raises(lt.ShapeError, match="k must be"):
        lt.trace(lambda p: np.polyint(p, 3, k=[1.0, 2.0]), X)


def test_polynomials_of_special_numbers_are_those_of_numpy():
    """NumPy begins with 0 * x, which is nan for infinite x."""
    x = np.array([0.0, -2.0, np.inf, -np.inf, np.nan, 1e200])
    with np.errstate(all="ignore"):
        for p in ([1.0, 2, 3], [1, 2], [2.5], []):
            for operand in (x, x.astype("f4"), np.arange(4), 3, 2.5, x + 1j):
                expected = np.polyval(p, operand)
                assert_same(expected, lt.trace(lambda x, p=p: np.polyval(p, x), operand)(operand))
                assert_same(expected, lt.jit(np.polyval)(np.asarray(p), operand))


def test_values_have_the_memory_order_of_the_points():
    x = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    for f in (lt.trace(lambda x: np.polyval([1.0, 2.0], x), x), lt.jit(lambda x: np.polyval(P, x))):
        assert x.strides == f(x).strides

"""numpy.polynomial.Polynomial with traced coefficients, and functions that are refused by name."""

import math

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import letir as lt
from letir.testing import assert_close, assert_same, check_grads

C = np.array([0.5, -1.0, 2.0])


def values(c):
    q = Polynomial(c)
    combined = (q * q + q - Polynomial([1.0, 2.0]) * 3 - 1) * 2.0
    return combined(0.5), combined.coef, q.deriv(2)(1.0), (-q).coef, q(np.arange(3.0)), q(c[0])


def test_values_sums_products_and_derivatives_are_recorded():
    program, compiled = lt.trace(values, C), lt.jit(values)

    for c in (C, C[::-1] + 1):
        assert_close(values(c), program(c))
        assert_close(values(c), compiled(c))


@pytest.mark.parametrize("kind", [np.polynomial.Polynomial, np.polynomial.Chebyshev])
def test_the_coefficients_of_a_series_are_a_copy_of_floats(kind):
    def changed(c):
        series = kind(c)
        series.coef[0] = 9.0
        return series.coef, c

    for c in (np.array([1.0, 2.0, 0.0]), np.array([1, 2, 3]), np.ones(2, "float32")):
        expected = changed(c.copy())
        for f in (lt.trace(changed, c.copy()), lt.jit(changed)):
            argument = c.copy()
            assert_same(expected, f(argument))
            assert_same(c, argument)
    assert_same(kind(3.0).coef, lt.trace(lambda s: kind(s).coef, 3.0)(3.0))
    with pytest.raises(ValueError, match="common type"):
        lt.jit(lambda c: kind(c).coef)(np.array([True, False]))


def test_the_value_of_a_product_of_polynomials_has_a_derivative():
    slope = lt.grad(lambda c: (Polynomial(c) * Polynomial([0.0, 1.0]))(2.0))(C)

    np.testing.assert_allclose(slope, [2.0, 4.0, 8.0])


@pytest.mark.parametrize("kind", ["Chebyshev", "HermiteE", "Laguerre", "Legendre", "Polynomial"])
def test_other_series_are_recorded_with_their_integrals_and_fits(kind):
    series = getattr(np.polynomial, kind)

    def f(c):
        found = series(c)
        fitted = series.fit(np.arange(3.0), c, 1)
        values = found(0.5), found.integ()(c[0]), (found * found).deriv()(0.3), fitted(1.0)
        return sum(values), (found**2).coef

    program = lt.trace(f, C)

    for c in (C, 2 * C + 0.1):
        assert_close(f(c), program(c))
    check_grads(lambda c: f(c)[0], (C,), order=1)


def test_functions_of_series_take_traced_coefficients_and_arguments():
    from numpy.polynomial import chebyshev, legendre

    def f(c):
        values = chebyshev.chebval(c, [1.0, c[1]]) + legendre.legval(0.5, c)
        return values, chebyshev.chebder(c), legendre.legvander(c, 2), chebyshev.chebmul(c, c)

    program = lt.trace(f, C)

    for c in (C, 2 * C + 0.1):
        assert_close(f(c), program(c))


def test_a_leading_coefficient_that_vanishes_is_guarded():
    program = lt.trace(lambda c: (Polynomial(c) - Polynomial([0.0, 0.0, 2.0])).coef, C)

    assert program(C).shape == (2,)
    with pytest.raises(lt.GuardError):
        program(2 * C)


def test_polynomials_of_numbers_are_numpys_after_a_recording():
    plain = dict(vars(Polynomial))
    lt.trace(values, C)

    assert plain == dict(vars(Polynomial))
    assert Polynomial([1.0, 2.0]) * 2 == Polynomial([2.0, 4.0])


class Vector(np.ndarray):
    pass


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(
    ("f", "told"),
    [
        (lambda c: np.ndarray.tolist(c[1:]), r"ndarray\.tolist of a traced value is not recorded"),
        (np.matrix, "numpy.matrix of a traced value"),
        (lambda c: c.view(Vector), "the class Vector of a traced value .* its methods"),
        (lambda c: np.array([c[0], 1.0]).view(type=Vector), "the class Vector of a traced"),
        (lambda c: np.timedelta64(c[0].item(), "D"), "NumPy timedelta, a date or a time"),
    ],
)
def test_methods_of_polynomials_that_are_not_recorded_raise_errors_that_say_so(f, told):
    with pytest.raises(lt.LetirError, match=told):
        lt.trace(f, C)
    with pytest.raises(lt.LetirError, match=told):
        lt.grad(f)(C)


def test_the_refusal_is_the_error_where_a_library_raises_another():
    def integral(k):
        integrate = pytest.importorskip("scipy.integrate")
        return integrate.tplquad(lambda x, y, z: np.exp(-k * x), 0, 1, 0, 1, 0, 1)[0]

    with pytest.raises(lt.TraceError, match=r"scipy\.integrate.*quad: docs/scipy\.md"):
        lt.trace(integral, 1.5)


def test_parts_of_python_floats_are_recorded():
    def parts(x):
        mantissa, exponent = math.frexp(x)
        return mantissa, exponent, math.ulp(x)

    for x in (3.0, 0.3, -5e20):
        found = lt.trace(parts, 1.0)(x)
        assert parts(x) == found
        assert [type(n) for n in parts(x)] == [type(n) for n in found]

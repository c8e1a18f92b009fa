"""Cube roots and lengths."""

import numpy as np

from letir.kernels.elementary.coefficients import CBRT
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import (
    nearest_integer,
    polynomial,
    power_of_two,
    two_product,
)
from letir.kernels.elementary.logarithms import (
    exponent_and_mantissa,
    exponent_as_float,
    normalize_subnormal,
)

_DOUBLE = np.dtype("f8")


def cbrt(x: Expression) -> Expression:
    """The cube root: a polynomial for the mantissa, then one step of Householder's method."""
    size = abs(x)
    is_ordinary = size.is_positive_finite()
    scaled, shift = normalize_subnormal(select(is_ordinary, size, 1.0))
    k, m = exponent_and_mantissa(scaled)
    # 2**k m = 8**q (2**rest m) with rest 0, 1 or 2
    exponent = exponent_as_float(k - shift, x)
    q, integer = nearest_integer(exponent - 1.0, 1.0 / 3.0)
    rest = (-3.0 * q) + exponent
    factor = select(rest == 0.0, 1.0, select(rest == 1.0, x.number(2.0 ** (1 / 3)), 4.0 ** (1 / 3)))
    a = m * select(rest == 0.0, 1.0, select(rest == 1.0, x.number(2.0), 4.0))
    t = polynomial(m, CBRT) * factor
    square, lost = two_product(t, t)
    cube, error = two_product(square, t)
    # e is the relative error: a = t**3 / (1 - e), so that the root is t (1 - e)**(-1/3)
    e = ((a - cube) - lost.times_plus(t, error)) / a
    series = e.times_plus(14 / 81, 2 / 9).times_plus(e, 1 / 3) * e
    result = series.times_plus(t, t) * power_of_two(integer)
    return select(is_ordinary, result.with_sign_of(x), x)


def hypot(x: Expression, y: Expression) -> Expression:
    """sqrt(x**2 + y**2), inf where an operand is infinite, without overflow in between."""
    if x.dtype != _DOUBLE:
        x_, y_ = x.cast(_DOUBLE), y.cast(_DOUBLE)
        return _unless_infinite(x, y, x_.times_plus(x_, y_ * y_).sqrt().cast(x.dtype))
    x, y = abs(x), abs(y)
    is_first = x.bits() > y.bits()
    a, b = select(is_first, x, y), select(is_first, y, x)
    is_ordinary = a.is_positive_finite()
    special, a, b = a, select(is_ordinary, a, 1.0), select(is_ordinary, b, 1.0)
    is_big, is_small = a.bits() >= x.format.bits_of(2.0**500), a.is_below(2.0**-450)
    scale = select(is_big, x.number(2.0**-600), select(is_small, x.number(2.0**600), 1.0))
    back = select(is_big, x.number(2.0**600), select(is_small, x.number(2.0**-600), 1.0))
    first, second = a * scale, b * scale
    result = first.times_plus(first, second * second).sqrt() * back  # within 1 ulp
    return _unless_infinite(x, y, select(is_ordinary, result, special))


def _unless_infinite(x: Expression, y: Expression, result: Expression) -> Expression:
    """inf where an operand is infinite, even if the other is nan, else the result."""
    infinity = x.format.infinity
    either = (x.magnitude_bits() == infinity) | (y.magnitude_bits() == infinity)
    return select(either, float("inf"), result)

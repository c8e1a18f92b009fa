"""The error function, its complement and the normal distribution.

erf(x) is a polynomial for |x| < 1/2. Beyond, erfc(x) = exp(-x**2) G(x) / (1 + 2 x), where G is a
polynomial of (x - 3.5) / (x + 3.5) (Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x)
exp(x**2) erfc x", Mathematics of computation, 1981).
"""

import math
from fractions import Fraction

from letir.kernels.elementary.coefficients import ERF, ERFC
from letir.kernels.elementary.exponentials import exponential_pair
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import (
    Pair,
    fast_two_sum,
    polynomial,
    split_constant,
    times_power_of_two,
    two_product,
)

_BOUNDS = {"d": 27.5, "f": 10.3}  # erfc is 0 from here on
_ROOT_HALF = Fraction("0.7071067811865475244008443621048490392848359376884740365883398689953662392")


def erf(x: Expression) -> Expression:
    """The error function."""
    size = _clamp_to_bound(abs(x))
    inner = size.times_plus(polynomial(size * size, ERF), size)
    outer = 1.0 - _upper_tail(size, x.number(0.0), *two_product(size, size))
    return select(x.is_below(0.5), inner, outer).with_sign_of(x)


def erfc(x: Expression) -> Expression:
    """1 - erf(x), also precise for large x."""
    size = _clamp_to_bound(abs(x))
    return _complement(x, size, x.number(0.0), two_product(size, size), 1.0)


def ndtr(x: Expression) -> Expression:
    """The distribution function of the normal distribution, erfc(-x / sqrt(2)) / 2."""
    high, low = split_constant(_ROOT_HALF, x.dtype)
    bound = _BOUNDS[x.dtype.char] * math.sqrt(2)
    size = select(x.is_below(bound), abs(x), select(x.is_nan(), x, bound))
    scaled, error = two_product(size, x.number(high))
    half, lost = two_product(size, 0.5 * size)
    return _complement(-x, scaled, size.times_plus(low, error), (half, lost), 0.5)


def _clamp_to_bound(size: Expression) -> Expression:
    bound = _BOUNDS[size.dtype.char]
    return select(size.is_below(bound), size, select(size.is_nan(), size, bound))


def _complement(x, size: Expression, low: Expression, square: Pair, scale: float) -> Expression:
    """``scale * erfc``, of ``size + low`` with the sign of ``x``, whose square is known."""
    factor = size.times_plus(polynomial(size * size, ERF), low)
    is_negative = x.is_negative()
    one = x.number(1.0)
    # 1 - erf(x) for small x
    signed, rest = (e * one.with_sign_of(x) for e in (size, factor))
    total, error = fast_two_sum(one, -signed)
    inner = total + (error - rest)
    tail = _upper_tail(size, low, *square, scale)
    outer = select(is_negative, 2.0 * scale - tail, tail)
    return select(size.is_below(0.5), scale * inner, outer)


def _upper_tail(x, x_low: Expression, square, low: Expression, scale: float = 1.0) -> Expression:
    """``scale * erfc(x + x_low)`` for x from 1/2 to the bound; ``square + low`` is the square."""
    below, lost = fast_two_sum(x + x, x.number(1.0))
    other = x + 3.5
    inverse = 1.0 / (below * other)  # one division for two quotients
    t = (x - 3.5) * (inverse * below)
    g, g_low = fast_two_sum(x.number(1.125), polynomial(t, ERFC))
    e, e_low, k = exponential_pair(-square, -low)
    product, error = two_product(e, g)
    error = error + e.times_plus(g_low, e_low * g)
    quotient = product * (inverse * other)
    rest = (-quotient).times_plus(below, product) + (error - quotient * (lost + 2.0 * x_low))
    return times_power_of_two(scale * rest.times_plus(inverse * other, quotient), k)

"""The logarithm of the gamma function.

From 8 on by Stirling's formula; from 1 to 2 by a polynomial times (x - 1) (x - 2), whose zeros are
exact; in between by gamma(x) = (x - 1) gamma(x - 1), from 0 to 1 by gamma(x) = gamma(x + 1) / x;
for negative x by gamma(x) gamma(-x) = -pi / (x sin(pi x)). float32 is computed in float64.
"""

import math
from fractions import Fraction

import numpy as np

from letir.kernels.elementary.coefficients import COS, LOG_GAMMA, SIN, STIRLING
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import (
    Pair,
    fast_two_sum,
    polynomial,
    split_constant,
    two_product,
)
from letir.kernels.elementary.logarithms import log_pair

_DOUBLE = np.dtype("f8")
_OVERFLOW_BOUND = 2.5563481638716906e305  # the results are infinite from here on
_HALF_LOG_TWO_PI = Fraction(
    "0.918938533204672741780329736405617639861397473637783412817151540482765"
)


def gammaln(x: Expression) -> Expression:
    """log(abs(gamma(x))), inf at the integers up to 0 and at inf, -inf at -inf as in SciPy."""
    operand, x = x, x.cast(_DOUBLE)
    size = abs(x)
    is_ordinary = x.is_below(_OVERFLOW_BOUND) & (size != 0.0)
    y = select(is_ordinary, size, 1.0)
    is_reflected = x.is_negative() & is_ordinary
    positive = _log_gamma_of_positive(y, is_reflected)
    distance = y - y.let("rint", y)
    is_pole = is_reflected & (distance == 0.0)
    sine = _sine_over_pi(select(is_pole, 0.5, abs(distance)))
    # the factor y is left out below 1, here and in the other logarithm: its square underflows
    high, low = log_pair(sine * select(y.is_below(1.0), 1.0, y))
    total, error = fast_two_sum(*_sort_by_size(-high, -positive[0]))
    reflected = total + (error - (low + positive[1]))
    result = select(is_reflected, reflected, positive[0] + positive[1])
    special = select(x.is_finite(), math.inf, x)
    return select(is_ordinary & ~is_pole, result, special).cast(operand.dtype)


def _sort_by_size(x: Expression, y: Expression) -> Pair:
    """The operand of larger size, then the other."""
    is_first = x.magnitude_bits() > y.magnitude_bits()
    return select(is_first, x, y), select(is_first, y, x)


def _sine_over_pi(t: Expression) -> Expression:
    """sin(pi t) / pi for t from 0 to 1/2."""
    is_low = t.is_below(0.25)
    angle = math.pi * select(is_low, t, 0.5 - t)
    z = angle * angle
    sine = t.times_plus(z * polynomial(z, SIN), t)
    cosine = (z * z).times_plus(polynomial(z, COS), (-0.5 * z) + 1.0)
    return select(is_low, sine, cosine * (1 / math.pi))


def _log_gamma_of_positive(y: Expression, is_reflected: Expression) -> Pair:
    """log(gamma(y)) for y > 0 as a pair; ``is_reflected`` omits the term log(y) below 1."""
    is_large, is_low = ~y.is_below(8.0), y.is_below(1.0)
    small = select(is_large, 1.0, y)
    product, error, r = _product_down(small)
    r = select(is_low, y + 1.0, r)
    # y + 1 is rounded: the polynomial gets the factor y itself
    first = select(is_low, small, r - 1.0)
    factor = (first - 1.0) * first
    near = factor * polynomial(first - 0.5, LOG_GAMMA)
    argument = select(is_large, y, select(is_low, select(is_reflected, 1.0, small), product))
    high, low = log_pair(argument, select(is_large | is_low, 0.0, error))
    stirling = _stirling_formula(select(is_large, y, 8.0), high, low)
    high, low = select(is_low, -high, high), select(is_low, -low, low)
    total, lost = fast_two_sum(*_sort_by_size(high, near))
    high = select(is_large, stirling[0], total)
    return high, select(is_large, stirling[1], lost + low)


def _product_down(y: Expression) -> tuple[Expression, Expression, Expression]:
    """The pair of (y - 1) (y - 2) ... r for y below 8, with r from 1 to 2, and r."""
    product, error, r = y.number(1.0), y.number(0.0), y
    for n in range(1, 7):
        counts = ~y.is_below(n + 1.0)
        next_, lost = two_product(product, y - float(n))
        error = select(counts, error.times_plus(y - float(n), lost), error)
        product, r = select(counts, next_, product), select(counts, y - float(n), r)
    return product, error, r


def _stirling_formula(y: Expression, high: Expression, low: Expression) -> Pair:
    """(y - 1/2) (log(y) - 1) + log(2 pi) / 2 - 1/2 + s(1 / y**2) / y, from the pair of log(y)."""
    inverse = 1.0 / y
    rest = inverse * polynomial(inverse * inverse, STIRLING)
    constant, constant_low = split_constant(_HALF_LOG_TWO_PI - Fraction(1, 2), y.dtype)
    factor, lost = fast_two_sum(high, y.number(-1.0))
    product, error = two_product(y - 0.5, factor)
    error = (y - 0.5).times_plus(lost + low, error)
    total, more = fast_two_sum(product, y.number(constant))
    return total, more + (error + (rest + constant_low))

"""Exponential functions.

exp(x) = 2**k exp(r) with r = x - k log(2) and k an integer, so that r is at most log(2) / 2; exp(r)
is a polynomial.
"""

import math

from letir.kernels.elementary.coefficients import EXP, EXP2
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import (
    LN2,
    fast_two_sum,
    nearest_integer,
    polynomial,
    power_of_two,
    split_constant,
    times_power_of_two,
)

# results are 0 or infinite beyond; the scaling by powers of two is correct up to here
_BOUNDS = {"d": 746.0, "f": 104.0}


def clamp(x: Expression, bound: float) -> Expression:
    """``x`` within plus or minus ``bound``, or nan; 0 for inf, so that it raises no overflow."""
    inside = select(x.is_positive_special(), 0.0, x.number(bound).with_sign_of(x))
    return select(x.is_below(bound), x, select(x.is_nan(), x, inside))


def unless_infinite(x: Expression, result: Expression) -> Expression:
    """``x`` if it is inf, else ``result``, which must be right for -inf and nan."""
    return select(x.is_positive_special(), x, result)


def reduce_exponent(x: Expression) -> tuple[Expression, Expression, Expression, Expression]:
    """The reduction x = k log(2) + r: k as a float, k as an integer, and r as a pair."""
    high, low = split_constant(LN2, x.dtype)
    k, integer = nearest_integer(x, 1 / math.log(2))
    first = k.times_plus(-high, x)  # exact
    r = k.times_plus(-low, first)
    return k, integer, r, k.times_plus(-low, first - r)


def exp(x: Expression) -> Expression:
    """e to the power of x."""
    _, k, r, _ = reduce_exponent(clamp(x, _BOUNDS[x.dtype.char]))
    p = (r * r).times_plus(polynomial(r, EXP), r) + 1.0
    return unless_infinite(x, times_power_of_two(p, k))


def exp2(x: Expression) -> Expression:
    """2 to the power of x."""
    inside = clamp(x, {"d": 1076.0, "f": 151.0}[x.dtype.char])
    k, integer = nearest_integer(inside)
    r = inside - k
    p = r.times_plus(polynomial(r, EXP2), 1.0)
    return unless_infinite(x, times_power_of_two(p, integer))


def expm1(x: Expression) -> Expression:
    """e to the power of x, minus 1, also precise near 0."""
    inside = clamp(x, {"d": 710.0, "f": 89.0}[x.dtype.char])
    _, k, r, low = reduce_exponent(inside)
    # half of the result, which does not overflow: scale exp(r) - 1 + (scale - 1/2)
    least = -2 * x.format.mantissa  # below, the result is -1
    scale = power_of_two(select(k < least, k.number(least), k - 1))
    high, error = fast_two_sum(scale - 0.5, scale * r)
    rest = (r * r).times_plus(polynomial(r, EXP), low)
    result = 2.0 * (high + scale.times_plus(rest, error))
    # tiny numbers lose bits when they are halved
    result = select(x.is_below(2.0 ** -(x.format.mantissa + 3)), x, result)
    return unless_infinite(x, result)


def exponential_pair(
    x: Expression, low: Expression | None = None
) -> tuple[Expression, Expression, Expression]:
    """(p, e, k) with ``exp(x + low) = 2**k (p + e)``, p from 1/2 to 2 and e a rounding error."""
    _, k, r, rest = reduce_exponent(x)
    if low is not None:  # which is larger than the rounding error of r
        r, rest = fast_two_sum(r, rest + low)
    growth = (r * r).times_plus(polynomial(r, EXP), rest)
    first, error = fast_two_sum(x.number(1.0), r)
    high, lost = fast_two_sum(first, growth)
    return high, lost + error, k


def exponential_of_negative(x: Expression) -> tuple[Expression, Expression]:
    """exp(x) as a pair, for x <= 0 or nan."""
    high, rest, k = exponential_pair(clamp(x, _BOUNDS[x.dtype.char]))
    # the rest is lost for subnormal results: its scale is 0 there
    bias = x.format.bias
    is_small = k < x.format.mantissa - bias
    return times_power_of_two(high, k), rest * power_of_two(select(is_small, k.number(-bias), k))


def expit(x: Expression) -> Expression:
    """The logistic function, 1 / (1 + exp(-x)), as exp(x) / (1 + exp(x)) for negative x."""
    high, low = exponential_of_negative(-abs(x))
    below, error = fast_two_sum(x.number(1.0), high)
    is_negative = x.is_negative()
    above, rest = select(is_negative, high, 1.0), select(is_negative, low, 0.0)
    inverse = 1.0 / below
    quotient = above * inverse
    lost = (-quotient).times_plus(below, above) + (rest - quotient * (error + low))
    return lost.times_plus(inverse, quotient)

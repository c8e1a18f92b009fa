"""Exponential functions.

exp(x) = 2**k exp(r) with r = x - k log(2) and k an integer, so that r is at most log(2) / 2; exp(r)
is a polynomial.
"""

import math

from letir.kernels.elementary.expression import Expression, elementary, select
from letir.kernels.elementary.formulas import (
    LN2,
    fast_two_sum,
    nearest_integer,
    polynomial,
    power_of_two,
    split,
    times_power_of_two,
)
from letir.kernels.elementary.polynomials import EXP, EXP2

# results are 0 or infinite beyond; the scaling by powers of two is correct up to here
_BOUNDS = {"d": 746.0, "f": 104.0}


def clamped(x: Expression, bound: float) -> Expression:
    """``x`` within plus or minus ``bound``, or nan; 0 for inf, so that it raises no overflow."""
    inside = select(x.is_positive_special(), 0.0, x.number(bound).with_sign_of(x))
    return select(x.is_below(bound), x, select(x.is_nan(), x, inside))


def unless_infinite(x: Expression, result: Expression) -> Expression:
    """``x`` where it is inf, else the result, which is right for -inf and nan."""
    return select(x.is_positive_special(), x, result)


def reduced(x: Expression) -> tuple[Expression, Expression, Expression, Expression]:
    """k as a float and as an integer, and the pair r with x = k log(2) + r."""
    high, low = split(LN2, x.dtype)
    k, integer = nearest_integer(x, 1 / math.log(2))
    first = k.times_plus(-high, x)  # exact
    r = k.times_plus(-low, first)
    return k, integer, r, k.times_plus(-low, first - r)


@elementary
def exp(x: Expression) -> Expression:
    """e to the power of x."""
    _, k, r, _ = reduced(clamped(x, _BOUNDS[x.dtype.char]))
    p = (r * r).times_plus(polynomial(r, EXP), r) + 1.0
    return unless_infinite(x, times_power_of_two(p, k))


@elementary
def exp2(x: Expression) -> Expression:
    """2 to the power of x."""
    inside = clamped(x, {"d": 1076.0, "f": 151.0}[x.dtype.char])
    k, integer = nearest_integer(inside)
    r = inside - k
    p = r.times_plus(polynomial(r, EXP2), 1.0)
    return unless_infinite(x, times_power_of_two(p, integer))


@elementary
def expm1(x: Expression) -> Expression:
    """e to the power of x, minus 1, also precise near 0."""
    inside = clamped(x, {"d": 710.0, "f": 89.0}[x.dtype.char])
    _, k, r, low = reduced(inside)
    # half of the result, which does not overflow: scale exp(r) - 1 + (scale - 1/2)
    least = -2 * x.format.mantissa  # below, the result is -1
    scale = power_of_two(select(k < least, k.number(least), k - 1))
    high, error = fast_two_sum(scale - 0.5, scale * r)
    rest = (r * r).times_plus(polynomial(r, EXP), low)
    result = 2.0 * (high + scale.times_plus(rest, error))
    # tiny numbers lose bits when they are halved
    result = select(x.is_below(2.0 ** -(x.format.mantissa + 3)), x, result)
    return unless_infinite(x, result)

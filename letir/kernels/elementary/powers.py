"""Powers with floating-point exponents.

x**y = 2**(y log2(x)), where log2(x) is computed to 13 bits more than the result has, because an
exponent of up to 1024 magnifies its error. float32 is computed in float64.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from letir.kernels.elementary.coefficients import EXP2, LOG2_TAIL
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import (
    LN2,
    Pair,
    fast_two_sum,
    nearest_integer,
    polynomial,
    split_constant,
    times_power_of_two,
    two_product,
)
from letir.kernels.elementary.logarithms import (
    exponent_and_mantissa,
    exponent_as_float,
    normalize_subnormal,
)
from letir.kernels.loop_language import Number

_DOUBLE = np.dtype("f8")


def _half_power(x: Expression) -> Expression:
    """The power 1/2: unlike the square root, 0 for -0 and inf for -inf."""
    return select(x.is_finite(), x, abs(x)).sqrt() + 0.0


def _inverse_square(x: Expression) -> Expression:
    inverse = 1.0 / x
    return inverse * inverse


# constant exponents for which a few multiplications are as precise
_SHORT: dict[float, Callable] = {
    -2.0: _inverse_square,
    -1.0: lambda x: 1.0 / x,
    -0.5: lambda x: 1.0 / _half_power(x),
    0.5: lambda x: x.sqrt(),  # as NumPy, which differs from pow at -0 and -inf
    1.0: lambda x: x,
    1.5: lambda x: abs(x) * _half_power(x),
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
}


def power(x: Expression, y: Expression) -> Expression:
    """``x**y`` as in C: 1 for y = 0 and for x = 1, nan for negative x unless y is an integer."""
    if isinstance(y.operand, Number) and float(y.operand.value) in _SHORT:
        return _SHORT[float(y.operand.value)](x)
    size, is_finite = abs(x), y.is_finite()
    is_ordinary = size.is_positive_finite()
    base = select(is_ordinary, size, 1.0)
    # greater exponents give 0, 1 or inf as this one does
    limit = 2.0 ** (x.format.mantissa + 14)
    exponent = select(y.is_below(limit), y, y.number(limit).with_sign_of(y))
    exponent = select(y.is_nan(), 1.0, exponent)
    result = _positive_power(base, exponent, is_finite)
    whole = exponent.let("rint", exponent) == exponent
    half = 0.5 * exponent
    is_odd = whole & (half.let("rint", half) != half)
    is_wrong = is_ordinary & x.is_negative() & ~whole
    inverted = ~is_ordinary & exponent.is_negative() & (exponent != 0.0)
    # 0 / 0 for negative x with exponents that are not integers, 1 / x for 0 and inf, and 1 = base /
    # base elsewhere. LLVM would compute the quotient of a selection for all x, with an error
    above = select(is_wrong, x.number(0.0), select(inverted, 1.0, base))
    quotient = above / select(is_wrong, base - size, select(inverted, size, base))
    # the choice of the factor 1 is not the last one: with AVX-512, LLVM would choose between the
    # quotient and the product, which is computed for all x, with an error for inf * 0
    result = select(is_ordinary, result, select(inverted, 1.0, size)) * quotient
    result = select(is_odd & x.is_negative(), -result, result)
    result = select(x.is_nan(), x, select(y.is_nan(), y, result))
    return select((y == 0.0) | (x == 1.0), 1.0, result)


def _positive_power(x: Expression, y: Expression, is_finite: Expression) -> Expression:
    """``x**y`` for positive x: without overflow where y is not finite."""
    dtype = x.dtype
    x, y = x.cast(_DOUBLE), y.cast(_DOUBLE)
    high, low = _binary_logarithm(x, is_short=dtype != _DOUBLE)
    high, error = two_product(y, high)
    low = y.times_plus(low, error)
    bound = 1100.0 if dtype == _DOUBLE else 200.0
    is_inside = high.is_below(bound)
    limits = high.number(bound).with_sign_of(high)
    safe = select(is_finite, limits, 0.0)
    k, integer = nearest_integer(select(is_inside, high, safe))
    r = select(is_inside, (high - k) + low, 0.0)
    p = r.times_plus(polynomial(r, EXP2, dtype.char), 1.0)
    result = times_power_of_two(p, integer).cast(dtype)
    extreme = select(high.is_negative(), x.number(0.0), math.inf).cast(dtype)
    return select(is_finite | is_inside, result, extreme)


def _binary_logarithm(x: Expression, is_short: bool) -> Pair:
    """The pair of log2(x), to 66 bits or, for float32 numbers, about 50."""
    scaled, shift = (x, 0) if is_short else normalize_subnormal(x)
    k, m = exponent_and_mantissa(scaled)
    k = exponent_as_float(k - shift, x)
    f = m - 1.0
    constants = [split_constant(Fraction(2, n) / LN2, _DOUBLE) for n in (1, 3, 5)]
    if is_short:
        s = f / (2.0 + f)
        z = s * s
        tail = polynomial(z, LOG2_TAIL, "f")
        for constant, _ in reversed(constants):
            tail = tail.times_plus(z, constant)
        return s.times_plus(tail, k), k.number(0.0)
    (s, s_low), z, z_low = _quotient_and_square(f)
    total = fast_two_sum(z.number(constants[2][0]), z * polynomial(z, LOG2_TAIL))
    for n in (1, 0):
        total = total[0], total[1] + constants[n + 1][1]
        product, error = two_product(total[0], z)
        error = total[0].times_plus(z_low, total[1].times_plus(z, error))
        total = fast_two_sum(z.number(constants[n][0]), product)
        total = total[0], total[1] + error
    total = total[0], total[1] + constants[0][1]
    product, error = two_product(total[0], s)
    error = total[0].times_plus(s_low, total[1].times_plus(s, error))
    high, rest = fast_two_sum(k, product)
    return fast_two_sum(high, rest + error)


def _quotient_and_square(f: Expression) -> tuple[Pair, Expression, Expression]:
    """The pair of s = f / (2 + f), and s**2 with its rounding error."""
    divisor, lost = fast_two_sum(f.number(2.0), f)
    inverse = 1.0 / divisor
    s = f * inverse
    low = inverse * ((-s).times_plus(divisor, f) - s * lost)
    z, error = two_product(s, s)
    return (s, low), z, (2.0 * s).times_plus(low, error)

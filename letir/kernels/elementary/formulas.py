"""Formulas that several elementary functions use: polynomials, exact sums, powers of two.

A *pair* is the unevaluated sum of a number and its rounding error, which is at most half a unit in
the last place of the number (Dekker, "A floating-point technique for extending the available
precision", 1971).
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

import numpy as np

from letir.kernels.elementary.expression import Expression, format_of

Pair = tuple[Expression, Expression]

LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493393621969695")
LOG2_E = Fraction("1.442695040888963407359924681001892137426645954152985934135449406931109219")
LOG10_E = Fraction("0.434294481903251827651128918916605082294397005803666566114453783165864649")
LOG10_2 = Fraction("0.301029995663981195213738894724493026768189881462108541310427461127108190")
PI = Fraction("3.141592653589793238462643383279502884197169399375105820974944592307816406286")


@cache
def split_constant(value: Fraction, dtype: np.dtype, zeros: int = 0) -> tuple[float, float]:
    """A constant as the sum of two numbers of a dtype; the first one ends with ``zeros`` zeros."""
    bits = format_of(dtype).mantissa + 1 - zeros
    scale = Fraction(2) ** (bits - math.frexp(float(value))[1])
    high = Fraction(round(value * scale)) / scale
    return float(high), float(dtype.type(float(value - high)))


def polynomial(
    x: Expression, table: Mapping[str, tuple[float, ...]], precision: str = ""
) -> Expression:
    """The polynomial of a table of coefficients, by Horner's rule.

    ``precision``: "d" or "f", the key of the table, if it is not the dtype of x.
    """
    *rest, first = table[precision or x.dtype.char]
    result = x.number(first)
    for coefficient in reversed(rest):
        result = result.times_plus(x, coefficient)
    return result


def fast_two_sum(x: Expression, y: Expression) -> Pair:
    """The pair of ``x + y``, where x is 0 or has the larger exponent."""
    total = x + y
    return total, y - (total - x)


def two_sum(x: Expression, y: Expression) -> Pair:
    """The pair of ``x + y``."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def two_product(x: Expression, y: Expression) -> Pair:
    """The pair of ``x * y``."""
    product = x * y
    return product, x.times_plus(y, -product)


def nearest_integer(x: Expression, factor: float = 1.0) -> tuple[Expression, Expression]:
    """The integer nearest to ``factor * x``, below 2**22 or 2**51, as a float and as an integer.

    A large number is added and subtracted again, because conversions to integers are slow without
    AVX-512.
    """
    large = 1.5 * 2.0**x.format.mantissa
    shifted = x.times_plus(factor, large) if factor != 1.0 else x + large
    return shifted - large, shifted.bits() - x.format.bits_of(large)


def power_of_two(exponent: Expression) -> Expression:
    """2**exponent as a float, for an integer within the exponents of normal numbers."""
    return _power_of_biased(exponent + _format_of_bits(exponent).bias)


def _power_of_biased(exponent: Expression) -> Expression:
    return (exponent << _format_of_bits(exponent).mantissa).bits()


def _format_of_bits(integer: Expression):
    return integer.number(0).bits().format


def times_power_of_two(x: Expression, exponent: Expression) -> Expression:
    """``x * 2**exponent`` rounded once, for any result; only the last product may overflow.

    The exponent lies between -1080 and 1030 (float64), or -155 and 130 (float32).
    """
    biased = exponent + 2 * x.format.bias
    half = biased >> 1
    return x * _power_of_biased(half) * _power_of_biased(biased - half)

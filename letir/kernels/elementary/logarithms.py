"""Logarithms.

log(x) = k log(2) + log(1 + f) with x = 2**k (1 + f), where 1 + f lies between sqrt(1/2) and
sqrt(2). log(1 + f) = 2 atanh(s) with s = f / (2 + f), and 2 atanh(s) = 2 s + s**3 P(s**2) with a
polynomial P; because 2 s = f - s f, this is f - s (f - s**2 P(s**2)), whose first term is exact.
"""

import math
from fractions import Fraction

from attrs import frozen

from letir.kernels.elementary.coefficients import LOG
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import (
    LN2,
    LOG2_E,
    LOG10_2,
    LOG10_E,
    Pair,
    fast_two_sum,
    polynomial,
    power_of_two,
    split_constant,
    two_product,
    two_sum,
)

_ZEROS = {"d": 11, "f": 8}  # bits of exponents: their products with constants are exact


@frozen
class Domain:
    """The domain of a logarithm: positive finite arguments, and a quotient for all others.

    ``quotient(x, y)`` is ``x / y`` inside of the domain. For 0 it is -1 / 0, for negative numbers
    0 / 0, for inf and nan the number itself: the quotient raises the flags of a logarithm.
    """

    inside: Expression
    argument: Expression

    @classmethod
    def from_operand(cls, x: Expression) -> "Domain":
        return cls(x.is_positive_finite(), x)

    def quotient(self, x: Expression, y: Expression) -> Expression:
        argument = self.argument
        one = select(argument.bits() > 0, argument.number(1.0), 0.0)
        above = select(argument == 0.0, -1.0, argument * one)
        return select(self.inside, x, above) / select(self.inside, y, one)


def exponent_and_mantissa(x: Expression) -> tuple[Expression, Expression]:
    """k as an integer and m with ``x = 2**k m``, m from sqrt(1/2) to sqrt(2), for normal x."""
    form = x.format
    low = form.bits_of(math.sqrt(0.5))
    shifted = x.bits() + (form.bits_of(1.0) - low)
    mantissa = (shifted & ((1 << form.mantissa) - 1)) + low
    return (shifted >> form.mantissa) - form.bias, mantissa.bits()


def exponent_as_float(k: Expression, like: Expression) -> Expression:
    """A small integer as a float, without a conversion."""
    large = 1.5 * 2.0**like.format.mantissa
    return (k + like.format.bits_of(large)).bits() - large


def normalize_subnormal(x: Expression) -> tuple[Expression, Expression]:
    """Normal numbers for subnormal ones, and the exponent of the scale."""
    form = x.format
    is_small = x.bits() < (1 << form.mantissa)
    scale = select(is_small, x.number(2.0 ** (form.mantissa + 2)), 1.0)
    return x * scale, select(is_small, x.bits().number(form.mantissa + 2), 0)


def _rest_of_log(f: Expression, s: Expression) -> Expression:
    """log(1 + f) - f, from s = f / (2 + f)."""
    z = s * s
    return -s * (-z).times_plus(polynomial(z, LOG), f)


def log_of_sum(
    u: Expression, c: Expression, domain: Domain, doublings: Expression | None = None
) -> Expression:
    """log(2**doublings (u + c)) for a normal u and a much smaller c.

    ``domain``: the domain of the sum, whose quotient is the result for arguments outside of it.
    """
    k, m = exponent_and_mantissa(u)
    down = power_of_two(-select(k > 100, k.number(100), k))  # beyond, c does not count
    k = exponent_as_float(k, u)
    k = k if doublings is None else k + doublings
    f, c = fast_two_sum(m - 1.0, c * down)
    return _log_of_parts(k, f, c, domain)


def _log_of_parts(k: Expression, f: Expression, c: Expression | None, domain: Domain) -> Expression:
    """k log(2) + log(1 + f + c)."""
    s = domain.quotient(f, 2.0 + f)
    total, rest = _terms_of_log(k, f, c, s)
    return select(domain.inside, total + rest, s)


def _terms_of_log(k: Expression, f: Expression, c: Expression | None, s: Expression) -> Pair:
    """A large and a small term of k log(2) + log(1 + f + c), for s = f / (2 + f)."""
    high, low = split_constant(LN2, f.dtype, _ZEROS[f.dtype.char])
    total, error = fast_two_sum(k * high, f)
    rest = _rest_of_log(f, s)
    rest = k.times_plus(low, rest) if c is None else k.times_plus(low, c) + rest
    return total, error + rest


def log_pair(x: Expression, c: Expression | None = None) -> Pair:
    """The pair of log(x + c) for positive finite x, and c much smaller."""
    scaled, shift = normalize_subnormal(x)
    k, m = exponent_and_mantissa(scaled)
    f, rest = m - 1.0, None
    if c is not None:
        down = power_of_two(-select(k > 100, k.number(100), k))
        f, rest = fast_two_sum(f, c * down)
    return fast_two_sum(*_terms_of_log(exponent_as_float(k - shift, x), f, rest, f / (2.0 + f)))


def log(x: Expression) -> Expression:
    """The natural logarithm."""
    scaled, shift = normalize_subnormal(x)
    k, m = exponent_and_mantissa(scaled)
    return _log_of_parts(exponent_as_float(k - shift, x), m - 1.0, None, Domain.from_operand(x))


def log1p(x: Expression) -> Expression:
    """log(1 + x), also precise near 0."""
    domain = Domain.from_operand(1.0 + x)
    inside = select(domain.inside, x, 0.0)
    u, c = two_sum(x.number(1.0), inside)
    result = log_of_sum(u, c, domain)
    return select(x.is_below(2.0 ** -(x.format.mantissa + 3)), x, result)


def _log_to_base(x: Expression, factor: Fraction, of_two: Fraction) -> Expression:
    """``factor * log(x)``; ``of_two``: ``factor * log(2)``."""
    domain = Domain.from_operand(x)
    scaled, shift = normalize_subnormal(x)
    k, m = exponent_and_mantissa(scaled)
    f = m - 1.0
    s = domain.quotient(f, 2.0 + f)
    k = exponent_as_float(k - shift, f)
    inner = select(domain.inside, s, 0.0)  # infinities would become nan, with flags
    high, low = _scale_pair(fast_two_sum(f, _rest_of_log(f, inner)), factor)
    first, second = split_constant(of_two, x.dtype, _ZEROS[x.dtype.char])
    total, error = fast_two_sum(k * first, high)
    rest = low if second == 0.0 else k.times_plus(second, low)
    return select(domain.inside, total + (error + rest), s)


def _scale_pair(pair: Pair, factor: Fraction) -> Pair:
    """The product of a pair and a constant."""
    high, low = split_constant(factor, pair[0].dtype)
    product, error = two_product(pair[0], pair[0].number(high))
    return product, pair[0].times_plus(low, pair[1].times_plus(high, error))


def log2(x: Expression) -> Expression:
    """The logarithm to base 2, exact for powers of 2."""
    return _log_to_base(x, LOG2_E, Fraction(1))


def log10(x: Expression) -> Expression:
    """The logarithm to base 10."""
    return _log_to_base(x, LOG10_E, LOG10_2)

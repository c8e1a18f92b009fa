"""Inverse hyperbolic functions, logits and logarithms of sums of exponentials.

Each is the logarithm of a sum u + c, where c has the bits that u loses.
"""

from letir.kernels.elementary.exponentials import exp2, exponential_of_negative
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import (
    LN2,
    LOG2_E,
    Pair,
    fast_two_sum,
    split_constant,
    two_product,
    two_sum,
)
from letir.kernels.elementary.logarithms import Domain, log_of_sum


def _root_pair(total: Expression, low: Expression) -> Pair:
    """The square root of a pair as a pair; the pair is 0 or not tiny."""
    root = total.sqrt()
    least = 2.0 ** -(total.format.bias // 2)  # for 0
    return root, ((-root).times_plus(root, total) + low) / (root + root + least)


def _size_limits(x: Expression) -> tuple[float, float]:
    """The |x| above which x**2 + 1 rounds to x**2, and the |x| below which f(x) rounds to x."""
    half = x.format.mantissa // 2
    return 2.0 ** (half + 2), 2.0 ** -(half + 1)


def arcsinh(x: Expression) -> Expression:
    """The inverse of the hyperbolic sine."""
    size, (most, least) = abs(x), _size_limits(x)
    is_big = ~x.is_below(most)
    inside = select(is_big, 1.0, size)
    square, low = two_product(inside, inside)
    total, error = two_sum(square, x.number(1.0))
    root, rest = _root_pair(total, error + low)
    u, c = two_sum(root, inside)
    result = _log_of_large_or_sum(size, is_big, u, c + rest, Domain.from_operand(size + 1.0))
    return select(x.is_below(least), x, result.with_sign_of(x))


def arccosh(x: Expression) -> Expression:
    """The inverse of the hyperbolic cosine, from 1 on."""
    most, _ = _size_limits(x)
    is_big = ~x.is_below(most)
    is_below = (x.bits() < x.format.bits_of(1.0)) & ~x.is_nan()
    domain = Domain.from_operand(select(is_below, -1.0, x))
    inside = select(domain.inside & ~is_big, x, 1.0)
    square, low = two_product(inside, inside)
    root, rest = _root_pair(*fast_two_sum(square - 1.0, low))
    u, c = fast_two_sum(inside, root)
    return _log_of_large_or_sum(x, is_big, u, c + rest, domain)


def _log_of_large_or_sum(x, is_big: Expression, u, c, domain: Domain) -> Expression:
    """log(2 x) for big x, else log(u + c)."""
    doublings = select(is_big, x.number(1.0), 0.0)
    u, c = select(is_big & domain.inside, x, u), select(is_big, 0.0, c)
    return log_of_sum(u, c, domain, doublings)


def arctanh(x: Expression) -> Expression:
    """The inverse of the hyperbolic tangent on (-1, 1): log((1 + x) / (1 - x)) / 2."""
    size, (_, least) = abs(x), _size_limits(x)
    domain = Domain.from_operand(1.0 - size)
    inside = select(domain.inside, size, 0.0)
    below, lost = fast_two_sum(inside.number(1.0), -inside)
    u, c = _quotient_plus_one(2.0 * inside, below, lost)
    result = 0.5 * log_of_sum(u, c, domain)
    return select(x.is_below(least), x, result.with_sign_of(x))


def _quotient_plus_one(n: Expression, d: Expression, lost: Expression) -> Pair:
    """1 + n / (d + lost), with more bits than one number has."""
    inverse = 1.0 / d
    quotient = n * inverse
    rest = inverse * ((-quotient).times_plus(d, n) - quotient * lost)
    u, c = two_sum(quotient, n.number(1.0))
    return u, c + rest


def logaddexp(x: Expression, y: Expression) -> Expression:
    """log(exp(x) + exp(y)), without overflow; nan raises a flag, as in NumPy."""
    largest, difference, low = _largest_and_difference(x, y)
    power, rest = exponential_of_negative(-difference)
    rest = (-low).times_plus(power, rest)
    return largest + _log_of_one_plus(_raise_for_nan(power), rest)


def logaddexp2(x: Expression, y: Expression) -> Expression:
    """log2(2**x + 2**y), without overflow; nan raises a flag, as in NumPy."""
    largest, difference, low = _largest_and_difference(x, y)
    power = exp2(-difference)
    high, rest = split_constant(LN2, x.dtype)[0], split_constant(LOG2_E, x.dtype)[0]
    return largest + _log_of_one_plus(_raise_for_nan(power), power * (-high * low)) * rest


def _largest_and_difference(x: Expression, y: Expression) -> tuple[Expression, ...]:
    """The larger operand, and |x - y| as a pair, which is 0 for equal infinities."""
    is_first = x > y
    # two selects: with one condition for both, LLVM may compute x - y for all elements
    safe_x, safe_y = (select(e.is_finite(), e, 0.0) for e in (x, y))
    difference, low = two_sum(safe_x, -safe_y)
    is_ordinary = x.is_finite() & y.is_finite() & difference.is_finite()
    special = select(x == y, x.number(0.0), float("inf"))
    special = select(x.is_nan(), x, select(y.is_nan(), y, special))
    size = select(is_ordinary, abs(difference), special)
    return select(is_first, x, y), size, select(is_ordinary, select(is_first, low, -low), 0.0)


def _raise_for_nan(x: Expression) -> Expression:
    """``x``, or for nan a number below -1, whose log(1 + x) raises the invalid-operation flag."""
    return select(x.is_nan(), -2.0, x)


def _log_of_one_plus(t: Expression, low: Expression) -> Expression:
    """log(1 + t + low) for t from 0 to 1."""
    domain = Domain.from_operand(1.0 + t)
    u, c = fast_two_sum(t.number(1.0), select(domain.inside, t, 0.0))
    return log_of_sum(u, c + select(domain.inside, low, 0.0), domain)


def log_expit(x: Expression) -> Expression:
    """log(1 / (1 + exp(-x))), without overflow."""
    result = _log_of_one_plus(*exponential_of_negative(-abs(x)))
    return select(x.is_nan(), x, select(x.bits() > 0, -0.0, x) - result)

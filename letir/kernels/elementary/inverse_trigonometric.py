"""Inverse trigonometric functions.

arctan(n / d) = c + arctan(t) with c = 0, pi/4 or pi/2 and t = n / d, (n - d) / (n + d) or -d / n,
so that t is at most tan(pi/8); arcsin(x) = pi/2 - 2 arcsin(sqrt((1 - x) / 2)) for x >= 1/2.
"""

from letir.kernels.elementary.coefficients import ASIN, ATAN
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import (
    PI,
    Pair,
    fast_two_sum,
    polynomial,
    split_constant,
    two_sum,
)

_LOW, _HIGH = 0.41421356, 2.4142136  # tan(pi/8) and tan(3 pi/8), about


def arctan(x: Expression) -> Expression:
    """The inverse of the tangent."""
    bound = 2.0 ** (x.format.mantissa + 10)
    size = select(x.is_below(bound), abs(x), select(x.is_nan(), x, bound))
    is_low, is_high = size.is_below(_LOW), ~size.is_below(_HIGH)
    high, low = _arctan_of_quotient(size, size.number(1.0), is_low, is_high)
    return (high + low).with_sign_of(x)


def arctan2(y: Expression, x: Expression) -> Expression:
    """The angle of the point (x, y), with signed zeros and infinities as C has them."""
    n, d = _safe_point(abs(y), abs(x))
    high, low = _arctan_of_quotient(n, d, n < _LOW * d, n > _HIGH * d)
    pi, rest = split_constant(PI, x.dtype)
    reflected, error = fast_two_sum(x.number(pi), -high)
    is_left = x.is_negative()
    result = select(is_left, reflected, high) + select(is_left, error + (rest - low), low)
    result = result.with_sign_of(y)
    return select(x.is_nan(), x, select(y.is_nan(), y, result))


def _safe_point(n: Expression, d: Expression) -> Pair:
    """A point of the same direction with n, d >= 0, whose quotients do not overflow."""
    is_point = n.is_finite() & d.is_finite()
    infinity = n.format.infinity
    at_infinity = [select(e.bits() == infinity, e.number(1.0), 0.0) for e in (n, d)]
    n, d = (select(is_point, e, i) for e, i in zip((n, d), at_infinity, strict=True))
    d = select((n.bits() | d.bits()) == 0, 1.0, d)
    far, step = (900, 200) if n.format.mantissa == 52 else (100, 40)
    largest = select(n.bits() > d.bits(), n, d)
    is_far = largest.bits() >= n.format.bits_of(2.0**far)
    is_near = largest.is_below(2.0**-far)
    scale = select(is_far, n.number(2.0**-step), select(is_near, n.number(2.0**step), 1.0))
    return n * scale, d * scale


def _arctan_of_quotient(n, d, is_low: Expression, is_high: Expression) -> Pair:
    """arctan(n / d) as a large and a small term."""
    difference, sum_ = two_sum(n, -d), two_sum(n, d)
    above = select(is_low, n, select(is_high, -d, difference[0]))
    below = select(is_low, d, select(is_high, n, sum_[0]))
    is_outer = is_low | is_high
    lost_above, lost_below = (select(is_outer, 0.0, e[1]) for e in (difference, sum_))
    inverse = 1.0 / below
    t = above * inverse
    rest = (-t).times_plus(below, above) + (lost_above - t * lost_below)
    z = t * t
    (quarter, quarter_low), (half, half_low) = (
        split_constant(PI / 4, n.dtype),
        split_constant(PI / 2, n.dtype),
    )
    start = select(is_low, 0.0, select(is_high, n.number(half), quarter))
    start_low = select(is_low, 0.0, select(is_high, n.number(half_low), quarter_low))
    total, error = fast_two_sum(start, t)
    tail = (t * z).times_plus(polynomial(z, ATAN), rest.times_plus(inverse, start_low))
    return total, error + tail


def _half_arcsin(x: Expression) -> tuple[Expression, Expression, Expression]:
    """Whether |x| < 1/2; s and e with arcsin(s) = s + e for s = |x| or sqrt((1 - |x|) / 2).

    Beyond 1, the square root gives nan and raises the flag of an invalid operation.
    """
    size = abs(x)
    is_small = x.is_below(0.5)
    z = select(is_small, size * size, 0.5 - 0.5 * size)
    root = z.sqrt()
    # the rounding error of the root; the divisor is not zero at 1
    least = 2.0 ** -(x.format.bias - 30)
    error = (-root).times_plus(root, z) / (root + root + least)
    s = select(is_small, size, root)
    return is_small, s, (s * z).times_plus(polynomial(z, ASIN), select(is_small, 0.0, error))


def arcsin(x: Expression) -> Expression:
    """The inverse of the sine on [-1, 1]."""
    is_small, s, rest = _half_arcsin(x)
    half, half_low = split_constant(PI / 2, x.dtype)
    total, error = fast_two_sum(x.number(half), -2.0 * s)
    beyond = total + (error + (half_low - 2.0 * rest))
    return select(is_small, s + rest, beyond).with_sign_of(x)


def arccos(x: Expression) -> Expression:
    """The inverse of the cosine on [-1, 1]."""
    is_small, s, rest = _half_arcsin(x)
    is_negative = x.is_negative()
    (half, half_low), (pi, pi_low) = split_constant(PI / 2, x.dtype), split_constant(PI, x.dtype)
    signed, signed_rest = s.with_sign_of(x), rest * x.number(1.0).with_sign_of(x)
    middle, lost = fast_two_sum(x.number(half), -signed)
    near = middle + (lost + (half_low - signed_rest))
    reflected, error = fast_two_sum(x.number(pi), -2.0 * s)
    reflected = reflected + (error + (pi_low - 2.0 * rest))
    return select(is_small, near, select(is_negative, reflected, 2.0 * (s + rest)))

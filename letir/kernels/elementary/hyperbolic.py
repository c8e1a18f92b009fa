"""Hyperbolic functions.

With x = k log(2) + r: sinh(x) = sinh(k log 2) cosh(r) + cosh(k log 2) sinh(r), where the factors
with k are sums of two powers of two, and cosh(r) and sinh(r) are polynomials. cosh is computed in
the same way.
"""

from letir.kernels.elementary.coefficients import COSH, EXP, SINH
from letir.kernels.elementary.exponentials import clamp, reduce_exponent, unless_infinite
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import Pair, fast_two_sum, polynomial, power_of_two

_BOUNDS = {"d": 710.5, "f": 89.5}


def _half_sinh_and_cosh(x: Expression) -> tuple[Pair, Pair]:
    """The pairs of sinh(x) / 2 and cosh(x) / 2 for x >= 0, up to the bound of the dtype."""
    _, k, r, low = reduce_exponent(x)
    up, down = power_of_two(k - 2), power_of_two(-2 - select(k > 100, k.number(100), k))
    # sinh and cosh of k log(2), halved
    p, q = fast_two_sum(up, -down), fast_two_sum(up, down)
    z = r * r
    even, odd = z * polynomial(z, COSH), r * z * polynomial(z, SINH) + low
    return _combine_pairs(p, q[0], r, even, odd), _combine_pairs(q, p[0], r, even, odd)


def _combine_pairs(p: Pair, q, r, even, odd) -> Pair:
    """The pair of ``p (1 + even) + q (r + odd)``, where p is 0 or above q r."""
    high = q.times_plus(r, p[0])
    error = q.times_plus(r, p[0] - high) + p[1]
    return high, q.times_plus(odd, p[0].times_plus(even, error))


def sinh(x: Expression) -> Expression:
    """The hyperbolic sine."""
    (high, low), _ = _half_sinh_and_cosh(clamp(abs(x), _BOUNDS[x.dtype.char]))
    result = unless_infinite(abs(x), 2.0 * (high + low))
    is_tiny = x.is_below(2.0 ** (-x.format.mantissa // 2 - 2))
    return select(is_tiny, x, result.with_sign_of(x))


def cosh(x: Expression) -> Expression:
    """The hyperbolic cosine."""
    _, (high, low) = _half_sinh_and_cosh(clamp(abs(x), _BOUNDS[x.dtype.char]))
    return unless_infinite(abs(x), 2.0 * (high + low))


def tanh(x: Expression) -> Expression:
    """The hyperbolic tangent, (exp(2 x) - 1) / (exp(2 x) + 1)."""
    # 1 to the last bit from the bound on
    size = _clamp_above(abs(x), {"d": 20.0, "f": 10.0}[x.dtype.char])
    _, k, r, low = reduce_exponent(size + size)
    scale = power_of_two(k)
    high, error = fast_two_sum(scale - 1.0, scale * r)
    rest = (r * r).times_plus(polynomial(r, EXP), low)
    above = high + scale.times_plus(rest, error)
    below, lost = fast_two_sum(x.number(2.0), above)  # 2 is larger where the error counts
    inverse = 1.0 / below
    quotient = above * inverse
    rest = (-quotient).times_plus(lost, (-quotient).times_plus(below, above))
    return rest.times_plus(inverse, quotient).with_sign_of(x)


def _clamp_above(x: Expression, bound: float) -> Expression:
    """``x`` up to a bound, or nan."""
    return select(x.is_below(bound), x, select(x.is_nan(), x, bound))

"""Sine, cosine and tangent: polynomials in angles of at most an eighth of a turn."""

from collections.abc import Callable

import numpy as np

from letir.kernels.elementary.coefficients import COS, SIN
from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import Pair, fast_two_sum, polynomial
from letir.kernels.elementary.range_reduction import (
    is_large_angle,
    reduced_angle,
    reduced_large_angle,
    reduced_short_angle,
)

_DOUBLE = np.dtype("f8")


def _with_sign_bit(x: Expression, n: Expression) -> Expression:
    """``x`` or, where the bit 2 of n is set, ``-x``."""
    return (x.bits() ^ ((n & 2) << 62)).bits()


def _sine_and_cosine(x: Expression, reduction: Callable) -> tuple[Expression, Pair, Pair]:
    """n, sin(r) and cos(r) as pairs, for |x| = n pi/2 + r, in float64."""
    if x.dtype != _DOUBLE:
        n, r = reduced_short_angle(abs(x).cast(_DOUBLE))
        z, zero = r * r, r.number(0.0)
        sine = (r * z).times_plus(polynomial(z, SIN, "f"), r)
        return n, (sine, zero), ((z * z).times_plus(polynomial(z, COS, "f"), 1.0 - 0.5 * z), zero)
    n, r, low = reduction(abs(x))
    z = r * r
    half = 0.5 * z
    cosine = 1.0 - half
    rest = (z * z).times_plus(polynomial(z, COS), (-r).times_plus(low, (1.0 - cosine) - half))
    return n, (r, (r * z).times_plus(polynomial(z, SIN), low)), (cosine, rest)


def sin(x: Expression) -> Expression:
    """The sine of an angle in radians."""
    result = _shifted_sine(x, 0, reduced_angle)
    return _replaced_if_large(result, "sine_of_large", _shifted_sine, x, 0)


def cos(x: Expression) -> Expression:
    """The cosine of an angle in radians."""
    size = abs(x)
    result = _shifted_sine(size, 1, reduced_angle)
    return _replaced_if_large(result, "sine_of_large", _shifted_sine, size, 1)


def _shifted_sine(x: Expression, quarters: Expression | int, reduction: Callable) -> Expression:
    """sin(x + quarters pi/2) for x >= 0, and its opposite for -x."""
    n, sine, cosine = _sine_and_cosine(x, reduction)
    n = n + quarters
    result = _with_sign_bit(select((n & 1) == 0, sum(sine), sum(cosine)), n).cast(x.dtype)
    return (result.bits() ^ (x.bits() & ~x.bits_mask())).bits()


def tan(x: Expression) -> Expression:
    """The tangent of an angle in radians."""
    return _replaced_if_large(_tangent(x, reduced_angle), "tangent_of_large", _tangent, x)


def _tangent(x: Expression, reduction: Callable) -> Expression:
    n, sine, cosine = _sine_and_cosine(x, reduction)
    if x.dtype == _DOUBLE:
        sine, cosine = fast_two_sum(*sine), fast_two_sum(*cosine)
    is_even = (n & 1) == 0
    above, divisor = (
        tuple(select(is_even, p, q) for p, q in zip(x_, y_, strict=True))
        for x_, y_ in ((sine, cosine), (cosine, sine))
    )
    quotient = above[0] / divisor[0]
    rest = (-quotient).times_plus(divisor[0], above[0]) + (above[1] - quotient * divisor[1])
    if x.dtype == _DOUBLE:
        quotient = (rest / divisor[0]) + quotient
    result = _with_sign_bit(quotient, (n & 1) << 1).cast(x.dtype)
    return (result.bits() ^ (x.bits() & ~x.bits_mask())).bits()


def _replaced_if_large(
    result: Expression, name: str, function: Callable, x: Expression, *operands: int
) -> Expression:
    """``result``, or ``function(x, *operands, reduced_large_angle)`` where ``x`` is large.

    ``name``: of the function. Angles of float32 are never large.
    """
    if x.dtype != _DOUBLE:
        return result
    integers = [Expression(x.builder, x.builder.number(k, np.int64)) for k in operands]
    return result.replaced_rarely(
        name,
        lambda x, *_: is_large_angle(x),
        lambda *operands: function(*operands, reduced_large_angle),
        *(x, *integers),
    )

"""The remainder of a division of floats, which is exact."""

from letir.kernels.elementary.expression import Expression, select


def fmod(x: Expression, y: Expression) -> Expression:
    """The remainder with the sign of ``x``.

    Let n be the rounded quotient, rounded down again. It is at most 1 above the true quotient, so
    that x - n y lies between -y and y, where floats are dense enough for it. The processor's own
    function computes quotients of more digits than a float has, and special numbers.
    """
    is_ordinary = _has_short_quotient(x, y)
    size, divisor = select(is_ordinary, abs(x), 1.0), select(is_ordinary, abs(y), 1.0)
    quotient = (size / divisor).let("floor", size / divisor)
    rest = (-quotient).times_plus(divisor, size)
    rest = select(rest < 0.0, rest + divisor, rest).with_sign_of(x)
    return rest.replaced_rarely(
        "fmod", lambda x, y: ~_has_short_quotient(x, y), lambda x, y: x.let("fmod", x, y), x, y
    )


def _has_short_quotient(x: Expression, y: Expression) -> Expression:
    """Whether x / y has no more digits than a float, for finite ``x`` and normal ``y``."""
    digits, infinity = x.format.mantissa, x.format.infinity
    size, divisor = x.magnitude_bits(), y.magnitude_bits()
    is_normal = (divisor >= 1 << digits) & (divisor < infinity)
    # the difference of the bits is the difference of the exponents, up to the bits below them
    return is_normal & (size < infinity) & (size - divisor < digits << digits)

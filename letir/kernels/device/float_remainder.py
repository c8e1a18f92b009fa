"""The remainder of floats as loop language, for targets whose own instruction rounds."""

from functools import cache

import numpy as np

from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Function, Operand


@cache
def remainder_function(dtype: np.dtype) -> Function:
    """``fmod`` of two floats, exact: the dividend's sign, and less than the divisor.

    The divisor is doubled up to the dividend, then halved again and subtracted where it fits, as in
    long division. All differences are exact (Sterbenz, 1974).
    """
    b = Builder()
    x, y = b.scalar(dtype), b.scalar(dtype)
    zero, infinity = b.number(0.0, dtype), b.number(np.inf, dtype)
    dividend, divisor = b.let("abs", x), b.let("abs", y)
    is_number = b.let("and", b.let("lt", dividend, infinity), b.let("gt", divisor, zero))
    is_long = b.let("and", is_number, b.let("ge", dividend, divisor))
    rest = _positive_remainder(
        b, b.select(is_long, dividend, zero), b.select(is_long, divisor, infinity)
    )
    result = b.let("copysign", b.select(is_long, rest, dividend), x)
    result = b.select(is_number, result, b.number(np.nan, dtype))  # comparisons with nan are False
    return Function(f"fmod_{dtype}", (x, y), b.statements(), result)


def _positive_remainder(b: Builder, dividend: Operand, divisor: Operand) -> Operand:
    """The remainder of a positive dividend that is not less than the divisor."""
    half = b.number(0.5, dividend.dtype)
    doubling = b.repeat(divisor)
    with doubling:
        (scaled,) = doubling.carried
        doubling.holds(b.let("le", scaled, b.mul(dividend, half)))
        doubling.next(b.add(scaled, scaled))
    halving = b.repeat(dividend, doubling.results[0])
    with halving:
        rest, scaled = halving.carried
        # an infinite divisor stands for "nothing to do"
        is_finite = b.let("lt", scaled, b.number(np.inf, dividend.dtype))
        halving.holds(b.let("and", b.let("ge", scaled, divisor), is_finite))
        fits = b.let("ge", rest, scaled)
        reduced = b.select(fits, b.sub(rest, scaled), rest)
        halving.next(reduced, b.mul(scaled, half))
    return halving.results[0]

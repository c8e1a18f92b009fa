"""Angles reduced to at most an eighth of a turn, for any finite argument.

x = n pi/2 + r. Up to 2**40, n pi/2 is subtracted with pi/2 in three parts (Cody and Waite,
"Software manual for the elementary functions", 1980). Beyond, x / (2 pi) modulo 1 is computed in
integers: x is an integer times a power of two, so that only some bits of 1 / (2 pi) matter (Payne
and Hanek, "Radian reduction for trigonometric functions", 1983).
"""

import math
from functools import cache
from itertools import pairwise

import numpy as np

from letir.kernels.elementary.expression import Expression, select
from letir.kernels.elementary.formulas import PI, Pair, fast_two_sum, nearest_integer, two_sum

_WORDS = 20  # words of 64 bits of 1 / (2 pi): the largest exponent and 192 bits
_LOW = (1 << 32) - 1
_MIN_LARGE_EXPONENT = 40  # the exponent from which integers are used


@cache
def _bits_of_inverse_two_pi() -> tuple[int, ...]:
    """The bits of 1 / (2 pi) after the binary point, as signed words of 64 bits.

    pi by Machin's formula, 16 arctan(1/5) - 4 arctan(1/239), in integers.
    """
    bits = 64 * (_WORDS + 2)
    pi = 16 * _arctan_of_inverse(5, 2 * bits) - 4 * _arctan_of_inverse(239, 2 * bits)
    turn = (1 << (3 * bits - 1)) // pi  # 2**(2 bits) / (2 pi), with pi times 2**(2 bits)
    words = [(turn >> (bits - 64 * (n + 1))) & ((1 << 64) - 1) for n in range(_WORDS)]
    return tuple([w - (1 << 64) if w >> 63 else w for w in words])


def _arctan_of_inverse(n: int, bits: int) -> int:
    """arctan(1 / n) times 2**bits."""
    term, total, k = (1 << bits) // n, 0, 1
    while term:
        total += term // k if k % 4 == 1 else -(term // k)
        term //= n * n
        k += 2
    return total


def reduced_angle(x: Expression) -> tuple[Expression, Expression, Expression]:
    """n modulo 4 as an integer, and the pair r with ``x = n pi/2 + r``, for x >= 0 of float64.

    For an angle that ``is_large_angle``, r is an arbitrary number.
    """
    return _reduce_by_subtraction(select(is_large_angle(x), 0.0, x))


def is_large_angle(x: Expression) -> Expression:
    """Whether an angle needs ``reduced_large_angle``, as inf and nan do."""
    return ~x.is_below(2.0**_MIN_LARGE_EXPONENT)


def reduced_large_angle(x: Expression) -> tuple[Expression, Expression, Expression]:
    """``reduced_angle`` of a large angle.

    For inf and nan, r is nan; inf raises the flag of an invalid operation. For other angles, the
    result is arbitrary.
    """
    is_large = is_large_angle(x) & x.is_finite()
    n, high, low = _reduce_by_integers(select(is_large, x, 2.0**_MIN_LARGE_EXPONENT))
    # inf - inf is nan with its flag
    return n, select(x.is_finite(), high, x - x), low


def _reduce_by_subtraction(x: Expression) -> tuple[Expression, Expression, Expression]:
    """``reduced_angle`` up to 2**40: the first product is subtracted exactly."""
    value = PI / 2
    parts = []
    for _ in range(3):
        parts.append(float(value))
        value -= type(value)(parts[-1])
    k, n = nearest_integer(x, float(2 / PI))
    first = k.times_plus(-parts[0], x)
    product = k * parts[1]
    error = k.times_plus(parts[1], -product)
    high, low = two_sum(first, -product)
    return n & 3, *fast_two_sum(high, k.times_plus(-parts[2], low - error))


def _reduce_by_integers(x: Expression) -> tuple[Expression, Expression, Expression]:
    """``reduced_angle`` from 2**40 on."""
    bits = x.bits()
    # x = m 2**e, and the bits of 1 / (2 pi) before the one of weight 2**-e give whole turns
    m = (bits & ((1 << 52) - 1)) | (1 << 52)
    first, second = _multiply_words(m, _relevant_words((bits >> 52) - (1023 + _MIN_LARGE_EXPONENT)))
    quarters = (first + (1 << 61)) >> 62
    first = first - (quarters << 62)
    sign = first.number(0) - (first >> 63)  # all bits of a negative number
    high, low = _as_floats(first ^ sign, second ^ sign)
    turn, rest = _two_pi()
    product = high * turn
    error = high.times_plus(turn, -product)
    high, low = fast_two_sum(product, high.times_plus(rest, low.times_plus(turn, error)))
    flip = sign & (-1 << 63)
    return quarters, (high.bits() ^ flip).bits(), (low.bits() ^ flip).bits()


def _two_pi() -> tuple[float, float]:
    """2 pi / 2**64 as the sum of two numbers."""
    value = 2 * PI / 2**64
    high = float(value)
    return high, float(value - type(value)(high))


def _relevant_words(shift: Expression) -> list[Expression]:
    """Six words of 32 bits of 1 / (2 pi), from the bit that x = m 2**e makes the first to count.

    ``shift``: the exponent of x less 40, so that its unit in the last place is 2**(shift - 12).
    """
    # one zero word in front: with it, shift counts from a bit above the binary point
    position = shift + (64 + _MIN_LARGE_EXPONENT - 52)
    words: list = [0, *_bits_of_inverse_two_pi()]
    for step in (16, 8, 4, 2, 1):
        is_ahead = (position & (64 * step)) != 0
        count = 3 + step
        words = [_select_word(is_ahead, words, k, step) for k in range(min(count, len(words)))]
    within = position & 63
    after = 63 - within
    result = []
    for word, following in pairwise(words):
        aligned = (word << within) | ((following >> 1) >> after)
        result += [aligned >> 32, aligned & _LOW]
    return result


def _select_word(condition: Expression, words: list, k: int, step: int):
    """``words[k]``, or ``words[k + step]`` where the condition is true."""
    if k + step >= len(words):
        return words[k]
    x, y = words[k + step], words[k]
    if not isinstance(x, Expression) and not isinstance(y, Expression):
        x = Expression(condition.builder, condition.builder.number(x, np.int64))
    return select(condition, x, y)


def _multiply_words(m: Expression, words: list[Expression]) -> tuple[Expression, Expression]:
    """The first 128 bits of m times a fraction of words of 32 bits, modulo 1."""
    low, high = m & _LOW, m >> 32
    by_low = [low * w for w in words[:5]]
    by_high = [high * w for w in words[1:6]]
    carry = (by_low[4] >> 32) + (by_high[4] >> 32)
    parts = []
    for k in (3, 2, 1):
        total = carry + (by_low[k] & _LOW) + by_high[k]
        parts.append(total & _LOW)
        carry = (total >> 32) + (by_low[k] >> 32)
    top = carry + by_low[0] + by_high[0]
    return (top << 32) | parts[2], (parts[1] << 32) | parts[0]


def _as_floats(first: Expression, second: Expression) -> Pair:
    """The pair of ``first + second / 2**64``, for first >= 0 and second without sign."""
    (a, b), (c, d) = ((_small_float(x >> 32), _small_float(x & _LOW)) for x in (first, second))
    high, low = fast_two_sum(a * 2.0**32, b)
    middle, rest = fast_two_sum(c.times_plus(2.0**-32, low), d * 2.0**-64)
    high, low = fast_two_sum(high, middle)
    return high, low + rest


def _small_float(x: Expression) -> Expression:
    """An integer below 2**52 as a float, without a conversion."""
    return (x | int(np.float64(2.0**52).view("i8"))).bits() - 2.0**52


def reduced_short_angle(x: Expression) -> tuple[Expression, Expression]:
    """n modulo 4 as an integer, and r with ``x = n pi/2 + r``, for float32 given as float64.

    x >= 0. Products of float32 numbers with 26 bits of 1 / (2 pi) are exact, so that whole turns
    are dropped without error.
    """
    chunks = _chunks_of_inverse_two_pi()
    first, second, tail = (x.number(c) for c in chunks[0])
    for k, chunk in enumerate(chunks[1:], 1):
        is_beyond = x.bits() >= x.format.bits_of(2.0 ** (23 + 26 * k))
        first, second, tail = (
            select(is_beyond, x.number(new), old)
            for new, old in zip(chunk, (first, second, tail), strict=True)
        )
    parts = [x * first, x * second]
    parts = [p - p.let("rint", p) for p in parts]
    turns = x.times_plus(tail, parts[0] + parts[1])
    quarters, n = nearest_integer(turns, 4.0)
    rest = quarters.times_plus(-0.25, parts[0]) + parts[1]
    return n & 3, x.times_plus(tail, rest) * (2 * math.pi)


@cache
def _chunks_of_inverse_two_pi() -> list[tuple[float, ...]]:
    """Bits of 1 / (2 pi) from every 26th: two numbers of 26 bits and one with the bits after."""
    turns = sum(
        (w % (1 << 64)) << (64 * (_WORDS - 1 - n)) for n, w in enumerate(_bits_of_inverse_two_pi())
    )
    total, result = 64 * _WORDS, []
    for k in range(5):
        pieces, start = [], 26 * k
        for count in (26, 26, 80):
            bits = (turns >> (total - start - count)) & ((1 << count) - 1)
            pieces.append(math.ldexp(bits, -start - count))
            start += count
        result.append(tuple(pieces))
    return result

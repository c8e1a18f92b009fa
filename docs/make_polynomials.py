"""Write letir/kernels/elementary/coefficients.py: the polynomials in elementary functions.

    python docs/make_polynomials.py            # needs mpmath; takes a few minutes

Each polynomial is a least-squares fit in 60 digits at Chebyshev nodes, with the weights of Lawson's
iteration, which tend to those of the minimax polynomial. Its coefficients are rounded one after the
other, lowest first, and those left are fitted again each time (as in Brisebarre and Chevillard,
"Efficient polynomial L-infinity approximations", 2007, but without lattices).
"""

import sys
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 60
TARGET = Path(__file__).parents[1] / "letir" / "kernels" / "elementary" / "polynomials.py"
HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0001")
QUARTER_PI2 = (mp.pi / 4 * mp.mpf("1.0001")) ** 2


def from_series(function: Callable, series: Callable) -> Callable:
    """The function, and its Taylor series near 0, where the formula cancels."""
    return lambda v: (
        mp.nsum(lambda k: series(int(k)) * v ** int(k), [0, 30]) if abs(v) < 1e-4 else function(v)
    )


def root_form(function: Callable) -> Callable:
    """The function of sqrt(v), for even functions."""
    return lambda v: function(mp.sqrt(v))


def scaled_erfc(x):
    """exp(x^2) erfc(x)."""
    with mp.workdps(400):  # erfc is tiny
        return mp.exp(x * x) * mp.erfc(x)


def log_gamma_quotient(x):
    """log(gamma(x)) / ((x - 1) (x - 2))."""
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def stirling_rest(x):
    """What Stirling's formula lacks, times x."""
    with mp.workdps(90):
        return (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x


# name: (function, its interval, weight of an error, degrees in float64 and, if used, in float32)
FITS = {
    # (e^x - 1 - x) / x^2
    "EXP": (
        from_series(lambda v: (mp.expm1(v) - v) / v**2, lambda k: 1 / mp.factorial(k + 2)),
        (-HALF_LN2, HALF_LN2),
        lambda v: v if abs(v) < 0.3 else v**2 / mp.exp(v),
        (9, 5),
    ),
    # (2^x - 1) / x
    "EXP2": (
        from_series(
            lambda v: (mp.mpf(2) ** v - 1) / v, lambda k: mp.log(2) ** (k + 1) / mp.factorial(k + 1)
        ),
        (mp.mpf(-0.5001), mp.mpf(0.5001)),
        lambda v: v / mp.mpf(2) ** v,
        (10, 5),
    ),
    # (2 atanh(s) - 2 s) / s^3 of s^2
    "LOG": (
        from_series(
            root_form(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3), lambda k: mp.mpf(2) / (2 * k + 3)
        ),
        (mp.mpf(0), (mp.mpf("0.17158")) ** 2),
        lambda v: v / 2,
        (6, 2),
    ),
    # (2 atanh(s) / s - 2 - 2 s^2 / 3 - 2 s^4 / 5) / s^6 / log(2) of s^2, for powers
    "LOG2_TAIL": (
        lambda v: mp.nsum(lambda k: 2 * v**k / (2 * k + 7), [0, mp.inf]) / mp.log(2),
        (mp.mpf(0), (mp.mpf("0.17158")) ** 2),
        lambda v: v**3,
        (6, 3),
    ),
    # (cosh(x) - 1) / x^2 and (sinh(x) / x - 1) / x^2 of x^2
    "COSH": (
        from_series(
            root_form(lambda s: (mp.cosh(s) - 1) / s**2), lambda k: 1 / mp.factorial(2 * k + 2)
        ),
        (mp.mpf(0), HALF_LN2**2),
        lambda v: v,
        (4, 2),
    ),
    "SINH": (
        from_series(
            root_form(lambda s: (mp.sinh(s) / s - 1) / s**2), lambda k: 1 / mp.factorial(2 * k + 3)
        ),
        (mp.mpf(0), HALF_LN2**2),
        lambda v: v,
        (4, 2),
    ),
    # (sin(x) / x - 1) / x^2 and (cos(x) - 1 + x^2 / 2) / x^4 of x^2
    "SIN": (
        from_series(
            root_form(lambda s: (mp.sin(s) / s - 1) / s**2),
            lambda k: (-1) ** (k + 1) / mp.factorial(2 * k + 3),
        ),
        (mp.mpf(0), QUARTER_PI2),
        lambda v: v,
        (5, 2),
    ),
    "COS": (
        from_series(
            root_form(lambda s: (mp.cos(s) - 1 + s * s / 2) / s**4),
            lambda k: (-1) ** k / mp.factorial(2 * k + 4),
        ),
        (mp.mpf(0), QUARTER_PI2),
        lambda v: v**2,
        (5, 2),
    ),
    # cbrt(x)
    "CBRT": (mp.cbrt, (mp.sqrt(0.5), mp.sqrt(2)), lambda v: 1 / mp.cbrt(v), (5, 3)),
    # (arctan(x) / x - 1) / x^2 of x^2
    "ATAN": (
        from_series(
            root_form(lambda t: (mp.atan(t) / t - 1) / t**2),
            lambda k: mp.mpf(-1) ** (k + 1) / (2 * k + 3),
        ),
        (mp.mpf(0), mp.mpf("0.41422") ** 2),
        lambda v: v,
        (10, 4),
    ),
    # (arcsin(x) / x - 1) / x^2 of x^2
    "ASIN": (
        from_series(
            root_form(lambda t: (mp.asin(t) / t - 1) / t**2),
            lambda k: mp.binomial(2 * k + 2, k + 1) / mp.mpf(4) ** (k + 1) / (2 * k + 3),
        ),
        (mp.mpf(0), mp.mpf("0.25001")),
        lambda v: v,
        (12, 5),
    ),
    # erf(x) / x - 1 of x^2
    "ERF": (
        from_series(
            root_form(lambda t: mp.erf(t) / t - 1),
            lambda k: (
                2 / mp.sqrt(mp.pi) * mp.mpf(-1) ** k / mp.factorial(k) / (2 * k + 1) - (k == 0)
            ),
        ),
        (mp.mpf(0), mp.mpf("0.25001")),
        lambda v: mp.mpf(1),
        (9, 4),
    ),
    # exp(x^2) erfc(x) (1 + 2 x) - 1.125 of (x - 3.5) / (x + 3.5), for x from 1/2 to 27.3 or 10.2
    "ERFC": (
        lambda v: scaled_erfc(3.5 * (1 + v) / (1 - v)) * (1 + 7 * (1 + v) / (1 - v)) - 1.125,
        (mp.mpf(-3) / 4, mp.mpf(23.8) / mp.mpf(30.8)),
        lambda v: mp.mpf(1),
        (21, 10),
    ),
    # log(gamma(x)) / ((x - 1) (x - 2)) of x - 1.5, for x from 1 to 2
    "LOG_GAMMA": (
        lambda v: log_gamma_quotient(v + mp.mpf(1.5)),
        (mp.mpf(-0.5), mp.mpf(0.5)),
        lambda v: mp.mpf(2),
        (23,),
    ),
    # (log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2) x of 1 / x^2, for x from 8 on
    "STIRLING": (
        lambda v: stirling_rest(1 / mp.sqrt(v)),
        (mp.mpf(10) ** -12, mp.mpf(1) / 64),
        mp.sqrt,
        (6,),
    ),
}


def rounded(value, dtype: np.dtype):
    """A number of the dtype: the nearest one."""
    high = np.float64(value) if dtype == np.float64 else np.float32(float(value))
    return high


def fitted(function, interval, weight, degree: int, dtype: np.dtype) -> tuple[list, float]:
    """The coefficients, lowest first, and the bits of the largest weighted error."""
    low, high = interval
    n = 6 * (degree + 1)
    nodes = [
        (low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n))
        for i in range(n)
    ]
    values, scale = [function(v) for v in nodes], [weight(v) for v in nodes]
    lawson = [mp.mpf(1)] * n
    found: list = []
    for _ in range(12):
        solved = solve(nodes, values, scale, lawson, degree, [])
        errors = residuals(nodes, values, scale, solved)
        lawson = [w * (e + mp.mpf(10) ** -40) for w, e in zip(lawson, errors, strict=True)]
        total = sum(lawson)
        lawson = [w * n / total for w in lawson]
    while len(found) <= degree:
        solved = solve(nodes, values, scale, lawson, degree, found)
        found.append(mp.mpf(float(rounded(solved[len(found)], dtype))))
    return found, float(mp.log(max(residuals(nodes, values, scale, found)), 2))


def residuals(nodes, values, scale, coefficients) -> list:
    return [
        abs(s * (mp.polyval(coefficients[::-1], v) - y))
        for v, y, s in zip(nodes, values, scale, strict=True)
    ]


def solve(nodes, values, scale, lawson, degree: int, fixed: list) -> list:
    """The least-squares coefficients, of which the first ones are fixed."""
    m, known = degree + 1, len(fixed)
    left = [mp.mpf(0)] * (2 * m)
    right = [mp.mpf(0)] * m
    for v, y, s, w in zip(nodes, values, scale, lawson, strict=True):
        weight = s * s * w
        rest = (y - mp.polyval(fixed[::-1], v)) if fixed else y
        power = mp.mpf(1)
        for k in range(2 * m):
            left[k] += weight * power
            if k < m:
                right[k] += weight * power * rest
            power *= v
    matrix = mp.matrix(m - known, m - known)
    for i in range(known, m):
        for j in range(known, m):
            matrix[i - known, j - known] = left[i + j]
    vector = mp.matrix(right[known:])
    return [*fixed, *mp.lu_solve(matrix, vector)]


HEAD = '''\
"""The coefficients of polynomials in elementary functions, lowest first, by dtype.

Written by ``python docs/make_polynomials.py``, which says what function each one approximates.
"""

'''


def text_of(name: str) -> str:
    """The lines of a table: the coefficients of one function in both dtypes."""
    function, interval, weight, degrees = FITS[name]
    lines = [f"{name} = {{"]
    for dtype, degree in zip((np.dtype("d"), np.dtype("f")), degrees, strict=False):
        found, bits = fitted(function, interval, weight, degree, dtype)
        print(name, dtype, degree, f"2^{bits:.1f}")
        lines.append(f'    "{dtype.char}": (  # error 2^{bits:.1f}')
        lines += [f"        {dtype.type(float(c))!s}," for c in found]
        lines.append("    ),")
    return "\n".join([*lines, "}"])


if __name__ == "__main__":
    texts = list(map(text_of, sys.argv[1:] or FITS))
    if len(sys.argv) == 1:  # with names, only their errors are printed
        TARGET.write_text(HEAD + "\n".join(texts) + "\n")

"""The gamma function, its logarithm and derivatives and incomplete gamma functions."""

import math
from typing import Any

import numpy as np

from letir.onnx.exporting.node_graph import computes_op
from letir.onnx.exporting.programs.error_function_programs import exp1
from letir.tracing.control_flow.while_and_fori import while_loop

# Lanczos' coefficients for g = 607/128, by Godfrey: https://www.numericana.com/answer/info/godfrey.htm
_LANCZOS: tuple[float, ...] = (57.156235665862923517, -59.597960355475491248, 14.136097974741747174)
_LANCZOS = (*_LANCZOS, -0.49191381609762019978, 0.33994649984811888699e-4)
_LANCZOS = (*_LANCZOS, 0.46523628927048575665e-4, -0.98374475304879564677e-4)
_LANCZOS = (*_LANCZOS, 0.15808870322491248884e-3, -0.21026444172410488319e-3)
_LANCZOS = (*_LANCZOS, 0.21743961811521264320e-3, -0.16431810653676389022e-3)
_LANCZOS = (*_LANCZOS, 0.84418223983852743293e-4, -0.26190838401581408670e-4)
_LANCZOS = (*_LANCZOS, 0.36899182659531622704e-5)
_BERNOULLI: tuple[float, ...] = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
)
_BERNOULLI = (*_BERNOULLI, 43867 / 798, -174611 / 330)


def _sin_pi(x):
    """sin(pi x), exactly 0 at integers."""
    rest = x - 2 * np.round(0.5 * x)
    return np.where(rest == np.round(rest), 0.0, np.sin(math.pi * rest))


def _log_gamma_above(x):
    """log gamma(x) for x from 0.5 on."""
    large = np.isposinf(x)
    x = np.where(large, 1.0, x)
    t = x + 5.2421875
    total = 0.99999999999999709182
    for k, c in enumerate(_LANCZOS, 1):
        total = total + c / (x + k)
    result = (x + 0.5) * np.log(t) - t + np.log(2.5066282746310005 * total / x)
    return np.where(large, np.inf, result)


@computes_op("gammaln")
def gammaln(x: Any) -> Any:
    """log(abs(gamma(x)))."""
    above = x >= 0.5
    direct = _log_gamma_above(np.where(above, x, 1 - np.where(np.isneginf(x), 0.0, x)))
    sine = np.abs(_sin_pi(np.where(np.isinf(x), 0.5, x)))
    reflected = np.log(math.pi / np.where(sine == 0, 1.0, sine)) - direct
    result = np.where(above, direct, np.where(sine == 0, np.inf, reflected))
    return np.where(np.isinf(x), x, result)


@computes_op("loggamma")
def _loggamma(x):
    return np.where(x < 0, np.nan, gammaln(x))


@computes_op("gammasgn")
def gammasgn(x: Any) -> Any:
    """The sign of gamma(x)."""
    whole = np.floor(x)
    odd = whole - 2 * np.floor(0.5 * whole) != 0
    result = np.where((x > 0) | ~odd, 1.0, -1.0)
    result = np.where((x < 0) & (whole == x), np.nan, result)
    return np.where(x == 0, np.copysign(1.0, x), np.where(np.isnan(x), x, result))


@computes_op("gamma")
def gamma(x: Any) -> Any:
    """The gamma function."""
    result = gammasgn(x) * np.exp(gammaln(x))
    return np.where((x < 0) & (np.floor(x) == x), np.nan, result)


@computes_op("rgamma")
def _rgamma(x):
    pole = (x <= 0) & (np.floor(x) == x)
    inner = np.where(pole, 1.0, x)
    return np.where(pole, 0.0, gammasgn(inner) * np.exp(-gammaln(inner)))


@computes_op("psi")
def psi(x: Any) -> Any:
    """The derivative of log gamma."""
    above = x > 0
    y = np.where(above, x, 1 - x)
    total = 0 * y
    for k in range(10):
        total = total - 1 / (y + k)
    y = y + 10
    r, series = 1 / (y * y), 0
    for k in range(10, 0, -1):
        series = (series + _BERNOULLI[k - 1] / (2 * k)) * r
    direct = total + np.log(y) - 0.5 / y - series
    pole = np.floor(x) == x
    rest = x - np.round(x)
    turned = np.tan(math.pi * np.where(pole, 0.25, rest))
    reflected = np.where(pole, np.nan, direct - math.pi / turned)
    result = np.where(above, direct, reflected)
    result = np.where(np.isposinf(x), x, result)
    return np.where(x == 0, -np.copysign(np.inf, x), result)


@computes_op("zeta")
def zeta(s: Any, q: Any) -> Any:
    """The sum of (k + q)**-s, by the formula of Euler and Maclaurin after 12 terms."""
    total = 0
    for k in range(12):
        total = total + np.power(q + k, -s)
    y = q + 12
    last = np.power(y, -s)
    total = total + last * y / (s - 1) + 0.5 * last
    factor, r = s * last / y, 1 / (y * y)
    for k in range(1, 11):
        total = total + factor * (_BERNOULLI[k - 1] / math.factorial(2 * k))
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) * r
    return np.where(
        s == 1,
        np.inf,
        np.where(s < 1, np.nan, np.where(q <= 0, _zeta_left_of_zero(s, q, total), total)),
    )


def _zeta_left_of_zero(s, q, total):
    """The values left of 0: poles, and the sum where powers are real and it is accurate."""
    is_real = (s == np.floor(s)) & (q > -4)
    return np.where(q == np.floor(q), np.inf, np.where(is_real, total, np.nan))


@computes_op("riemann_zeta")
def _riemann_zeta(s):
    turned = s < -1
    t = np.where(turned, 1 - s, s)
    direct = _zeta_from_one(np.where(t == 1, 2.0, t))
    angle = _sin_pi(0.5 * s)
    power = np.exp(s * math.log(2 * math.pi) + gammaln(t)) / math.pi
    result = np.where(turned, power * angle * direct, np.where(s == 1, np.inf, direct))
    return np.where(s == 0, -0.5, result)


def _zeta_from_one(s):
    """Riemann's zeta function for s from -1 on."""
    total = 1.0 + 0 * s
    for k in range(2, 13):
        total = total + np.exp(-s * math.log(k))
    last = np.exp(-s * math.log(13.0))
    total = total + last * 13.0 / (s - 1) + 0.5 * last
    factor = s * last / 13.0
    for k in range(1, 11):
        total = total + factor * (_BERNOULLI[k - 1] / math.factorial(2 * k))
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) / 169.0
    return total


@computes_op("zetac")
def _zetac(s):
    return _riemann_zeta(s) - 1


@computes_op("polygamma")
def _polygamma(x, *, n):
    if n == 0:
        return psi(x)
    sign = -1.0 if n % 2 == 0 else 1.0
    return sign * float(math.factorial(n)) * zeta(n + 1.0 + 0 * x, x)


# ---- incomplete gamma functions ----


def _incomplete_gammas(a, x):
    """(lower, upper) regularized incomplete gamma functions.

    By the series for x below a + 1 (Abramowitz and Stegun, 6.5.29), else by Legendre's continued
    fraction.
    """
    inside = (a > 0) & (x > 0) & ~np.isinf(x)
    a, x = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    weight = np.exp(a * np.log(x) - x - gammaln(a))
    is_low = x < a + 1
    lower = weight * _lower_series(a, np.where(is_low, x, a))
    upper = weight * _upper_fraction(a, np.where(is_low, a + 1, x))
    return np.where(is_low, lower, 1 - upper), np.where(is_low, 1 - lower, upper)


def _lower_series(a, x):
    """The sum of x**n / (a (a + 1) ... (a + n))."""

    def step(state):
        k, term, total = state
        term = term * (x / (a + k))
        return k + 1.0, term, total + term

    first = 1 / a + 0 * x
    state = (np.asarray(1.0, first.dtype), first, first)
    state = while_loop(lambda s: (s[1] > 1e-17 * s[2]).any() & (s[0] < 1e5), step, state)
    return state[2]


def _upper_fraction(a, x):
    """Legendre's continued fraction, by the method of Lentz."""
    tiny = 1e-30

    def step(state):
        k, b, c, d, h, _ = state
        factor = -k * (k - a)
        b = b + 2.0
        d = factor * d + b
        d = 1 / np.where(np.abs(d) < tiny, tiny, d)
        c = b + factor / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        return k + 1.0, b, c, d, h * (d * c), np.abs(d * c - 1)

    b = x + 1 - a
    d = 1 / b
    state = (np.asarray(1.0, b.dtype), b, 1 / tiny + 0 * b, d, d, 1.0 + 0 * b)
    state = while_loop(lambda s: (s[5] > 1e-16).any() & (s[0] < 1e5), step, state)
    return state[4]


def _border_values(a, x, inner, at_zero: float):
    """The values at the borders of the domain."""
    inner = np.where(x == 0, at_zero, np.where(np.isposinf(x), 1 - at_zero, inner))
    return np.where((a < 0) | (x < 0) | np.isnan(a) | np.isnan(x), np.nan, inner)


@computes_op("gammainc")
def gammainc(a: Any, x: Any) -> Any:
    """The lower regularized incomplete gamma function."""
    result = np.where(a == 0, 1.0, _incomplete_gammas(a, x)[0])
    return np.where((a == 0) & (x > 0), 1.0, _border_values(a, x, result, 0.0))


@computes_op("gammaincc")
def gammaincc(a: Any, x: Any) -> Any:
    """The upper regularized incomplete gamma function."""
    result = np.where(a == 0, 0.0, _incomplete_gammas(a, x)[1])
    return np.where((a == 0) & (x > 0), 0.0, _border_values(a, x, result, 1.0))


def _inverse_incomplete_gamma(a, p, q):
    """The x at which the incomplete gamma functions are p and q = 1 - p.

    By bisection of log(x), then two steps of Newton's method.
    """
    high = np.log(a + 40 * np.sqrt(a) + 800)
    state = (np.asarray(0, np.int64), -760.0 / np.minimum(a, 1.0) + 0 * p, high + 0 * p)

    def halve(state):
        k, low, high = state
        middle = 0.5 * (low + high)
        lower, upper = _incomplete_gammas(a, np.exp(np.maximum(middle, -740.0)))
        is_low = np.where(p < 0.5, lower < p, upper > q)
        return k + 1, np.where(is_low, middle, low), np.where(is_low, high, middle)

    _, low, high = while_loop(lambda s: s[0] < 48, halve, state)
    x = np.exp(np.maximum(0.5 * (low + high), -740.0))
    for _ in range(2):
        lower, upper = _incomplete_gammas(a, x)
        gap = np.where(p < 0.5, lower - p, q - upper)
        x = x * np.exp(-np.clip(gap / np.exp(a * np.log(x) - x - gammaln(a)), -1.0, 1.0))
    return x


def _checked_inverse(a, p, q):
    a, p, q = (v.astype(np.float64) for v in (a, p, q))  # the bisection needs the range
    inside = (a > 0) & (p > 0) & (q > 0)
    result = _inverse_incomplete_gamma(
        np.where(inside, a, 1.0), np.where(inside, p, 0.5), np.where(inside, q, 0.5)
    )
    outside = np.where((a > 0) & (p == 0), 0.0, np.where((a > 0) & (q == 0), np.inf, np.nan))
    return np.where(inside, result, outside)


@computes_op("gammaincinv")
def _gammaincinv(a, p):
    return _checked_inverse(a, p, 1 - p)


@computes_op("gammainccinv")
def gammainccinv(a: Any, q: Any) -> Any:
    """The inverse of ``gammaincc`` with respect to its second argument."""
    return _checked_inverse(a, 1 - q, q)


@computes_op("gamma_slope")
def _gamma_slope(a, x, *, order=1):
    """See ``letir.ops.special.gamma_gradient``."""
    inside = (a > 0) & (x > 0) & (a <= 1e6)
    near, y = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    start = np.log(y) - psi(near)
    first = y / near

    def step(state):
        shift, ratio, level, curve, by_a, twice = state
        term = ratio * level
        by_a, twice = by_a + term, twice + ratio * (level * level - curve)
        shift = shift + 1
        state = (ratio * (y / shift), level - 1 / shift, curve - 1 / shift**2, by_a, twice)
        return (shift, *state)

    def continues(state):
        shift, ratio, level, _, by_a, _ = state
        small = ratio * (1 + level * level) < 1e-17 * (1 + np.abs(by_a))
        return ~((shift > y) & small).all()

    trigamma = zeta(2.0 + 0 * near, near)
    state = (near + 0 * y, first, start - 1 / near, trigamma - 1 / near**2, 0 * first, 0 * first)
    *_, by_a, twice = while_loop(continues, step, state)
    far = (x - a) / np.where(a > 0, a, 1.0)
    if order == 1:
        beyond, slope = 1 + far / 2 - (far * far - 1 / np.maximum(a, 1.0)) / 6, -by_a
    else:
        beyond, slope = -x / (2 * np.maximum(a, 1.0) ** 2), start * by_a - twice
    slope = np.where(a > 1e6, beyond, slope)
    return np.where(x > 0, np.where(a > 0, slope, np.nan), 0.0)


@computes_op("expn")
def _expn(n, x):
    n, x = n + 0 * x, x + 0.0 * n
    above = np.where(x > 1, x, 2.0)
    far = np.exp(-above) * _upper_fraction(1 - n, above)
    near = np.where((x > 0) & (x <= 1), x, 0.5)

    def step(state):
        k, last, result = state
        last = (np.exp(-near) - near * last) / k
        return k + 1.0, last, np.where(n == k + 1, last, result)

    first = exp1(near)
    result = np.where(n == 0, np.exp(-near) / near, first)
    state = (np.asarray(1.0, first.dtype), first, result)
    *_, result = while_loop(lambda s: (n > s[0]).any() & (s[0] < 1e4), step, state)
    at_zero = np.where(n > 1, 1 / np.where(n > 1, n - 1, 1.0), np.inf)
    result = np.where(x > 1, far, np.where(x > 0, result, np.where(x == 0, at_zero, np.nan)))
    return np.where(n < 0, np.nan, result)

"""Formulas of distributions of ``scipy.stats`` where SciPy's own choose between cases by value, or
have no derivative where the distribution has one; and nodes for integrals of densities.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.scipy.namespace import find_in_scipy

_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)


def _special(name: str, *operands: Any) -> Any:
    return find_in_scipy("special", name)(*operands)


def _gammaln(x: Any) -> Any:
    return _special("gammaln", x)


def _log1p_over(c: Any, x: Any) -> Any:
    """log(1 + c x) / c; near c x = 0 its series, so that c may be 0."""
    u = c * x
    is_near = np.abs(u) < 0.02
    small = np.where(is_near, u, 0.0)
    series: Any = 0.0
    for k in range(10, 0, -1):
        series = 1.0 / k - small * series
    return np.where(
        is_near, x * series, np.log1p(np.where(is_near, 1.0, u)) / np.where(c == 0, 1.0, c)
    )


def _norm_logpdf(x: Any) -> Any:
    return -0.5 * (x * x) - _LOG_ROOT_TWO_PI


def _log_normal_mass(a: Any, b: Any) -> Any:
    """The logarithm of the probability of the interval from a to b of the normal distribution."""
    is_right = a > 0
    low, high = np.where(is_right, -b, a), np.where(is_right, -a, b)
    upper = _special("log_ndtr", high)
    is_open = low == -np.inf
    lower = _special("log_ndtr", np.where(is_open, 0.0, low))
    return upper + np.where(is_open, 0.0, np.log1p(-np.exp(np.where(is_open, -1.0, lower - upper))))


# ---- log densities in the standardised variable ----


def _crystalball(x: Any, beta: Any, m: Any) -> Any:
    ndtr = _special("ndtr", beta)
    tail = m / beta / (m - 1) * np.exp(-0.5 * beta**2) + np.sqrt(2 * np.pi) * ndtr
    is_body = x > -beta
    far = np.where(is_body, 1.0, m / beta - beta - x)
    power = m * np.log(m / beta) - 0.5 * beta**2 - m * np.log(far)
    return np.where(is_body, -0.5 * np.where(is_body, x, 0.0) ** 2, power) - np.log(tail)


def _genextreme(x: Any, c: Any) -> Any:
    level = _log1p_over(-c, x)  # minus log(1 - c x) / c
    return -np.exp(-level) - level + c * level


def _genhalflogistic(x: Any, c: Any) -> Any:
    level = -_log1p_over(-c, x)
    return np.log(2.0) + level - c * level - 2 * np.log1p(np.exp(level))


def _kappa4(x: Any, h: Any, k: Any) -> Any:
    level = -_log1p_over(-k, x)
    return (1 - k) * level + (1 - h) * -_log1p_over(-h, np.exp(level))


def _pearson3(x: Any, skew: Any) -> Any:
    is_normal = np.abs(skew) < 1.6e-5  # as in SciPy, which takes the normal density there
    beta = 2.0 / np.where(is_normal, 1.0, skew)
    alpha = beta * beta
    place = np.where(is_normal, 1.0, beta * (x + beta))
    level = np.log(np.abs(beta)) + (alpha - 1) * np.log(place) - place - _gammaln(alpha)
    return np.where(is_normal, _norm_logpdf(x) + skew * (x**3 - 3 * x) / 6, level)


def _trapezoid(x: Any, c: Any, d: Any) -> Any:
    left, right = np.where(x < c, x / np.where(c == 0, 1.0, c), 1.0), np.where(x > d, 1 - x, 1.0)
    right = right / np.where((x > d) & (d < 1), 1 - d, 1.0)
    return np.log(left) + np.log(right) + np.log(2.0) - np.log(d - c + 1)


def _triang(x: Any, c: Any) -> Any:
    is_left = x < c
    left = np.where(is_left, x, 1.0) / np.where(is_left, c, 1.0)
    right = np.where(is_left, 1.0, 1 - x) / np.where(is_left, 1.0, np.where(c == 1, 1.0, 1 - c))
    return np.log(2.0) + np.log(left) + np.log(right)


LOG_DENSITIES: dict[str, Callable] = {
    "burr": lambda x, c, d: (
        np.log(c * d) - (c + 1) * np.log(x) - (d + 1) * np.logaddexp(0.0, -c * np.log(x))
    ),
    "cosine": lambda x: np.log1p(np.cos(x)) - np.log(2 * np.pi),
    "crystalball": _crystalball,
    "dgamma": lambda x, a: (
        _special("xlogy", a - 1, np.abs(x)) - np.abs(x) - np.log(2.0) - _gammaln(a)
    ),
    "fisk": lambda x, c: np.log(c) - (c + 1) * np.log(x) - 2 * np.logaddexp(0.0, -c * np.log(x)),
    "genextreme": _genextreme,
    "gengamma": lambda x, a, c: np.log(np.abs(c)) + (c * a - 1) * np.log(x) - x**c - _gammaln(a),
    "genhalflogistic": _genhalflogistic,
    "genpareto": lambda x, c: -(1 + c) * _log1p_over(c, x),
    "gibrat": lambda x: -0.5 * np.log(x) ** 2 - np.log(x) - _LOG_ROOT_TWO_PI,
    "kappa4": _kappa4,
    "lognorm": lambda x, s: -0.5 * (np.log(x) / s) ** 2 - np.log(s * x) - _LOG_ROOT_TWO_PI,
    "pearson3": _pearson3,
    "recipinvgauss": lambda x, mu: (
        -((1 - mu * x) ** 2) / (2 * x * mu**2) - 0.5 * np.log(x) - _LOG_ROOT_TWO_PI
    ),
    "skewnorm": lambda x, a: np.log(2.0) + _norm_logpdf(x) + _special("log_ndtr", a * x),
    "trapezoid": _trapezoid,
    "triang": _triang,
    "truncnorm": lambda x, a, b: _norm_logpdf(x) - _log_normal_mass(a, b),
    "truncpareto": lambda x, b, c: np.log(-b / np.expm1(-b * np.log(c))) - (b + 1) * np.log(x),
}

# ---- supports that depend on shape parameters ----


def _kappa4_support(h: Any, k: Any) -> tuple:
    """The bounds of the support: see ``scipy.stats.kappa4``."""
    plain_h, plain_k = np.where(h > 0, h, 1.0), np.where(k == 0, 1.0, k)
    low = np.where(k == 0, np.log(plain_h), (1 - plain_h**-plain_k) / plain_k)
    low = np.where(h > 0, low, np.where(k < 0, 1 / plain_k, -np.inf))
    return low, np.where(k > 0, 1 / plain_k, np.inf)


def _pearson3_support(skew: Any) -> tuple:
    """The bounds of the support: a half-line, unless the distribution is normal."""
    end = -2.0 / np.where(skew == 0, 1.0, skew)
    return np.where(skew > 0, end, -np.inf), np.where(skew < 0, end, np.inf)


SUPPORTS: dict[str, Callable] = {
    "genpareto": lambda c: (0.0, np.where(c < 0, -1 / np.where(c < 0, c, -1.0), np.inf)),
    "kappa4": _kappa4_support,
    "pearson3": _pearson3_support,
}

# ---- (distribution function, survival function) ----


def _both(lower: Callable) -> tuple:
    """Both tails, from one that is accurate enough for derivatives."""
    return lower, lambda *operands: 1.0 - lower(*operands)


def _binom(k: Any, n: Any, p: Any) -> tuple:
    return n - np.floor(k), np.floor(k) + 1, 1.0 - p


def _nbinom(k: Any, n: Any, p: Any) -> tuple:
    return n + 0.0 * k, np.floor(k) + 1, p


def _crystalball_tail(x: Any, beta: Any, m: Any) -> Any:
    edge = m / beta / (m - 1) * np.exp(-0.5 * beta**2)
    ndtr, root = lambda z: _special("ndtr", z), np.sqrt(2 * np.pi)
    is_body = x > -beta
    far = np.where(is_body, 1.0, (m / beta - beta - x) * beta / m)
    power = np.exp((1 - m) * np.log(far))
    value = np.where(is_body, edge + root * (ndtr(x) - ndtr(-beta)), edge * power)
    return value / (edge + root * ndtr(beta))


def _laplace_asymmetric(x: Any, kappa: Any) -> Any:
    is_right = x >= 0
    right, left = np.where(is_right, x, 0.0), np.where(is_right, 0.0, x)
    total = kappa + 1 / kappa
    upper, lower = np.exp(-kappa * right) / kappa, np.exp(left / kappa) * kappa
    return np.where(is_right, 1 - upper / total, lower / total)


def _gennorm(x: Any, beta: Any) -> Any:
    size = np.where(x == 0, 1.0, np.abs(x)) ** beta
    half = 0.5 * np.sign(x)
    return 0.5 + half - half * _special("gammaincc", 1.0 / beta, size)


def _dgamma(x: Any, a: Any) -> Any:
    half = 0.5 * np.sign(x)
    return 0.5 + half - half * _special("gammaincc", a, np.abs(x))


def _dweibull(x: Any, c: Any) -> Any:
    half = 0.5 * np.sign(x)
    return 0.5 + half - half * np.exp(-(np.where(x == 0, 1.0, np.abs(x)) ** c))


def _genhalflogistic_tail(x: Any, c: Any) -> Any:
    return np.tanh(0.5 * _log1p_over(-c, x))


def _gengamma_tail(x: Any, a: Any, c: Any) -> Any:
    power = x**c
    return np.where(c > 0, _special("gammainc", a, power), _special("gammaincc", a, power))


def _loggamma(x: Any, c: Any, name: str) -> Any:
    is_far = x < -100  # the first term of the series is enough, where exp(x) may underflow
    value = _special(name, c, np.exp(np.where(is_far, 0.0, x)))
    far = np.exp(c * x - _gammaln(c + 1))
    return np.where(is_far, far if name == "gammainc" else 1 - far, value)


def _pearson3_tail(x: Any, skew: Any) -> Any:
    is_normal = np.abs(skew) < 1.6e-5
    beta = 2.0 / np.where(is_normal, 1.0, skew)
    alpha, place = beta * beta, np.where(is_normal, 1.0, beta * (x + beta))
    lower, upper = _special("gammainc", alpha, place), _special("gammaincc", alpha, place)
    normal = _special("ndtr", x) - skew * (x * x - 1) / 6 * np.exp(_norm_logpdf(x))
    return np.where(is_normal, normal, np.where(skew > 0, lower, upper))


def _trapezoid_tail(x: Any, c: Any, d: Any) -> Any:
    left = x * x / np.where(c == 0, 1.0, c) / 2
    right = (1 - x) ** 2 / np.where(d == 1, 1.0, 1 - d) / 2
    top = 2 / (d - c + 1)
    return np.where(x < c, top * left, np.where(x > d, 1 - top * right, top * (x - c / 2)))


def _triang_tail(x: Any, c: Any) -> Any:
    left, right = x * x / np.where(c == 0, 1.0, c), (1 - x) ** 2 / np.where(c == 1, 1.0, 1 - c)
    return np.where(x < c, left, 1 - right)


def _dlaplace_tail(k: Any, a: Any) -> Any:
    is_right = k >= 0
    right, left = np.where(is_right, k, 0.0), np.where(is_right, 0.0, k)
    base = 1 + np.exp(-a)
    return np.where(is_right, 1 - np.exp(-a * (right + 1)) / base, np.exp(a * left) / base)


TAILS: dict[str, tuple] = {
    "bernoulli": _both(lambda k, p: 1.0 - p + 0.0 * k),
    "dlaplace": _both(_dlaplace_tail),
    # SciPy computes incomplete beta functions in C++
    "binom": _both(lambda *operands: _special("betainc", *_binom(*operands))),
    "nbinom": _both(lambda *operands: _special("betainc", *_nbinom(*operands))),
    "betaprime": (
        lambda x, a, b: _special("betainc", a, b, x / (1 + x)),
        lambda x, a, b: _special("betainc", b, a, 1 / (1 + x)),
    ),
    "crystalball": _both(_crystalball_tail),
    "dgamma": _both(_dgamma),
    "dweibull": _both(_dweibull),
    "genextreme": _both(lambda x, c: np.exp(-np.exp(-_log1p_over(-c, x)))),
    "gengamma": _both(_gengamma_tail),
    "genhalflogistic": _both(_genhalflogistic_tail),
    "gennorm": _both(_gennorm),
    "genpareto": (
        lambda x, c: -np.expm1(-_log1p_over(c, x)),
        lambda x, c: np.exp(-_log1p_over(c, x)),
    ),
    "kappa4": _both(lambda x, h, k: np.exp(-_log1p_over(-h, np.exp(-_log1p_over(-k, x))))),
    "laplace_asymmetric": _both(_laplace_asymmetric),
    "loggamma": (
        lambda x, c: _loggamma(x, c, "gammainc"),
        lambda x, c: _loggamma(x, c, "gammaincc"),
    ),
    "pearson3": _both(_pearson3_tail),
    "trapezoid": _both(_trapezoid_tail),
    "triang": _both(_triang_tail),
    "truncnorm": (
        lambda x, a, b: np.exp(_log_normal_mass(a, x) - _log_normal_mass(a, b)),
        lambda x, a, b: np.exp(_log_normal_mass(x, b) - _log_normal_mass(a, b)),
    ),
    "truncpareto": _both(lambda x, b, c: np.expm1(-b * np.log(x)) / np.expm1(-b * np.log(c))),
}

MOMENTS: dict[str, Callable] = {  # (mean, variance), which SciPy computes in C++
    "nbinom": lambda n, p: (n * (1 - p) / p, n * (1 - p) / (p * p)),
    "poisson": lambda mu: (mu, mu),
}

# ---- integrals ----

_STEP = 1 / 32
_GRID = _STEP * np.arange(-144, 145)
_RATIO = np.exp(-np.pi * np.sinh(_GRID))
_FINITE = 1 / (1 + _RATIO), _STEP * np.pi * np.cosh(_GRID) * _RATIO / (1 + _RATIO) ** 2
_SIZES = np.exp(np.pi / 2 * np.sinh(_GRID))
_INFINITE = _SIZES, _STEP * np.pi / 2 * np.cosh(_GRID) * _SIZES


def tail_nodes(z: Any, size: Any, beyond: Any, bounds: tuple) -> tuple:
    """(nodes, weights) of integrals from each z to an end of the support, along a new last axis.

    Double exponential quadrature (Takahasi and Mori, 1974), which allows for singularities at the
    ends. ``size``: lengths of the tails; ``beyond``: whether they are above z; ``bounds``: the
    support, which is known.
    """
    sides = []
    z, size = np.expand_dims(z, -1), np.expand_dims(size, -1)
    for end, sign in zip(bounds, (-1.0, 1.0), strict=True):
        bound = np.expand_dims(end, -1) if np.ndim(end) else np.asarray(end)
        if np.all(np.isfinite(bound)):
            parts, weights = _FINITE
            sides.append((bound + (z - bound) * parts, (z - bound) * (-sign * weights)))
        elif not np.any(np.isfinite(bound)):
            parts, weights = _INFINITE
            sides.append((z + sign * size * parts, size * weights))
        else:
            raise ValueError("some of the distributions have a bounded support, and others do not")
    beyond = np.expand_dims(beyond, -1) if np.ndim(beyond) else beyond
    (low, low_weights), (high, high_weights) = sides
    return np.where(beyond, high, low), np.where(beyond, high_weights, low_weights)

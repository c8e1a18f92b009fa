"""Error functions, the normal distribution, logarithms of ratios, and exponential integrals.

erf, erfc and erfcx are Cody's rational approximations (Math. Comp. 23, 1969), to 1e-16.
"""

import math
from typing import Any

import numpy as np

from letir.onnx.exporting.node_graph import computes_op

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2 = math.sqrt(2)
_A: tuple[float, ...] = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2)
_A = (*_A, 3.77485237685302021e2, 3.20937758913846947e3)
_B: tuple[float, ...] = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3)
_B = (*_B, 2.84423683343917062e3)
_C: tuple[float, ...] = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0)
_C = (*_C, 6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2)
_C = (*_C, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3)
_D: tuple[float, ...] = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2)
_D = (*_D, 1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3)
_D = (*_D, 3.43936767414372164e3, 1.23033935480374942e3)
_P: tuple[float, ...] = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1)
_P = (*_P, 1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4)
_Q: tuple[float, ...] = (1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1)
_Q = (*_Q, 6.05183413124413191e-2, 2.33520497626869185e-3)


def polynomial(x: Any, coefficients: Any) -> Any:
    """A polynomial by Horner's rule, from the highest power down."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _small_erf(x):
    """erf where abs(x) is at most 0.47."""
    square = x * x
    return x * (polynomial(square, _A) / polynomial(square, _B))


def _scaled_erfc(y):
    """exp(y**2) erfc(y) for y from 0.47 on."""
    near = np.minimum(y, 4)
    middle = polynomial(near, _C) / polynomial(near, _D)
    far = np.maximum(y, 4)
    r = 1 / (far * far)
    rest = r * (polynomial(r, _P) / polynomial(r, _Q))
    return np.where(y > 4, (1 / _ROOT_PI - rest) / far, middle)


def _exp_minus_square(y):
    """exp(-y**2), without the rounding error of the square."""
    y = np.minimum(y, 30)
    short = np.floor(y * 16) / 16
    return np.exp(-short * short) * np.exp(-(y - short) * (y + short))


@computes_op("erf")
def erf(x: Any) -> Any:
    """2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    y = np.abs(x)
    tail = 1 - _exp_minus_square(y) * _scaled_erfc(np.maximum(y, 0.46875))
    return np.where(y <= 0.46875, _small_erf(np.clip(x, -0.5, 0.5)), np.copysign(tail, x))


@computes_op("erfc")
def erfc(x: Any) -> Any:
    """1 - erf(x), also where that is tiny."""
    y = np.abs(x)
    tail = _exp_minus_square(y) * _scaled_erfc(np.maximum(y, 0.46875))
    tail = np.where(x < 0, 2 - tail, tail)
    return np.where(y <= 0.46875, 1 - _small_erf(np.clip(x, -0.5, 0.5)), tail)


@computes_op("erfcx")
def erfcx(x: Any) -> Any:
    """exp(x**2) erfc(x)."""
    y = np.abs(x)
    near = np.minimum(y, 0.5)
    small = np.exp(near * near) * (1 - _small_erf(np.clip(x, -0.5, 0.5)))
    tail = _scaled_erfc(np.maximum(y, 0.46875))
    square = np.minimum(x, 0.0) ** 2
    tail = np.where(x < 0, 2 * np.exp(square) - tail, tail)
    return np.where(y <= 0.46875, small, tail)


@computes_op("dawsn")
def dawsn(x: Any) -> Any:
    """Dawson's integral, by Rybicki's sum (Computers in Physics 3, 1989) with steps of 0.2."""
    infinite = np.isinf(x)
    x = np.where(infinite, 1.0, x)
    center = 2 * np.round(x / 0.4)
    rest = x - center * 0.2
    total = 0
    for n in range(-33, 35, 2):
        total = total + np.exp(-((rest - n * 0.2) ** 2)) / (n + center)
    s = np.minimum(np.abs(x), 0.3) ** 2
    series = 1.0
    for k in range(12, 0, -1):
        series = 1 - series * s * (2 / (2 * k + 1))
    result = np.where(np.abs(x) < 0.2, x * series, total * (1 / _ROOT_PI))
    return np.where(infinite, 0.0, result)


@computes_op("erfi")
def _erfi(x):
    result = 2 / _ROOT_PI * np.exp(x * x) * dawsn(x)
    return np.where(np.abs(x) > 27, np.copysign(np.inf, x), result)


# ---- the normal distribution ----


@computes_op("ndtr", "normal_cdf")
def ndtr(x: Any) -> Any:
    """The distribution function of the normal distribution."""
    return 0.5 * erfc(-x * (1 / _ROOT_2))


@computes_op("log_ndtr")
def log_ndtr(x: Any) -> Any:
    """The logarithm of ``ndtr``, accurate far below 0 too."""
    low = np.minimum(x, 0.0)
    below = np.log(0.5 * erfcx(-low * (1 / _ROOT_2))) - 0.5 * low * low
    return np.where(x < 0, below, np.log1p(-0.5 * erfc(np.maximum(x, 0.0) * (1 / _ROOT_2))))


def _upper_quantile(log_p):
    """The x >= 0 at which the upper tail of the normal distribution has this logarithm.

    Abramowitz and Stegun, 26.2.23, and Newton's steps for the logarithm.
    """
    t = np.sqrt(np.maximum(-2 * log_p, 1.38))
    x = t - polynomial(t, (0.010328, 0.802853, 2.515517)) / polynomial(
        t, (0.001308, 0.189269, 1.432788, 1.0)
    )
    for _ in range(4):
        mills = math.sqrt(math.pi / 2) * erfcx(x * (1 / _ROOT_2))
        x = x + (log_ndtr(-x) - log_p) * mills
    return x


@computes_op("ndtri")
def _ndtri(p):
    tail = np.minimum(p, 1 - p)
    inside = (p > 0) & (p < 1)
    x = _upper_quantile(np.log(np.where(inside, tail, 0.25)))
    outside = np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.nan))
    return np.where(inside, np.where(p < 0.5, -x, x), outside)


@computes_op("ndtri_exp")
def _ndtri_exp(y):
    low = y < -math.log(2)
    inside = y < 0
    upper = np.log(-np.expm1(np.where(low | ~inside, -1.0, y)))
    x = _upper_quantile(np.where(low, y, upper))
    outside = np.where(y == 0, np.inf, np.nan)
    return np.where(inside, np.where(low, -x, x), outside)


@computes_op("erfinv")
def _erfinv(y):
    size = np.abs(y)
    inside = size < 1
    x = _upper_quantile(np.log(np.where(inside, 0.5 * (1 - size), 0.25))) * (1 / _ROOT_2)
    near = np.minimum(x, 1.0)  # the digits of small results
    for _ in range(2):
        near = near - (erf(near) - np.minimum(size, 0.84)) * (0.5 * _ROOT_PI) * np.exp(near * near)
    x = np.copysign(np.where(size < 0.5, near, x), y)
    return np.where(inside, x, np.where(size == 1, np.copysign(np.inf, y), np.nan))


@computes_op("erfcinv")
def _erfcinv(p):
    inside = (p > 0) & (p < 2)
    tail = np.where(inside, 0.5 * np.minimum(p, 2 - p), 0.25)
    x = _upper_quantile(np.log(tail)) * (1 / _ROOT_2)
    outside = np.where(p == 0, np.inf, np.where(p == 2, -np.inf, np.nan))
    return np.where(inside, np.where(p <= 1, x, -x), outside)


# ---- logarithms and exponentials ----


@computes_op("logit")
def _logit(x):
    return np.log(x) - np.log1p(-x)


@computes_op("log_expit")
def _log_expit(x):
    return np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x)))


@computes_op("exprel")
def _exprel(x):
    zero = x == 0
    result = np.expm1(x) / np.where(zero, 1.0, x)
    return np.where(zero, 1.0, np.where(np.isposinf(x), x, result))


@computes_op("cosm1")
def _cosm1(x):
    half = np.sin(0.5 * x)
    return -2 * half * half


@computes_op("xlogy")
def _xlogy(x, y):
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, 0.0, x * np.log(np.where(zero, 1.0, y)))


@computes_op("xlog1py")
def _xlog1py(x, y):
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, 0.0, x * np.log1p(np.where(zero, 0.0, y)))


@computes_op("entr")
def _entr(x):
    result = -x * np.log(np.where(x > 0, x, 1.0))
    return np.where(np.isnan(x) | (x > 0), result, np.where(x == 0, 0.0, -np.inf))


@computes_op("rel_entr")
def _rel_entr(x, y):
    inside = (x > 0) & (y > 0)
    result = x * np.log(np.where(inside, x, 1.0) / np.where(inside, y, 1.0))
    result = np.where(inside, result, np.where((x == 0) & (y >= 0), 0.0, np.inf))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, result)


@computes_op("special_kl_div")
def _kl_div(x, y):
    return _rel_entr(x, y) - x + y


@computes_op("huber")
def _huber(delta, r):
    size = np.abs(r)
    result = np.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return np.where(delta < 0, np.inf, result)


@computes_op("pseudo_huber")
def _pseudo_huber(delta, r):
    ratio = r / np.where(delta == 0, 1.0, delta)
    square = ratio * ratio
    result = delta * delta * (square / (1 + np.sqrt(1 + square)))
    return np.where(delta < 0, np.inf, np.where((delta == 0) | (r == 0), 0.0, result))


# ---- exponential integrals and others ----

_EULER = 0.57721566490153286061


def _integral_series(x, sign: int):
    """The sum of (sign x)**k / (k k!) from k = 1 on."""
    term, total = 1.0 + 0 * x, 0 * x
    for k in range(1, 26 if sign < 0 else 130):
        term = term * (sign * x) * (1 / k)
        total = total + term * (1 / k)
    return total


@computes_op("exp1")
def exp1(x: Any) -> Any:
    """The integral of exp(-t) / t from x on."""
    low, high = np.clip(x, 1e-300, 1.0), np.clip(x, 1.0, 1e6)
    series = -_EULER - np.log(low) - _integral_series(low, -1)
    fraction = 0 * high  # from the back; 120 steps suffice from 1 on
    for k in range(120, 0, -1):
        fraction = k / (1 + k / (high + fraction))
    result = np.where(x <= 1, series, np.exp(-high) / (high + fraction))
    return np.where(x > 0, result, np.where(x == 0, np.inf, np.nan))


@computes_op("expi")
def _expi(x):
    middle = np.clip(x, 1e-300, 45.0)
    series = _EULER + np.log(middle) + _integral_series(middle, 1)
    far = np.maximum(x, 45.0)
    tail = 1.0
    for k in range(40, 0, -1):
        tail = 1 + tail * k / far
    result = np.where(x <= 45, series, np.exp(far) / far * tail)
    result = np.where(np.isposinf(x), x, result)
    below = -exp1(np.where(x < 0, -x, 1.0))
    return np.where(x > 0, result, np.where(x == 0, -np.inf, np.where(np.isnan(x), x, below)))


@computes_op("spence")
def _spence(x):
    high = x > 1.5
    z = np.where(high, 1 / np.where(high, x, 1.0), x)
    low = z < 0.5
    w = np.clip(np.where(low, z, 1 - z), -0.5, 0.5)
    total = 0 * w
    for k in range(56, 0, -1):  # the sum of w**k / k**2
        total = w * (1 / k**2 + total)
    log = np.log(np.where(x > 0, x, 1.0))
    below = np.log(np.where(low & (z > 0), z, 1.0)) * np.log1p(-np.where(low, z, 0.0))
    result = np.where(low, math.pi**2 / 6 - below - total, total)
    result = np.where(high, -0.5 * log * log - result, result)
    result = np.where(x == 0, math.pi**2 / 6, result)
    return np.where(x < 0, np.nan, result)


@computes_op("wrightomega")
def _wrightomega(x):
    w = np.where(x > 1, x - np.log(np.maximum(x, 1.0)), np.exp(np.minimum(x, 1.0)) * 0.6)
    w = np.where(x < -2, np.exp(np.minimum(x, 1.0)), w)
    w = np.maximum(w, 1e-300)
    for _ in range(6):
        w = w * (1 + x - np.log(w)) / (1 + w)
    return np.where(x < -50, np.exp(np.minimum(x, 1.0)), np.where(np.isposinf(x), x, w))

"""Beta functions, binomial coefficients, incomplete beta functions and Student's distribution."""

from typing import Any

import numpy as np

from letir.onnx.exporting.node_graph import computes_op
from letir.onnx.exporting.programs.gamma_programs import gammaln, gammasgn
from letir.tracing.control_flow.while_and_fori import while_loop


@computes_op("betaln")
def betaln(a: Any, b: Any) -> Any:
    """log(abs(beta(a, b)))."""
    return gammaln(a) + gammaln(b) - gammaln(a + b)


@computes_op("beta")
def _beta(a, b):
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * np.exp(betaln(a, b))


@computes_op("binom")
def _binom(n, k):
    sign = gammasgn(n + 1) * gammasgn(k + 1) * gammasgn(n - k + 1)
    size = np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
    whole = np.floor(k) == k
    result = np.where(np.isnan(sign), np.where(whole & (k < 0), 0.0, np.nan), sign * size)
    rounded = np.where((np.floor(n) == n) & whole & (size < 1e15), np.round(result), result)
    return np.where((n >= 0) & whole & (k > n) & (np.floor(n) == n), 0.0, rounded)


@computes_op("poch")
def _poch(z, m):
    return gammasgn(z) * gammasgn(z + m) * np.exp(gammaln(z + m) - gammaln(z))


# ---- incomplete beta functions ----


def _beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function, by the method of Lentz.

    Abramowitz and Stegun, 26.5.8.
    """
    tiny = 1e-300 if x.dtype == np.float64 else 1e-30

    def bounded(v):
        return np.where(np.abs(v) < tiny, tiny, v)

    def step(state):
        m, c, d, h, _ = state
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / bounded(1 + even * d)
        c = bounded(1 + even / c)
        h = h * (d * c)
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / bounded(1 + odd * d)
        c = bounded(1 + odd / c)
        return m + 1.0, c, d, h * (d * c), np.abs(d * c - 1)

    d = 1 / bounded(1 - (a + b) * x / (a + 1))
    state = (np.asarray(1.0, d.dtype), 1.0 + 0 * d, d, d, 1.0 + 0 * d)
    state = while_loop(lambda s: (s[4] > 1e-16).any() & (s[0] < 1e5), step, state)
    return state[3]


def _beta_parts(a, b, x, y):
    """(lower, upper) regularized incomplete beta functions at x = 1 - y."""
    turned = x > (a + 1) / (a + b + 2)
    first, second = np.where(turned, b, a), np.where(turned, a, b)
    z = np.where(turned, y, x)
    weight = np.exp(a * np.log(x) + b * np.log(y) - betaln(a, b))
    part = weight * _beta_fraction(first, second, z) / first
    return np.where(turned, 1 - part, part), np.where(turned, part, 1 - part)


def _beta_inside(a, b, x):
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    x = np.where(inside, x, 0.5)
    return inside, np.where(inside, a, 1.0), np.where(inside, b, 1.0), x


@computes_op("betainc")
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function."""
    inside, p, q, y = _beta_inside(a, b, x)
    result = _beta_parts(p, q, y, 1 - y)[0]
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    return np.where(inside, result, np.where(valid, np.where(x == 0, 0.0, 1.0), np.nan))


@computes_op("betaincc")
def _betaincc(a, b, x):
    inside, p, q, y = _beta_inside(a, b, x)
    result = _beta_parts(p, q, y, 1 - y)[1]
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    return np.where(inside, result, np.where(valid, np.where(x == 0, 1.0, 0.0), np.nan))


@computes_op("betaincinv")
def betaincinv(a: Any, b: Any, p: Any) -> Any:
    """x at which ``betainc`` is p: bisection of the logit, then two steps of Newton's."""
    a, b, p = (v.astype(np.float64) for v in (a, b, p))  # the bisection needs the range
    inside, a1, b1, p1 = _beta_inside(a, b, p)
    size = 760.0 / np.minimum(np.minimum(a1, b1), 1.0) + 0 * p1

    def both(u):
        return 1 / (1 + np.exp(-u)), 1 / (1 + np.exp(u))

    def halve(state):
        k, low, high = state
        middle = 0.5 * (low + high)
        is_low = _beta_parts(a1, b1, *both(np.clip(middle, -700.0, 700.0)))[0] < p1
        return k + 1, np.where(is_low, middle, low), np.where(is_low, high, middle)

    state = (np.asarray(0, np.int64), -size, size)
    _, low, high = while_loop(lambda s: s[0] < 48, halve, state)
    u = np.clip(0.5 * (low + high), -700.0, 700.0)
    for _ in range(2):
        x, y = both(u)
        density = np.exp(a1 * np.log(x) + b1 * np.log(y) - betaln(a1, b1))
        u = u - np.clip((_beta_parts(a1, b1, x, y)[0] - p1) / density, -1.0, 1.0)
    valid = (a > 0) & (b > 0) & (p >= 0) & (p <= 1)
    return np.where(inside, both(u)[0], np.where(valid, np.where(p == 0, 0.0, 1.0), np.nan))


@computes_op("betainccinv")
def _betainccinv(a, b, q):
    return 1 - betaincinv(b, a, q)


@computes_op("stdtr")
def _stdtr(df, t):
    tail = 0.5 * betainc(0.5 * df, 0.5 + 0 * t, df / (df + t * t))
    return np.where(t < 0, tail, 1 - tail)


@computes_op("stdtrit")
def _stdtrit(df, p):
    x = betaincinv(0.5 * df + 0 * p, 0.5 + 0 * p, 2 * np.minimum(p, 1 - p))
    size = np.sqrt(df * (1 - x) / x)
    return np.where(p < 0.5, -size, size)

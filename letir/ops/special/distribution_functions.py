"""Distribution functions in ``scipy.special``: of Student's t, F, gamma, binomial and others.

Their derivatives are those of the incomplete gamma and beta functions: Abramowitz and Stegun, 26.4,
26.5 and 26.6.
"""

import math
from typing import Any

from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import never
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import abs_, floor, sign
from letir.ops.elementwise.ufuncs import exp, log, log1p
from letir.ops.special.beta_gradient import beta_density, betainc_slope
from letir.ops.special.define import special
from letir.ops.special.density_powers import log_of_power, power_at_zero
from letir.ops.special.special_functions import betaln, gamma_by_shape, gamma_density, poch

# ---- Student's t distribution ----


def t_logpdf(z: Any, df: Any) -> Any:
    """The logarithm of the density of Student's t distribution; normal for df = inf."""
    is_normal = df == math.inf
    df = where(is_normal, 1.0, df)
    head = log(poch(0.5 * df, 0.5)) - 0.5 * (log(df) + math.log(math.pi))
    normal = -0.5 * (z * z) - 0.5 * math.log(2 * math.pi)
    return where(is_normal, normal, head - 0.5 * (df + 1) * log1p(z * z / df))


def _t_by_freedom(df, z):
    """The derivative of stdtr with respect to the degrees of freedom.

    The function is 1/2 plus or minus half an incomplete beta function, of z**2 / (df + z**2) near
    the middle and of its complement in the tails.
    """
    is_normal = df == math.inf
    df = where(is_normal, 1.0, df)
    size = abs_(z)
    square = size * size
    is_tail = square > df
    lower, upper = where(is_tail, df / (df + square), 0.5), where(is_tail, 0.0, square)
    tail = betainc_slope(0.5 * df, 0.5, lower, by_a=1, by_b=0)
    middle = betainc_slope(0.5, 0.5 * df, upper / (df + upper), by_a=0, by_b=1)
    along_beta = where(is_tail, -tail, middle) * sign(z) / 4
    along_argument = exp(t_logpdf(size, df)) * size * sign(z) / (2 * df)
    return where(is_normal, 0.0, along_beta - along_argument)


stdtr = special(
    "stdtr",
    lambda g, y, df, z: g * _t_by_freedom(df, z),
    lambda g, y, df, z: g * exp(t_logpdf(z, df)),
)
stdtrit = special(
    "stdtrit",
    lambda g, y, df, p: g * (-_t_by_freedom(df, y) / exp(t_logpdf(y, df))),
    lambda g, y, df, p: g / exp(t_logpdf(y, df)),
)

# ---- the F distribution ----


def _f_parts(dfn, dfd, x):
    """(a, b, w, 1 - w): fdtr is the incomplete beta function of a and b at w."""
    total = dfd + dfn * x
    return 0.5 * dfn, 0.5 * dfd, dfn * x / total, dfd / total


def _f_density(dfn, dfd, x):
    """The density of the F distribution."""
    a, b, w, rest = _f_parts(dfn, dfd, x)
    level = log_of_power(w, a - 1) + b * log(rest) - betaln(a, b)
    return exp(level) * power_at_zero(w, a - 1) * (dfn / (dfd + dfn * x))


def _f_by_freedom(dfn, dfd, x, *, of_first: bool):
    """The derivative of fdtr with respect to dfn or dfd; 0 at the ends of the range."""
    is_inside = (x > 0) & (x < math.inf)
    x = where(is_inside, x, 1.0)
    a, b, w, rest = _f_parts(dfn, dfd, x)
    is_high, by_first, by_second = w > 0.5, int(of_first), int(not of_first)
    low = betainc_slope(a, b, where(is_high, 0.5, w), by_a=by_first, by_b=by_second)
    high = betainc_slope(b, a, where(is_high, rest, 0.5), by_a=by_second, by_b=by_first)
    along_beta = 0.5 * where(is_high, -high, low)
    along_argument = _f_density(dfn, dfd, x) * x
    slope = along_argument / dfn if of_first else -along_argument / dfd
    return where(is_inside, along_beta + slope, 0.0)


def _f_slopes(sign: int) -> tuple:
    """The derivatives of fdtr, times a sign."""
    return (
        lambda g, y, *operands: g * (sign * _f_by_freedom(*operands, of_first=True)),
        lambda g, y, *operands: g * (sign * _f_by_freedom(*operands, of_first=False)),
        lambda g, y, *operands: g * (sign * _f_density(*operands)),
    )


def _f_quantile_slope(of_first: bool):
    """The derivative of fdtri with respect to dfn or dfd, at a fixed fdtr."""

    def term(g, y, dfn, dfd, p):
        is_inside = (y > 0) & (y < math.inf)
        y = where(is_inside, y, 1.0)
        slope = _f_by_freedom(dfn, dfd, y, of_first=of_first) / _f_density(dfn, dfd, y)
        return g * where(is_inside, -slope, 0.0)

    return term


fdtr, fdtrc = special("fdtr", *_f_slopes(1)), special("fdtrc", *_f_slopes(-1))
fdtri = special(
    "fdtri",
    _f_quantile_slope(of_first=True),
    _f_quantile_slope(of_first=False),
    lambda g, y, dfn, dfd, p: g / _f_density(dfn, dfd, y),
)

# ---- chi-squared, gamma and Poisson distributions ----


def _gamma_slopes(sign: int) -> tuple:
    """The derivatives of gdtr, times a sign, with respect to the rate a, the shape b and x."""
    return (
        lambda g, y, a, b, x: g * (sign * x * gamma_density(b, a * x)),
        lambda g, y, a, b, x: g * (-sign * gamma_by_shape(b, a * x)),
        lambda g, y, a, b, x: g * (sign * a * gamma_density(b, a * x)),
    )


def _chi2_slopes(sign: int) -> tuple:
    """The derivatives of chdtr, times a sign, with respect to v and x."""
    return (
        lambda g, y, v, x: g * (-0.5 * sign * gamma_by_shape(0.5 * v, 0.5 * x)),
        lambda g, y, v, x: g * (0.5 * sign * gamma_density(0.5 * v, 0.5 * x)),
    )


gdtr, gdtrc = special("gdtr", *_gamma_slopes(1)), special("gdtrc", *_gamma_slopes(-1))
chdtr, chdtrc = special("chdtr", *_chi2_slopes(1)), special("chdtrc", *_chi2_slopes(-1))
chdtri = special(
    "chdtri",
    lambda g, y, v, p: g * PRIMITIVES["gamma_slope"](0.5 * v, 0.5 * y),
    lambda g, y, v, p: -2 * g / gamma_density(0.5 * v, 0.5 * y),
)
pdtr = special("pdtr", None, lambda g, y, k, m: -g * gamma_density(floor(k) + 1, m))
pdtrc = special("pdtrc", None, lambda g, y, k, m: g * gamma_density(floor(k) + 1, m))

# ---- binomial distributions, of whole numbers of trials ----

_COUNT = never("SciPy rounds the number of trials to an integer")


def _binomial_slope(k, n, p):
    """The derivative of bdtrc with respect to p; 0 where all numbers are below k."""
    is_inside = k < n
    k = floor(where(is_inside, k, n - 1))
    return where(is_inside, beta_density(k + 1, n - k, p), 0.0)


bdtr = special("bdtr", None, _COUNT, lambda g, y, k, n, p: -g * _binomial_slope(k, n, p))
bdtrc = special("bdtrc", None, _COUNT, lambda g, y, k, n, p: g * _binomial_slope(k, n, p))
nbdtr = special(
    "nbdtr", None, _COUNT, lambda g, y, k, n, p: g * beta_density(floor(n), floor(k) + 1, p)
)
nbdtrc = special(
    "nbdtrc", None, _COUNT, lambda g, y, k, n, p: -g * beta_density(floor(n), floor(k) + 1, p)
)

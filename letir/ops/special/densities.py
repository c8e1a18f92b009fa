"""Densities and distribution functions of ``scipy.stats``: one composite each, with SciPy's names,
such as ``norm_logpdf``.

They take (x, shape parameters ..., loc, scale) and compute in float64, as SciPy does. Outside of
the support the formula is evaluated at a number from inside, so that it makes no nan; a scale that
is not positive gives nan. Each distribution has a table of formulas in the standardised variable z.
"""

import math
from collections.abc import Callable

import numpy as np

from letir.ast.builder import Value
from letir.ops.define.records import composite
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import abs_ as absolute
from letir.ops.elementwise.rounding_sign_parts import floor
from letir.ops.elementwise.ufuncs import arctan2, exp, expm1, log, log1p, tan
from letir.ops.special.distribution_functions import stdtr, stdtrit, t_logpdf
from letir.ops.special.special_functions import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    expit,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_expit,
    log_ndtr,
    ndtr,
    ndtri,
    xlog1py,
    xlogy,
)

LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


def _as_double(x):
    """A parameter as float64; a Python number is unchanged."""
    if not isinstance(x, Value) or x.type is None or x.type.weak or x.dtype == np.float64:
        return x
    return x.astype(np.float64)


# ---- formulas of the standardised distributions, in z and the shape parameters ----


def _log_of(p, rest):
    """The logarithm of the probability ``p``, from its complement ``rest`` where that is small."""
    is_small = p < 0.5
    near_one = log1p(-where(is_small, 0.5, rest))
    return _choose(is_small, log(where(is_small, p, 0.5)), near_one)


def _with_logarithms(formulas: dict[str, Callable]) -> dict[str, Callable]:
    """The formulas, with ``logcdf`` and ``logsf`` from ``cdf`` and ``sf``."""
    cdf, sf = formulas["cdf"], formulas["sf"]
    return {
        **formulas,
        "logcdf": lambda *operands: _log_of(cdf(*operands), sf(*operands)),
        "logsf": lambda *operands: _log_of(sf(*operands), cdf(*operands)),
    }


def _cauchy_quantile(q):
    """``-cot(pi q)``, accurate at both ends and in the middle."""
    angle = math.pi * q + 0.0  # not -0.0
    beside = where(q < 0.5, -1.0 / tan(angle), 1.0 / tan(math.pi * (1.0 - q)))
    return where(absolute(q - 0.5) < 0.25, tan(math.pi * (q - 0.5)), beside)


def _laplace_quantile(q):
    """The quantile function of the Laplace distribution."""
    return where(q > 0.5, -log(2 * (1 - q)), log(2 * q))


def _laplace_tail(z, is_large, outer, inner):
    """1 - exp(outer) / 2 where the tail is large, exp(inner) / 2 elsewhere; no abs, whose
    derivative at 0 is 0.
    """
    large = 1.0 - 0.5 * exp(where(is_large, outer, 0.0))
    return _choose(is_large, large, 0.5 * exp(where(is_large, 0.0, inner)))


def _t_quantile(q, df):
    """``stdtrit``, whose value at the probability 0 is inf."""
    return where(q == 0.0, -math.inf, stdtrit(df, q))


def _cauchy_logpdf(z):
    """The logarithm of the density of the Cauchy distribution; the square may not overflow."""
    size = absolute(z)
    is_large = size > 1e100
    near, far = where(is_large, 0.0, z), where(is_large, size, 1.0)
    return -math.log(math.pi) - _choose(is_large, 2.0 * log(far), log1p(near * near))


_NORM: dict[str, Callable] = {
    "logpdf": lambda z: -0.5 * (z * z) - LOG_ROOT_TWO_PI,
    "cdf": ndtr,
    "sf": lambda z: ndtr(-z),
    "logcdf": log_ndtr,
    "logsf": lambda z: log_ndtr(-z),
    "ppf": ndtri,
    "isf": lambda q: -ndtri(q),
}
_T = {
    "logpdf": t_logpdf,
    "cdf": lambda z, df: stdtr(df, z),
    "sf": lambda z, df: stdtr(df, -z),
    "ppf": _t_quantile,
    "isf": lambda q, df: -_t_quantile(q, df),
}
_BETA = {
    "logpdf": lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
    "cdf": lambda z, a, b: betainc(a, b, z),
    "sf": lambda z, a, b: betaincc(a, b, z),
    "ppf": lambda q, a, b: betaincinv(a, b, q),
    "isf": lambda q, a, b: betainccinv(a, b, q),
}
_GAMMA = {
    "logpdf": lambda z, a: xlogy(a - 1, z) - z - gammaln(a),
    "cdf": lambda z, a: gammainc(a, z),
    "sf": lambda z, a: gammaincc(a, z),
    "ppf": lambda q, a: gammaincinv(a, q),
    "isf": lambda q, a: gammainccinv(a, q),
}
_CHI2 = {
    "logpdf": lambda z, df: _GAMMA["logpdf"](0.5 * z, 0.5 * df) - math.log(2),
    "cdf": lambda z, df: gammainc(0.5 * df, 0.5 * z),
    "sf": lambda z, df: gammaincc(0.5 * df, 0.5 * z),
    "ppf": lambda q, df: 2 * gammaincinv(0.5 * df, q),
    "isf": lambda q, df: 2 * gammainccinv(0.5 * df, q),
}
_EXPON = {
    "logpdf": lambda z: -z,
    "cdf": lambda z: -expm1(-z),
    "sf": lambda z: exp(-z),
    "logcdf": lambda z: _log_of(-expm1(-z), exp(-z)),
    "logsf": lambda z: -z,
    "ppf": lambda q: -log1p(-q),
    "isf": lambda q: -log(q),
}
_UNIFORM: dict[str, Callable] = {
    "logpdf": lambda z: 0.0 * z,
    "cdf": lambda z: z,
    "sf": lambda z: 1.0 - z,
    "ppf": lambda q: q,
    "isf": lambda q: 1.0 - q,
}
_LAPLACE: dict[str, Callable] = {
    "logpdf": lambda z: -absolute(z) - math.log(2),
    "cdf": lambda z: _laplace_tail(z, z > 0, -z, z),
    "sf": lambda z: _laplace_tail(z, z <= 0, z, -z),
    "ppf": _laplace_quantile,
    "isf": lambda q: -_laplace_quantile(q),
}
_LOGISTIC: dict[str, Callable] = {
    "logpdf": lambda z: -absolute(z) - 2 * log1p(exp(-absolute(z))),
    "cdf": expit,
    "sf": lambda z: expit(-z),
    "logcdf": log_expit,
    "logsf": lambda z: log_expit(-z),
    "ppf": lambda q: log(q) - log1p(-q),
    "isf": lambda q: log1p(-q) - log(q),
}
_CAUCHY: dict[str, Callable] = {
    "logpdf": _cauchy_logpdf,
    "cdf": lambda z: arctan2(1.0, -z) / math.pi,
    "sf": lambda z: arctan2(1.0, z) / math.pi,
    "ppf": _cauchy_quantile,
    "isf": lambda q: -_cauchy_quantile(q),
}
_POISSON = {
    "logpmf": lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu,
    "cdf": lambda k, mu: gammaincc(floor(k) + 1, mu),
    "sf": lambda k, mu: gammainc(floor(k) + 1, mu),
}
# name -> (formulas, number of shape parameters, bounds of the support)
_DISTRIBUTIONS: dict[str, tuple[dict[str, Callable], int, tuple]] = {
    "norm": (_NORM, 0, (None, None)),
    "t": (_with_logarithms(_T), 1, (None, None)),
    "beta": (_with_logarithms(_BETA), 2, (0.0, 1.0)),
    "gamma": (_with_logarithms(_GAMMA), 1, (0.0, None)),
    "chi2": (_with_logarithms(_CHI2), 1, (0.0, None)),
    "expon": (_EXPON, 0, (0.0, None)),
    "uniform": (_with_logarithms(_UNIFORM), 0, (0.0, 1.0)),
    "laplace": (_with_logarithms(_LAPLACE), 0, (None, None)),
    "logistic": (_LOGISTIC, 0, (None, None)),
    "cauchy": (_with_logarithms(_CAUCHY), 0, (None, None)),
}
_OUTSIDE = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0)}
_OUTSIDE["logsf"] = (0.0, -math.inf)
_INSIDE = 0.5  # a number in every support


# ---- from formulas to composites ----


def _choose(condition, x, y):
    """``where(condition, x, y)``; of numbers a scalar as SciPy returns it, not a 0-d array."""
    result = where(condition, x, y)
    return result if result.shape else result[()]


def _support_mask(z, low, high):
    """A mask of the z that are in the support; None if the support is unbounded."""
    if low is None:
        return None
    return z >= low if high is None else (z >= low) & (z <= high)


def _number_decomposition(method: str, formula, bounds: tuple, shapes: int):
    """The decomposition of logpdf, cdf and others, which standardise a number."""
    low, high = bounds

    def decompose(x, *parameters):
        *shape, loc, scale = [_as_double(p) for p in parameters]
        scale = where(scale > 0, scale, math.nan)
        z = (_as_double(x) - loc) / scale
        inside = _support_mask(z, low, high)
        safe = z if inside is None else where(inside, z, _INSIDE)
        result = formula(safe, *shape)
        if method == "logpdf":
            result = result - log(scale)
        if inside is None:
            return result
        below, above = _OUTSIDE.get(method, (-math.inf, -math.inf))
        beyond = below if high is None else where(z < low, below, above)
        # a nan is outside of every support, and stays nan
        return _choose(inside, result, where(z == z, beyond, z))

    return decompose


def _probability_decomposition(method: str, formula, bounds: tuple, shapes: int):
    """The decomposition of ppf and isf, which map a probability to a scaled and shifted number."""

    def decompose(q, *parameters):
        *shape, loc, scale = [_as_double(p) for p in parameters]
        q = _as_double(q)
        inside = (q >= 0) & (q <= 1)
        result = formula(where(inside, q, _INSIDE), *shape) * where(scale > 0, scale, math.nan)
        return _choose(inside, result + loc, math.nan)

    return decompose


def _exponentiate(decompose):
    """The decomposition of pdf, or pmf, from the decomposition of its logarithm."""
    return lambda *operands: exp(decompose(*operands))


def _count_decomposition(method: str, formula):
    """The decomposition of a function of Poisson counts.

    Counts that are not integers have no mass.
    """

    def decompose(k, mu, loc):
        k, mu = _as_double(k) - loc, _as_double(mu)
        inside = k >= 0
        if method == "logpmf":
            inside = inside & (floor(k) == k)
        density = formula(where(inside, k, 0.0), mu)
        outside = where(k == k, _OUTSIDE.get(method, (-math.inf,))[0], k)
        return _choose(inside, density, outside)

    return decompose


RECORDS = {}  # (distribution, method) -> record
for _name, (_formulas, _shapes, _bounds) in _DISTRIBUTIONS.items():
    for _method, _formula in _formulas.items():
        _make = _probability_decomposition if _method in ("ppf", "isf") else _number_decomposition
        _decompose = _make(_method, _formula, _bounds, _shapes)
        RECORDS[_name, _method] = composite(f"{_name}_{_method}", _decompose)
        if _method == "logpdf":
            RECORDS[_name, "pdf"] = composite(f"{_name}_pdf", _exponentiate(_decompose))
for _method, _formula in _POISSON.items():
    RECORDS["poisson", _method] = composite(
        f"poisson_{_method}", _count_decomposition(_method, _formula)
    )
RECORDS["poisson", "pmf"] = composite(
    "poisson_pmf", _exponentiate(_count_decomposition("logpmf", _POISSON["logpmf"]))
)

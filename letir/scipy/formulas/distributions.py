"""Formulas of the distributions of ``scipy.stats``, recorded from SciPy's own formulas.

SciPy's distributions have methods such as ``_logpdf``, of standardised numbers inside of the
support, written in NumPy. A quantile has the derivative of the inverse function.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ops.special.scipy_distributions import DISTRIBUTIONS
from letir.scipy.formulas.formula_table import formula, no_derivative
from letir.scipy.namespace import find_in_scipy
from letir.tracing.operands import traced_or_array


def _as_double(x: Any) -> Any:
    x = traced_or_array(x)
    return x if x.dtype == np.float64 else x.astype(np.float64)


class _Standard:
    """A distribution with given shape parameters, without location and scale."""

    def __init__(self, name: str, shapes: tuple):
        self.distribution, self.shapes = find_in_scipy("stats", name), shapes
        self.low, self.high = self.distribution._get_support(*shapes)

    def has_own(self, method: str) -> bool:
        """Whether SciPy has a formula for a method, not only a general algorithm."""
        kind = type(self.distribution)
        owner = next((c for c in kind.__mro__ if method in vars(c)), object)
        return owner.__module__ != "scipy.stats._distn_infrastructure"

    def call(self, method: str, z: Any) -> Any:
        """SciPy's formula for a method. Raises MissingRule if it has none."""
        if not self.has_own(method):
            no_derivative(f"SciPy has no formula for {self.distribution.name}.{method}")
        return getattr(self.distribution, method)(z, *self.shapes)

    def inside(self, z: Any) -> Any:
        """A mask of the numbers inside of the support."""
        return (z > self.low) & (z < self.high)

    def into_support(self, z: Any) -> Any:
        """``z`` inside of the support, another number of the support elsewhere."""
        low, high = [np.where(np.isfinite(b), b, 0.0) for b in (self.low, self.high)]
        ends = np.isfinite(self.low), np.isfinite(self.high)
        middle = np.where(ends[0] & ends[1], (low + high) / 2, 0.0)
        middle = np.where(ends[0] & ~ends[1], low + 1.0, middle)
        middle = np.where(ends[1] & ~ends[0], high - 1.0, middle)
        return np.where(self.inside(z), z, middle)

    def logpdf(self, z: Any) -> Any:
        """The logarithm of the density inside of the support."""
        if self.distribution.name in _LOG_DENSITIES:
            return _LOG_DENSITIES[self.distribution.name](z, *self.shapes)
        return self.call("_logpdf", z) if self.has_own("_logpdf") else np.log(self.call("_pdf", z))

    def pdf(self, z: Any) -> Any:
        """The density inside of the support."""
        own = self.has_own("_pdf") and self.distribution.name not in _LOG_DENSITIES
        return self.call("_pdf", z) if own else np.exp(self.logpdf(z))

    def logpmf(self, k: Any) -> Any:
        """The logarithm of the probability of a number."""
        own = self.has_own("_logpmf")
        return self.call("_logpmf", k) if own else np.log(self.call("_pmf", k))

    def pmf(self, k: Any) -> Any:
        """The probability of a number."""
        own = self.has_own("_pmf") and not self.has_own("_logpmf")
        return self.call("_pmf", k) if own else np.exp(self.logpmf(k))

    def cdf(self, z: Any) -> Any:
        """The distribution function inside of the support."""
        name = self.distribution.name
        if name in _BETA_TAILS:
            return find_in_scipy("special", "betainc")(*_BETA_TAILS[name](z, *self.shapes))
        return self.call("_cdf", z)

    def sf(self, z: Any) -> Any:
        """The survival function inside of the support."""
        own = self.has_own("_sf") and self.distribution.name not in _BETA_TAILS
        return self.call("_sf", z) if own else 1.0 - self.cdf(z)

    def logcdf(self, z: Any) -> Any:
        """The logarithm of the distribution function."""
        return self.call("_logcdf", z) if self.has_own("_logcdf") else np.log(self.cdf(z))

    def logsf(self, z: Any) -> Any:
        """The logarithm of the survival function."""
        return self.call("_logsf", z) if self.has_own("_logsf") else np.log(self.sf(z))


# densities for which SciPy chooses between formulas by value
_LOG_DENSITIES: dict[str, Callable] = {
    "lognorm": lambda x, s: -0.5 * (np.log(x) / s) ** 2 - np.log(s * x) - 0.5 * np.log(2 * np.pi),
}
# the distribution function as an incomplete beta function, which SciPy computes in C++
_BETA_TAILS: dict[str, Callable] = {
    "binom": lambda k, n, p: (n - np.floor(k), np.floor(k) + 1, 1.0 - p),
    "nbinom": lambda k, n, p: (n + 0.0 * k, np.floor(k) + 1, p),
}


def _parameters(name: str, args: tuple, kwargs: dict) -> tuple:
    """(shape parameters, location, scale) in double precision."""
    shapes, *place = find_in_scipy("stats", name)._parse_args(*args, **kwargs)
    loc, scale = [_as_double(x) for x in (*place, 1.0)[:2]]
    return tuple([_as_double(x) for x in shapes]), loc, scale


# ---- functions of numbers ----


def _of_number(name: str, method: str, x: Any, *args: Any, results: tuple, **kwargs: Any) -> Any:
    """pdf, cdf and others, by SciPy's formula for the method."""
    shapes, loc, scale = _parameters(name, args, kwargs)
    standard = _Standard(name, shapes)
    z = (_as_double(x) - loc) / scale
    value = getattr(standard, method)(standard.into_support(z))
    value = value - np.log(scale) if method == "logpdf" else value
    value = value / scale if method == "pdf" else value
    return np.where(standard.inside(z), value, results[0])


def _by_logarithm(name: str, method: str, *args: Any, results: tuple, **kwargs: Any) -> Any:
    """logcdf and logsf as logarithms of cdf and sf."""
    plain = (np.exp(results[0]),)
    return np.log(_of_number(name, method.removeprefix("log"), *args, results=plain, **kwargs))


def _by_density(
    name: str, method: str, x: Any, *args: Any, results: tuple, fixed: tuple, **kwargs: Any
) -> Any:
    """cdf and others by the density; derivatives by shape parameters are not known."""
    shapes, loc, scale = _parameters(name, args, kwargs)
    (known_x, *known_args), known_kwargs = fixed
    known_shapes, known_loc, known_scale = _parameters(name, tuple(known_args), known_kwargs)
    standard = _Standard(name, known_shapes)
    at = (_as_double(known_x) - known_loc) / known_scale
    slope = standard.pdf(standard.into_support(at)) * (-1.0 if method.endswith("sf") else 1.0)
    slope = slope / np.exp(results[0]) if method.startswith("log") else slope
    slope = np.where(standard.inside(at), slope, 0.0)
    return results[0] + slope * ((_as_double(x) - loc) / scale - at) + _unknown(shapes)


def _unknown(shapes: tuple) -> Any:
    """Zero, whose derivative with respect to shape parameters is an error."""
    return sum([0.0 * PRIMITIVES["unknown_slope"](s) for s in shapes if isinstance(s, Value)])


def _of_count(name: str, method: str, k: Any, *args: Any, results: tuple, **kwargs: Any) -> Any:
    """pmf, cdf and others of a discrete distribution: functions of its parameters."""
    shapes, loc, _ = _parameters(name, args, kwargs)
    standard = _Standard(name, shapes)
    k = _as_double(k) - loc
    whole = np.floor(k) if method not in ("pmf", "logpmf") else k
    inside = (whole >= standard.low) & (whole <= standard.high)
    if method in ("pmf", "logpmf"):
        inside = inside & (np.floor(k) == k)
    else:
        inside = inside & (whole < standard.high)  # at the end the function is constant
    value = getattr(standard, method)(np.where(inside, whole, standard.low))
    return np.where(inside, value, results[0])


# ---- quantiles ----


def _quantile(
    name: str,
    method: str,
    q: Any,
    *args: Any,
    results: tuple,
    fixed: tuple,
    inverts: bool = True,
    **kwargs: Any,
) -> Any:
    """ppf and isf: the root x of cdf(x) = q, by a step of Newton's method from the known root.

    Without ``inverts``, derivatives by shape parameters are not known.
    """
    shapes, loc, scale = _parameters(name, args, kwargs)
    (known_q, *known_args), known_kwargs = fixed
    known_shapes, known_loc, known_scale = _parameters(name, tuple(known_args), known_kwargs)
    q, known = _as_double(q), _Standard(name, known_shapes)
    root = (results[0] - known_loc) / known_scale
    inside = (q > 0) & (q < 1) & known.inside(root)
    root = known.into_support(root)
    if inverts:
        standard = _Standard(name, shapes)
        reached = standard.cdf(root) if method == "ppf" else standard.sf(root)
    else:
        reached = _as_double(known_q) + _unknown(shapes)
    z = root + (1.0 if method == "ppf" else -1.0) * (q - reached) / known.pdf(root)
    return np.where(inside, z * scale + loc, results[0])


# ---- moments ----


def _moment(name: str, method: str, *args: Any, results: tuple, **kwargs: Any) -> Any:
    """mean, var, std and entropy."""
    shapes, loc, scale = _parameters(name, args, kwargs)
    distribution = find_in_scipy("stats", name)
    if method == "entropy":
        if not _Standard(name, shapes).has_own("_entropy"):
            no_derivative(f"SciPy has no formula for the entropy of {name}")
        return _shaped(distribution._entropy(*shapes) + np.log(scale), results)
    mean, variance, *_ = distribution._stats(*shapes)
    value = mean if method == "mean" else variance
    if value is None:
        no_derivative(f"SciPy has no formula for the {method} of {name}")
    if method == "mean":
        return _shaped(value * scale + loc, results)
    return _shaped(value * scale**2 if method == "var" else np.sqrt(value) * scale, results)


def _shaped(value: Any, results: tuple) -> Any:
    value = value if isinstance(value, Value) else np.asarray(value)
    return np.broadcast_to(value, results[0].shape)


_BY_DENSITY = frozenset(["pdf", "logpdf"])
_TAILS = frozenset(["cdf", "sf"])
_LOGARITHMS = frozenset(["logcdf", "logsf"])
_QUANTILES = frozenset(["ppf", "isf"])
_PROBABILITIES = frozenset(["pmf", "logpmf"]) | _TAILS | _LOGARITHMS
_MOMENTS = frozenset(["mean", "var", "std", "entropy"])
# methods, and their formulas: the first one that SciPy's own formulas allow
_OF_CONTINUOUS: list[tuple] = [
    (_BY_DENSITY, _of_number),
    (_TAILS, _of_number, _by_density),
    (_LOGARITHMS, _of_number, _by_logarithm, _by_density),
    (_QUANTILES, _quantile, functools.partial(_quantile, inverts=False)),
    (_MOMENTS, _moment),
]
_OF_DISCRETE: list[tuple] = [(_PROBABILITIES, _of_count), (_MOMENTS, _moment)]
# SciPy's formula computes both tails of each number, and nan where the other one is used
_WITHOUT = {"stats.dgamma": _TAILS | _LOGARITHMS | _QUANTILES}
for _path, _methods in DISTRIBUTIONS.items():
    for _known, *_functions in _OF_CONTINUOUS if "pdf" in _methods else _OF_DISCRETE:
        for _method in (_known & _methods) - _WITHOUT.get(_path, frozenset()):
            formula(f"{_path}.{_method}")(
                *[functools.partial(f, _path.partition(".")[2], _method) for f in _functions]
            )

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
from letir.scipy.formulas.distribution_densities import (
    LOG_DENSITIES,
    MOMENTS,
    SUPPORTS,
    TAILS,
    tail_nodes,
)
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
        support = SUPPORTS.get(name, self.distribution._get_support)
        self.low, self.high = support(*shapes)

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
        if self.distribution.name in LOG_DENSITIES:
            return LOG_DENSITIES[self.distribution.name](z, *self.shapes)
        return self.call("_logpdf", z) if self.has_own("_logpdf") else np.log(self.call("_pdf", z))

    def pdf(self, z: Any) -> Any:
        """The density inside of the support."""
        own = self.has_own("_pdf") and self.distribution.name not in LOG_DENSITIES
        return self.call("_pdf", z) if own else np.exp(self.logpdf(z))

    def logpmf(self, k: Any) -> Any:
        """The logarithm of the probability of a number."""
        own = self.has_own("_logpmf")
        return self.call("_logpmf", k) if own else np.log(self.call("_pmf", k))

    def pmf(self, k: Any) -> Any:
        """The probability of a number."""
        own = self.has_own("_pmf") and not self.has_own("_logpmf")
        return self.call("_pmf", k) if own else np.exp(self.logpmf(k))

    def tail(self, z: Any, is_upper: bool) -> Any:
        """The distribution function inside of the support, or the survival function."""
        tails = TAILS.get(self.distribution.name)
        if tails is not None:
            return tails[is_upper](z, *self.shapes)
        if is_upper:
            return self.call("_sf", z) if self.has_own("_sf") else 1.0 - self.call("_cdf", z)
        return self.call("_cdf", z)


def _parameters(name: str, args: tuple, kwargs: dict) -> tuple:
    """(shape parameters, location, scale) in double precision."""
    shapes, *place = find_in_scipy("stats", name)._parse_args(*args, **kwargs)
    loc, scale = [_as_double(x) for x in (*place, 1.0)[:2]]
    return tuple([_as_double(x) for x in shapes]), loc, scale


# ---- densities ----


def _continuous_method(
    name: str, method: str, x: Any, *args: Any, results: tuple, **kwargs: Any
) -> Any:
    """pdf and logpdf of a continuous distribution."""
    shapes, loc, scale = _parameters(name, args, kwargs)
    standard = _Standard(name, shapes)
    z = (_as_double(x) - loc) / scale
    value = getattr(standard, method)(standard.into_support(z))
    value = value - np.log(scale) if method == "logpdf" else value / scale
    return np.where(standard.inside(z), value, results[0])


# ---- distribution functions: the derivative with respect to a number is the density ----


def _tail(
    name: str,
    method: str,
    x: Any,
    *args: Any,
    results: tuple,
    fixed: tuple,
    part: Callable,
    **kwargs: Any,
) -> Any:
    """cdf, sf and their logarithms: SciPy's result, plus zeros that have the derivatives.

    ``part``: makes the zero with the derivative with respect to shape parameters.
    """
    shapes, loc, scale = _parameters(name, args, kwargs)
    (known_x, *known_args), known_kwargs = fixed
    known_shapes, known_loc, known_scale = _parameters(name, tuple(known_args), known_kwargs)
    known = _Standard(name, known_shapes)
    z = (_as_double(known_x) - known_loc) / known_scale
    inside = known.inside(z)
    at = known.into_support(z)
    is_upper, is_log = method.endswith("sf"), method.startswith("log")
    level = np.where(inside & np.isfinite(results[0]), results[0], 0.0) if is_log else 0.0
    slope = np.exp(known.logpdf(at) - level) * (-1.0 if is_upper else 1.0)
    change = slope * ((_as_double(x) - loc) / scale - z)
    if any(isinstance(s, Value) for s in shapes):
        tail = np.exp(level) if is_log else results[0]
        change = change + part(known, shapes, at, np.where(inside, tail, 0.5), is_upper) / (
            np.exp(level) if is_log else 1.0
        )
    return results[0] + np.where(inside, change, 0.0)


def _zero_by_formula(known: _Standard, shapes: tuple, z: Any, tail: Any, is_upper: bool) -> Any:
    """A zero with the derivative of SciPy's formula for a tail with respect to shape parameters."""
    standard = _Standard(known.distribution.name, shapes)
    return standard.tail(z, is_upper) - known.tail(z, is_upper)


def _zero_by_quadrature(known: _Standard, shapes: tuple, z: Any, tail: Any, is_upper: bool) -> Any:
    """A zero with the derivative of a tail's probability with respect to shape parameters.

    The derivative is nan where the sum over every second node differs from the sum over all nodes.
    """
    name = known.distribution.name
    bounds = _WITHIN.get(name, (known.low, known.high))
    if any(isinstance(b, Value) for b in bounds):
        no_derivative(f"the support of {name} depends on a shape parameter")
    is_small = tail <= 0.5
    # the smaller tail, because the larger one is 1 minus it
    beyond = np.where(is_small, is_upper, not is_upper)
    mass = np.where(is_small, tail, 1.0 - tail)
    density = known.pdf(z)
    places, widths = tail_nodes(z, mass / np.where(density > 0, density, 1.0), beyond, bounds)
    # where the density is rounded to 0, its derivatives may be nan
    is_wanted = _Standard(name, _add_node_axis(known.shapes)).pdf(places) > 0
    places, widths = np.where(is_wanted, places, z[..., None]), np.where(is_wanted, widths, 0.0)
    new, old = [
        widths * _Standard(name, _add_node_axis(parameters)).pdf(places)
        for parameters in (shapes, known.shapes)
    ]
    coarse, new, old = 2 * old[..., ::2].sum(-1), new.sum(-1), old.sum(-1)
    is_exact = (np.abs(old - coarse) <= 1e-5 * old) & (np.abs(old - mass) <= 0.1 * mass + 1e-9)
    return np.where(is_exact, np.where(is_small, 1.0, -1.0), np.nan) * (new - old)


def _add_node_axis(shapes: tuple) -> tuple:
    """Shape parameters with a further axis for the nodes of an integral."""
    return tuple([s if np.ndim(s) == 0 else np.expand_dims(s, -1) for s in shapes])


def _unknown(known: _Standard, shapes: tuple, *_: Any) -> Any:
    """Zero, whose derivative with respect to shape parameters is an error."""
    return sum([0.0 * PRIMITIVES["unknown_slope"](s) for s in shapes if isinstance(s, Value)])


def _discrete_method(
    name: str, method: str, k: Any, *args: Any, results: tuple, **kwargs: Any
) -> Any:
    """pmf, cdf and others of a discrete distribution, which have derivatives with respect to its
    parameters only.
    """
    shapes, loc, _ = _parameters(name, args, kwargs)
    standard = _Standard(name, shapes)
    k = _as_double(k) - loc
    whole = np.floor(k) if method not in ("pmf", "logpmf") else k
    inside = (whole >= standard.low) & (whole <= standard.high)
    if method in ("pmf", "logpmf"):
        inside = inside & (np.floor(k) == k)
    else:
        inside = inside & (whole < standard.high)  # at the end the function is constant
    k = np.where(inside, whole, standard.low)
    if method in ("pmf", "logpmf"):
        return np.where(inside, getattr(standard, method)(k), results[0])
    value = standard.tail(k, method.endswith("sf"))
    return np.where(inside, np.log(value) if method.startswith("log") else value, results[0])


# ---- quantiles ----


def _quantile(
    name: str,
    method: str,
    q: Any,
    *args: Any,
    results: tuple,
    fixed: tuple,
    part: Callable,
    **kwargs: Any,
) -> Any:
    """ppf and isf: the root x of cdf(x) = q, by a step of Newton's method from the known root.

    ``part``: the change of cdf or sf with the shape parameters.
    """
    shapes, loc, scale = _parameters(name, args, kwargs)
    (known_q, *known_args), known_kwargs = fixed
    known_shapes, known_loc, known_scale = _parameters(name, tuple(known_args), known_kwargs)
    q, known_q, known = _as_double(q), _as_double(known_q), _Standard(name, known_shapes)
    found = (results[0] - known_loc) / known_scale
    inside = (known_q > 0) & (known_q < 1) & known.inside(found)
    root = known.into_support(found)
    is_upper = method == "isf"
    change = q - known_q
    if any(isinstance(s, Value) for s in shapes):
        change = change - part(known, shapes, root, np.where(inside, known_q, 0.5), is_upper)
    step = np.where(inside, change * (-1.0 if is_upper else 1.0) / known.pdf(root), 0.0)
    # at an end of the support, which may be infinite, the result moves with it
    place = np.where(np.isfinite(found), found, 0.0)
    return results[0] + step * scale + (loc - known_loc) + place * (scale - known_scale)


# ---- moments ----


def _moment(name: str, method: str, *args: Any, results: tuple, **kwargs: Any) -> Any:
    """mean, var, std and entropy."""
    shapes, loc, scale = _parameters(name, args, kwargs)
    distribution = find_in_scipy("stats", name)
    if method == "entropy":
        if not _Standard(name, shapes).has_own("_entropy"):
            no_derivative(f"SciPy has no formula for the entropy of {name}")
        return _shaped(distribution._entropy(*shapes) + np.log(scale), results)
    mean, variance, *_ = MOMENTS.get(name, distribution._stats)(*shapes)
    value = mean if method == "mean" else variance
    if value is None:
        no_derivative(f"SciPy has no formula for the {method} of {name}")
    if method == "mean":
        return _shaped(value * scale + loc, results)
    return _shaped(value * scale**2 if method == "var" else np.sqrt(value) * scale, results)


def _shaped(value: Any, results: tuple) -> Any:
    value = value if isinstance(value, Value) else np.asarray(value)
    return np.broadcast_to(value, results[0].shape)


_DENSITIES = frozenset(["pdf", "logpdf"])
_TAILS = frozenset(["cdf", "sf", "logcdf", "logsf"])
_QUANTILES = frozenset(["ppf", "isf"])
_PROBABILITIES = frozenset(["pmf", "logpmf"]) | _TAILS
_MOMENTS = frozenset(["mean", "var", "std", "entropy"])
_PARTS = (_zero_by_formula, _zero_by_quadrature, _unknown)
# methods, and their formulas: the first one that SciPy's own formulas allow
_OF_CONTINUOUS: list[tuple] = [
    (_DENSITIES, _continuous_method),
    (_TAILS, *[functools.partial(_tail, part=part) for part in _PARTS]),
    (_QUANTILES, *[functools.partial(_quantile, part=part) for part in _PARTS]),
    (_MOMENTS, _moment),
]
_OF_DISCRETE: list[tuple] = [(_PROBABILITIES, _discrete_method), (_MOMENTS, _moment)]
_WITHIN = {"vonmises": (-np.pi, np.pi)}  # SciPy's support is the whole line
for _path, _methods in DISTRIBUTIONS.items():
    for _known, *_functions in _OF_CONTINUOUS if "pdf" in _methods else _OF_DISCRETE:
        for _method in _known & _methods:
            formula(f"{_path}.{_method}")(
                *[functools.partial(f, _path.partition(".")[2], _method) for f in _functions]
            )

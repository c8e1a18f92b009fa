"""Distributions of vectors in ``scipy.stats``, for traced values."""

import math
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import entry_point
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.scipy.namespace import as_scalar, find_in_scipy, is_traced, refusal_error
from letir.tracing.operands import traced_or_array
from letir.tracing.trace_state import ABSENT, ACTIVE

_LOG_TWO_PI = math.log(2 * math.pi)
_LEAST = 1e6 * float(np.finfo(float).eps)  # smaller eigenvalues are 0 for scipy.stats


class VectorDistribution:
    """A distribution of SciPy, whose other methods, such as ``rvs``, are SciPy's own."""

    name = ""
    recorded: tuple[str, ...] = ()

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)
        result = getattr(find_in_scipy("stats", self.name), method)

        def call(*args, **kwargs):
            if is_traced(*args, **kwargs):
                raise refusal_error(f"{self.name}.{method}", f"only {', '.join(self.recorded)} are")
            return result(*args, **kwargs)

        return entry_point(call) if callable(result) else result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The distribution with fixed parameters."""
        # while recording, known parameters too: the methods may be called on traced values
        if ACTIVE.get() is None and not is_traced(*args, **kwargs):
            return find_in_scipy("stats", self.name)(*args, **kwargs)
        return FrozenVectorDistribution(self, args, tuple(kwargs.items()))

    def _plain(self, method: str, *args: Any) -> Any:
        """SciPy's result, for arguments that are not traced."""
        return getattr(find_in_scipy("stats", self.name), method)(*args)


@frozen
class FrozenVectorDistribution:
    """A distribution of vectors with fixed parameters, some of which are traced."""

    distribution: VectorDistribution
    args: tuple
    kwargs: tuple

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)
        distribution = self.distribution
        if method not in distribution.recorded and not is_traced(
            *self.args, *dict(self.kwargs).values()
        ):
            frozen_class = find_in_scipy("stats", distribution.name)
            return getattr(frozen_class(*self.args, **dict(self.kwargs)), method)
        if method not in distribution.recorded:
            reason = f"only {', '.join(distribution.recorded)} are"
            raise refusal_error(f"{distribution.name}(...).{method}", reason)
        recorded = getattr(distribution, method)
        return entry_point(lambda *x: recorded(*x, *self.args, **dict(self.kwargs)))


class MultivariateNormal(VectorDistribution):
    """``scipy.stats.multivariate_normal``, with ``allow_singular`` for singular covariances."""

    name = "multivariate_normal"
    recorded = ("logpdf", "pdf", "entropy")

    @entry_point
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density of the rows of ``x``."""
        if not is_traced(x, mean, cov):
            return self._plain("logpdf", x, mean, cov, allow_singular)
        x, mean, cov = [_in_double_precision(a) for a in (x, _mean_of(mean), cov)]
        cov = _full_covariance(mean, cov)
        if cov.shape[-1] == 1 and (x.ndim < 1 or x.shape[-1] != 1):
            x = x[..., None]
        elif x.shape[-1:] in ((), (1,)):  # SciPy broadcasts it
            x = np.broadcast_to(x, (*x.shape[:-1], cov.shape[-1]))
        if allow_singular:
            result = _singular_logpdf(x, mean, cov)
        else:
            result = PRIMITIVES["multivariate_normal_logpdf"](x, mean, cov)
        return as_scalar(result.squeeze() if 1 in result.shape else result)  # as SciPy does

    @entry_point
    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density of the rows of ``x``."""
        if not is_traced(x, mean, cov):
            return self._plain("pdf", x, mean, cov, allow_singular)
        return PRIMITIVES["exp"](self.logpdf(x, mean, cov, allow_singular))

    @entry_point
    def entropy(self, mean: Any = None, cov: Any = 1, allow_singular: bool = True) -> Any:
        """The entropy, from the rank and the determinant of the covariance."""
        if not is_traced(mean, cov):
            return self._plain("entropy", mean, cov)
        cov = _full_covariance(_mean_of(mean), _in_double_precision(cov))
        values, is_positive = _positive_part(np.linalg.eigvalsh(cov))
        rank = is_positive.sum()
        return 0.5 * (rank * (_LOG_TWO_PI + 1) + np.log(values).sum())


def _in_double_precision(x: Any) -> Any:
    """An argument as an array of float64. Raises MissingRule if it is complex."""
    x = traced_or_array(x)
    if x.dtype.kind == "c":
        raise refusal_error("multivariate_normal", "a parameter is complex; pass its real part")
    return x.astype(np.float64) if x.dtype.char in "ef" else x


def _mean_of(mean: Any) -> Any:
    return 0.0 if mean is None else traced_or_array(mean)


def _full_covariance(mean: Any, cov: Any) -> Any:
    """The covariance matrix: SciPy also takes one variance, or one for each dimension."""
    if cov.ndim == 2:
        return cov
    dim = cov.shape[-1] if cov.ndim == 1 and cov.shape[-1] > 1 else np.size(mean)
    return cov * np.eye(dim)


def _positive_part(values: Any) -> tuple:
    """(eigenvalues, with 1 in place of those that count as zero; mask of the positive ones)."""
    least = _LEAST * np.abs(values).max()
    is_positive = values > least
    return np.where(is_positive, values, 1.0), is_positive


def _singular_logpdf(x: Any, mean: Any, cov: Any) -> Any:
    """The density on the subspace of a singular covariance, -inf outside of it.

    The derivatives are those at a constant rank. They need no eigenvectors, which are arbitrary
    where eigenvalues are equal, as those are that are 0.
    """
    constant = PRIMITIVES["stop_gradient"]
    values, vectors = np.linalg.eigh(constant(cov))
    safe, is_positive = _positive_part(values)
    rest = x - mean
    parts = constant(rest) @ vectors
    distance = np.where(is_positive, parts * parts / safe, 0.0).sum(-1)
    least = 1e9 * np.finfo(float).eps * np.abs(values).max()
    beside = np.where(is_positive, 0.0, parts * parts).sum(-1)
    density = -0.5 * (is_positive.sum() * _LOG_TWO_PI + np.log(safe).sum() + distance)
    size = np.abs(values).max()
    smooth = _smooth_logpdf(rest, cov, np.where(size > 0, size, 1.0))
    density = density + (smooth - constant(smooth))
    return np.where(beside < least * least, density, -np.inf)


def _smooth_logpdf(rest: Any, cov: Any, size: Any) -> Any:
    """The logarithm of the density at ``rest`` from the mean, up to a constant for each rank.

    ``size``: a constant of the size of the covariance, which it gets beside the subspace.
    """
    inverse = np.linalg.pinv(cov, rcond=_LEAST, hermitian=True)
    onto = cov @ inverse  # the projection onto the subspace
    beside = size * (np.eye(cov.shape[-1]) - onto)
    determinant = np.linalg.slogdet(onto @ cov @ onto + beside)[1]
    return -0.5 * (((rest @ inverse) * rest).sum(-1) + determinant)


class Dirichlet(VectorDistribution):
    """``scipy.stats.dirichlet``: components along the first axis of ``x``."""

    name = "dirichlet"
    recorded = ("logpdf", "pdf", "mean", "var", "entropy")

    @entry_point
    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density; the last component of ``x`` may be left out."""
        if not is_traced(x, alpha):
            return self._plain("logpdf", x, alpha)
        x, alpha = traced_or_array(x), traced_or_array(alpha)
        if x.shape[0] == alpha.shape[0] - 1:
            x = np.concatenate([x, 1 - x.sum(0, keepdims=True)])
        elif x.shape[0] != alpha.shape[0]:
            raise ValueError(
                f"Vector 'x' must have as many entries as alpha, or one fewer: {x.shape} and "
                f"{alpha.shape}"
            )
        _require_condition(
            (x >= 0).all() & (x <= 1).all(), "Each entry in 'x' must be from 0 to 1."
        )
        on_simplex = (np.abs(x.sum(0) - 1.0) <= 10e-10).all()
        _require_condition(on_simplex, "The input vector 'x' must lie within the normal simplex.")
        powers = PRIMITIVES["xlogy"](alpha - 1, x.T).T
        return powers.sum(0) - _log_beta(alpha)

    @entry_point
    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        if not is_traced(x, alpha):
            return self._plain("pdf", x, alpha)
        return PRIMITIVES["exp"](self.logpdf(x, alpha))

    @entry_point
    def mean(self, alpha: Any) -> Any:
        """The mean of each component."""
        return alpha / alpha.sum() if is_traced(alpha) else self._plain("mean", alpha)

    @entry_point
    def var(self, alpha: Any) -> Any:
        """The variance of each component."""
        if not is_traced(alpha):
            return self._plain("var", alpha)
        total = alpha.sum()
        return alpha * (total - alpha) / (total * total * (total + 1))

    @entry_point
    def entropy(self, alpha: Any) -> Any:
        """The differential entropy."""
        if not is_traced(alpha):
            return self._plain("entropy", alpha)
        total, count, psi = alpha.sum(), alpha.shape[-1], PRIMITIVES["psi"]
        constant_part = _log_beta(alpha) + (total - count) * psi(total)
        return constant_part - ((alpha - 1) * psi(alpha)).sum()


def _log_beta(alpha: Any) -> Any:
    """The logarithm of the multivariate beta function."""
    gammaln = PRIMITIVES["gammaln"]
    return gammaln(alpha).sum() - gammaln(alpha.sum())


def _require_condition(condition: Any, message: str) -> None:
    """Raise SciPy's ValueError unless the condition holds; a guard if it is traced.

    Unknown values are not checked: in an abstract trace, or for examples of ``vmap``.
    """
    if isinstance(condition, Value) and condition.concrete_value() is ABSENT:
        return
    if not condition:
        raise ValueError(message)

"""``scipy.stats`` for traced values: densities and distribution functions, in float64.

Other methods of a distribution (``rvs``, ``fit`` ...) are SciPy's own.
"""

from typing import Any

from attrs import frozen

from letir.ast import LATE_BOUND, entry_point
from letir.ast.primitive import PRIMITIVES
from letir.errors import DTypeError
from letir.scipy.multivariate import Dirichlet, MultivariateNormal
from letir.scipy.namespace import fallback_getattr, find_in_scipy, is_traced, refusal_error
from letir.scipy.sample_statistics import (  # noqa: F401  names of the namespace
    gmean,
    hmean,
    kurtosis,
    sem,
    skew,
    zscore,
)
from letir.tracing.mutation.memory_order import copy_to_order
from letir.tracing.operands import traced_or_array
from letir.tracing.trace_state import ACTIVE

__getattr__ = fallback_getattr("stats")
METHODS = frozenset(
    ["pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"]
)
_MOMENTS = frozenset(["stats", "mean", "var", "std", "median", "moment", "interval", "entropy"])


@frozen
class Distribution:
    """A distribution of SciPy; ``shapes``: the names of its shape parameters."""

    name: str
    shapes: tuple[str, ...] = ()
    has_scale: bool = True

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)
        result = getattr(find_in_scipy("stats", self.name), method)
        return result if method not in METHODS else DistributionMethod(self, method)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The distribution with fixed parameters."""
        # while recording, known parameters too: the methods may be called on traced values
        if ACTIVE.get() is None and not is_traced(*args, **kwargs):
            return find_in_scipy("stats", self.name)(*args, **kwargs)
        return FrozenDistribution(self, args, tuple(kwargs.items()))

    def parameters(self, *args: Any, **kwargs: Any) -> tuple:
        """The shape parameters, then loc and scale, from the arguments of a call."""
        names = (*self.shapes, "loc", "scale") if self.has_scale else (*self.shapes, "loc")
        if len(args) > len(names):
            raise DTypeError(
                f"{self.name} has {len(names)} parameters, found {len(args)}\n"
                f"  pass them in this order: {', '.join(names)}"
            )
        values = {"loc": 0.0, "scale": 1.0, **dict(zip(names, args, strict=False)), **kwargs}
        missing = [name for name in names if name not in values]
        unknown = values.keys() - {*names, "scale"}
        if missing or unknown:
            raise DTypeError(
                f"{self.name} has the parameters {names}, found {sorted(values)}\n"
                f"  pass {', '.join(missing) or 'these'}"
            )
        return tuple([_as_parameter(values[name]) for name in names])


def _as_parameter(x):
    """A parameter: a Python number, a traced value, or an array. Raises MissingRule if it is
    complex.
    """
    if type(x) in (int, float):
        return x
    x = traced_or_array(x)
    if x.dtype.kind == "c":
        raise refusal_error("a distribution", "a parameter is complex; pass its real part")
    return x


@frozen
class DistributionMethod:
    """A method of a distribution, such as logpdf or cdf."""

    distribution: Distribution
    name: str

    @entry_point
    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        distribution = self.distribution
        if not is_traced(x, *args, **kwargs):
            method = getattr(find_in_scipy("stats", distribution.name), self.name)
            return method(x, *args, **kwargs)
        name = f"{distribution.name}_{self.name}"
        try:
            op = PRIMITIVES[name]
        except KeyError:
            method = getattr(find_in_scipy("stats", distribution.name), self.name)
            part = f"stats.{distribution.name}"
            return LATE_BOUND["scipy_call"](part, method, (x, *args), kwargs)
        return copy_to_order(op(_as_parameter(x), *distribution.parameters(*args, **kwargs)))


@frozen
class FrozenDistribution:
    """A distribution with fixed parameters."""

    distribution: Distribution
    args: tuple
    kwargs: tuple

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)
        if method not in METHODS and not is_traced(*self.args, *dict(self.kwargs).values()):
            frozen_class = find_in_scipy("stats", self.distribution.name)
            return getattr(frozen_class(*self.args, **dict(self.kwargs)), method)
        if method in _MOMENTS:
            computed = getattr(find_in_scipy("stats", self.distribution.name), method)
            return entry_point(lambda *x: computed(*x, *self.args, **dict(self.kwargs)))
        if method not in METHODS:
            raise refusal_error(
                f"{self.distribution.name}(...).{method}",
                f"only {', '.join(sorted(METHODS | _MOMENTS))} are",
            )
        recorded = DistributionMethod(self.distribution, method)
        return entry_point(lambda x: recorded(x, *self.args, **dict(self.kwargs)))


norm = Distribution("norm")
t = Distribution("t", ("df",))
beta = Distribution("beta", ("a", "b"))
gamma = Distribution("gamma", ("a",))
chi2 = Distribution("chi2", ("df",))
expon = Distribution("expon")
poisson = Distribution("poisson", ("mu",), has_scale=False)
uniform = Distribution("uniform")
laplace = Distribution("laplace")
logistic = Distribution("logistic")
cauchy = Distribution("cauchy")
multivariate_normal = MultivariateNormal()
dirichlet = Dirichlet()

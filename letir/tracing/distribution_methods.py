"""Methods of SciPy's distributions that take traced values, wherever code holds them.

``prior = stats.norm(0, 2)`` and ``logpdf = stats.norm.logpdf`` may be stored in a module, an object
or a closure, where no stand-in replaces them; but both call functions of SciPy's classes. During a
recording these functions get other code, which tests whether its thread records.
"""

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ops.special.scipy_distributions import DISTRIBUTIONS
from letir.tracing.operands import first_traced
from letir.tracing.stand_ins import is_recording

_VECTORS = {  # class -> the distribution, and the attributes of its fixed parameters, if any
    "multivariate_normal_gen": ("multivariate_normal", None),
    "multivariate_normal_frozen": ("multivariate_normal", ("mean", "cov", "allow_singular")),
    "dirichlet_gen": ("dirichlet", None),
    "dirichlet_frozen": ("dirichlet", ("alpha",)),
}
_METHODS = frozenset(
    ["pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", "entropy"]
)
_MOMENTS = frozenset(["stats", "mean", "var", "std", "median", "moment", "interval"])
_CALLED = "called"


def distribution_methods(names: frozenset[str]) -> list[tuple]:
    """(function, "__code__", code, the code while recording) of the methods of SciPy's classes.

    ``names``: the distributions that are recorded.
    """
    return [
        (
            function,
            "__code__",
            function.__code__,
            _code_that_calls(_method_stand_in(function, names)),
        )
        for kind in _distribution_classes()
        for name, function in vars(kind).items()
        if name in _METHODS | _MOMENTS
        and type(function) is FunctionType
        and not function.__closure__
    ]


def _distribution_classes() -> Iterator[type]:
    """The classes of SciPy whose methods are densities and distribution functions."""
    stats = sys.modules["scipy.stats"]
    yield from (stats.rv_continuous, stats.rv_discrete)
    yield stats.rv_continuous.__mro__[1]  # of both: the moments
    for name in _VECTORS:
        kind = getattr(sys.modules.get("scipy.stats._multivariate"), name, None)
        if kind is not None:
            yield kind


def _method_stand_in(function: FunctionType, names: frozenset[str]) -> Callable:
    """The method that replaces a method of SciPy."""
    original = FunctionType(
        *(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    )
    original.__kwdefaults__ = function.__kwdefaults__
    method = function.__name__

    def stand_in(self, *args, **kwargs):
        if first_traced((*args, *kwargs.values())) is not None and is_recording():
            kind = type(self).__name__
            has_formulas = method in _METHODS and (method != "entropy" or kind in _VECTORS)
            recorded = _recorded_distribution(self, names) if has_formulas else None
            if recorded is not None:
                return getattr(recorded, method)(*args, **kwargs)
            if _is_of_scipy(self):
                bound = original.__get__(self)
                return LATE_BOUND["scipy_call"](f"stats.{self.name}", bound, args, kwargs)
        return original(self, *args, **kwargs)

    return stand_in


def _is_of_scipy(distribution: Any) -> bool:
    """Whether it is, or is like, the distribution that SciPy has under its name."""
    name = getattr(distribution, "name", None)
    named = getattr(sys.modules["scipy.stats"], name, None) if type(name) is str else None
    named = getattr(named, "letir_distribution", named)  # the stand-in for it
    return f"stats.{name}" in DISTRIBUTIONS and type(named) is type(distribution)


def _recorded_distribution(distribution: Any, names: frozenset[str]) -> Any:
    """letir's distribution for a distribution of SciPy; None if it is not recorded."""
    name, fixed = _VECTORS.get(type(distribution).__name__) or (distribution.name, None)
    if name not in names:
        return None
    result = LATE_BOUND["scipy_recorded"]("stats", name)
    return result if fixed is None else result(*[getattr(distribution, key) for key in fixed])


def _code_template(*args, **kwargs):
    """Call a constant of this code, which ``_code_that_calls`` replaces by a function."""
    called: Any = "called"  # a constant of the code, which is replaced by a function
    return called(*args, **kwargs)


def _code_that_calls(function: Callable) -> CodeType:
    """The code of a function that calls another one with its arguments."""
    code = _code_template.__code__
    constants: Any = [function if x == _CALLED else x for x in code.co_consts]
    return code.replace(co_consts=tuple(constants))


LATE_BOUND["distribution_methods"] = distribution_methods

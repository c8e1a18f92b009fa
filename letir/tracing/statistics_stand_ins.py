"""The stand-ins for the functions of Python's module ``statistics``.

That module computes with exact fractions and rounds once; the recorded operations sum floats.
"""

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.tracing.math_stand_ins import python_number
from letir.tracing.operands import first_traced
from letir.tracing.stand_ins import LibraryModule, is_recording


def _mean(values: Sequence) -> Any:
    return sum(values) / len(values)


def _squares(values: Sequence, center: Any) -> Any:
    """The sum of the squares of the differences from ``center``, by default the mean."""
    center = _mean(values) if center is None else center
    return sum((x - center) * (x - center) for x in values)


def _variance(values: Sequence, xbar: Any = None) -> Any:
    return _squares(values, xbar) / (len(values) - 1)


def _population_variance(values: Sequence, mu: Any = None) -> Any:
    return _squares(values, mu) / len(values)


def _root(x: Any) -> Any:
    return PRIMITIVES["math_function"](python_number(x, float), name="sqrt")


def _median(values: Sequence) -> Any:
    """The middle of the values, whose order is guarded."""
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _weighted_mean(values: Sequence, weights: Sequence | None = None) -> Any:
    if weights is None:
        return python_number(_mean(values), float)
    total = sum(w * x for w, x in zip(list(weights), values, strict=True))
    return python_number(total / sum(weights), float)


_FUNCTIONS: dict[str, Callable] = {
    "mean": _mean,
    "fmean": _weighted_mean,
    "median": _median,
    "median_low": lambda values: sorted(values)[(len(values) - 1) // 2],
    "median_high": lambda values: sorted(values)[len(values) // 2],
    "variance": _variance,
    "pvariance": _population_variance,
    "stdev": lambda values, xbar=None: _root(_variance(values, xbar)),
    "pstdev": lambda values, mu=None: _root(_population_variance(values, mu)),
}


def statistics_module(module: ModuleType) -> LibraryModule:
    """The module ``statistics``, with the makers of its stand-ins."""
    return LibraryModule(module, dict.fromkeys(_FUNCTIONS, _statistics_stand_in))


def _statistics_stand_in(original: Callable) -> Callable:
    """The stand-in for ``original``: traced integers are guarded, floats are recorded."""
    recorded = _FUNCTIONS[original.__name__]

    @functools.wraps(original)
    def stand_in(data, *args, **kwargs):
        if not is_recording():
            return original(data, *args, **kwargs)
        values = [_known_integer(x) for x in data]
        if first_traced((values, args, kwargs)) is None or len(values) < 2:
            if len(values) == 1 and isinstance(values[0], Value):
                # raises the module's error if one value is too few
                original([1.0], *args, **kwargs)
            else:
                return original(values, *args, **kwargs)
        return recorded(values, *args, **kwargs)

    return stand_in


def _known_integer(x: Any) -> Any:
    """A traced integer as a number, with a guard: a mean of integers may be an integer."""
    if not isinstance(x, Value) or x.shape or x.dtype.kind not in "iub":
        return x
    return int(x) if x.type.weak else x.dtype.type(int(x))


LATE_BOUND["statistics_module"] = statistics_module

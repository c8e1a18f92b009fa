"""The stand-ins for the functions of Python's module ``statistics``.

That module computes with exact fractions and rounds once; the recorded operations round each sum,
difference, square and quotient.
"""

import functools
import math
import statistics
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.tracing.callers import LibraryModule
from letir.tracing.math_stand_ins import as_numpy_scalar
from letir.tracing.numpy_protocols.python_protocols import python_number
from letir.tracing.operands import first_traced
from letir.tracing.stand_ins import is_recording

_SUMS_PRODUCTS = hasattr(math, "sumprod")


def _total(values: Sequence) -> Any:
    """The sum of the values, rounded once, as a Python float."""
    return PRIMITIVES["math_reduction"](*map(_as_float, values), name="fsum")


def _as_float(x: Any) -> Any:
    """``x`` as a float, traced or not."""
    return python_number(x, float) if isinstance(x, Value) else float(x)


def _convert_to_class(x: Any, values: Sequence) -> Any:
    """A Python float in the class of the sum of the values."""
    scalars = [v for v in values if _is_numpy_scalar(v)]
    if not scalars:
        return x
    return as_numpy_scalar(x, np.result_type(*{v.dtype for v in scalars}).type)


def _is_numpy_scalar(x: Any) -> bool:
    """Whether ``x`` is a NumPy scalar, or a traced value that stands for one."""
    return not x.type.weak if isinstance(x, Value) else isinstance(x, np.generic)


def _mean(values: Sequence) -> Any:
    return _convert_to_class(_total(values) / len(values), values)


def _sum_of_squares(values: Sequence, center: Any) -> Any:
    """The sum of the squares of the differences from ``center``, by default the mean."""
    center = _total(values) / len(values) if center is None else _as_float(center)
    deviations = [_as_float(x) - center for x in values]
    return _total([x * x for x in deviations])


def _variance(values: Sequence, xbar: Any = None) -> Any:
    return _convert_to_class(_sum_of_squares(values, xbar) / (len(values) - 1), values)


def _population_variance(values: Sequence, mu: Any = None) -> Any:
    return _convert_to_class(_sum_of_squares(values, mu) / len(values), values)


def _root(x: Any) -> Any:
    """The square root of a number as a Python float, traced or not."""
    return PRIMITIVES["math_function"](python_number(x, float), name="sqrt")


def _median(values: Sequence) -> Any:
    """The middle of the values, whose order is guarded."""
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _weighted_mean(values: Sequence, weights: Sequence | None = None) -> Any:
    if weights is None:
        return _total(values) / len(values)
    weights = list(weights)
    products = [x * w for x, w in zip(values, weights, strict=True)]
    # since Python 3.12 math.sumprod adds them, which keeps the class of NumPy's scalars
    of_numpy = _SUMS_PRODUCTS and any(_is_numpy_scalar(x) for x in products)
    return (sum(products) if of_numpy else _total(products)) / _total(weights)


def _harmonic_mean(values: Sequence, weights: Sequence | None = None) -> Any:
    """Values that are negative raise Python's error; a Python number that is 0 gives 0."""
    weights = [1] * len(values) if weights is None else list(weights)
    if any(x < 0 for x in values) or len(weights) != len(values):
        return statistics.harmonic_mean([-1.0] * len(values), weights)  # raises the error
    if any(x == 0 for x in values if not _is_numpy_scalar(x)):
        return 0
    total = _total([w / x for w, x in zip(weights, values, strict=True)])
    return _convert_to_class(sum(weights) / total, values)


def _geometric_mean(values: Sequence) -> Any:
    """Values that are not positive are treated as by this version of Python."""
    if any(x <= 0 for x in values):
        return statistics.geometric_mean([1.0, -1.0 if any(x < 0 for x in values) else 0.0])
    function = PRIMITIVES["math_function"]
    logarithms = [function(_as_float(x), name="log") for x in values]
    return function(_total(logarithms) / len(values), name="exp")


def _means_and_deviations(x: Sequence, y: Sequence) -> tuple[Any, Any, list, list]:
    """(mean of x, mean of y, deviations of x from its mean, deviations of y from its mean)."""
    xbar, ybar = _total(x) / len(x), _total(y) / len(y)
    return xbar, ybar, [_as_float(a) - xbar for a in x], [_as_float(b) - ybar for b in y]


def _sum_of_products(x: Sequence, y: Sequence) -> Any:
    return _total([a * b for a, b in zip(x, y, strict=True)])


def _covariance(x: Sequence, y: Sequence) -> Any:
    _, _, dx, dy = _means_and_deviations(x, y)
    return _sum_of_products(dx, dy) / (len(x) - 1)


def _correlation(x: Sequence, y: Sequence) -> Any:
    _, _, dx, dy = _means_and_deviations(x, y)
    scale = _sum_of_products(dx, dx) * _sum_of_products(dy, dy)
    if scale == 0:
        raise statistics.StatisticsError("at least one of the inputs is constant")
    return _sum_of_products(dx, dy) / _root(scale)


def _linear_regression(x: Sequence, y: Sequence, *, proportional: bool = False) -> Any:
    xbar, ybar, dx, dy = (0.0, 0.0, x, y) if proportional else _means_and_deviations(x, y)
    square = _sum_of_products(dx, dx)
    if square == 0:
        raise statistics.StatisticsError("x is constant")
    slope = _sum_of_products(dx, dy) / square
    intercept = 0.0 if proportional else ybar - slope * xbar
    return statistics.LinearRegression(slope, intercept)


_FUNCTIONS: dict[str, Callable] = {
    "mean": _mean,
    "fmean": _weighted_mean,
    "median": _median,
    "median_low": lambda values: sorted(values)[(len(values) - 1) // 2],
    "median_high": lambda values: sorted(values)[len(values) // 2],
    "variance": _variance,
    "pvariance": _population_variance,
    "stdev": lambda values, xbar=None: _root(_sum_of_squares(values, xbar) / (len(values) - 1)),
    "pstdev": lambda values, mu=None: _root(_sum_of_squares(values, mu) / len(values)),
    "harmonic_mean": _harmonic_mean,
    "geometric_mean": _geometric_mean,
}
_OF_PAIRS: dict[str, Callable] = {
    "covariance": _covariance,
    "correlation": _correlation,
    "linear_regression": _linear_regression,
}


def statistics_module(module: ModuleType) -> LibraryModule:
    """The module ``statistics``, with the makers of its stand-ins."""
    makers: dict = dict.fromkeys(_FUNCTIONS, _statistics_stand_in)
    return LibraryModule(module, makers | dict.fromkeys(_OF_PAIRS, _stand_in_of_pairs))


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


def _stand_in_of_pairs(original: Callable) -> Callable:
    """The stand-in for a function of the coordinates of points."""
    recorded = _OF_PAIRS[original.__name__]

    @functools.wraps(original)
    def stand_in(x, y, /, **options):
        points = [*x, *y]
        # since Python 3.12 some results have the class of NumPy's scalars
        is_other = _SUMS_PRODUCTS and any(map(_is_numpy_scalar, points))
        is_other = is_other or bool(options.keys() - {"proportional"})
        if not is_recording() or first_traced(points) is None or is_other:
            return original(x, y, **options)
        if len(x) != len(y) or len(x) < 2:
            return original([0.0] * len(x), [0.0] * len(y), **options)  # raises the error
        return recorded(x, y, **options)

    return stand_in


def _known_integer(x: Any) -> Any:
    """A traced integer as a number, with a guard: a mean of integers may be an integer."""
    if not isinstance(x, Value) or x.shape or x.dtype.kind not in "iub":
        return x
    kind: Any = x.__class__  # of a comparison of Python numbers, Python's bool
    return kind(int(x))


LATE_BOUND["statistics_module"] = statistics_module

"""Statistics of samples in ``scipy.stats``, for traced values."""

from typing import Any

import numpy as np

from letir.ops.shape.transpose import normalize_axes
from letir.scipy.namespace import drop_in, refusal_error
from letir.tracing.operands import traced_or_array


def _floating_samples(name: str, a: Any, axis: int | None, options: dict) -> tuple[Any, int]:
    """(samples in floating point, the axis) of the arguments."""
    refused = {key for key, value in options.items() if value not in (False, None, "propagate")}
    if refused:
        raise refusal_error(name, f"leave out {', '.join(sorted(refused))}")
    a = traced_or_array(a)
    a = a if a.dtype.kind in "fc" else a.astype(float)
    return (a.reshape(-1), 0) if axis is None else (a, *normalize_axes(axis, a.ndim))


@drop_in("stats")
def zscore(a: Any, axis: int | None = 0, ddof: int = 0, **options: Any) -> Any:
    """The samples minus their mean, divided by their standard deviation."""
    shape = np.shape(a)
    a, axis = _floating_samples("zscore", a, axis, options)
    mean, deviation = (f(a, axis=axis, keepdims=True) for f in (np.mean, np.std))
    if ddof:
        deviation = np.std(a, axis=axis, ddof=ddof, keepdims=True)
    return ((a - mean) / deviation).reshape(shape)


@drop_in("stats")
def sem(a: Any, axis: int | None = 0, ddof: int = 1, **options: Any) -> Any:
    """The standard error of the mean."""
    a, axis = _floating_samples("sem", a, axis, options)
    return np.std(a, axis=axis, ddof=ddof) / a.shape[axis] ** 0.5


def _standardised_moment(a, axis: int, power: int):
    """The moment of this order, divided by the power of the standard deviation."""
    centred = a - a.mean(axis=axis, keepdims=True)
    return (centred**power).mean(axis=axis) / (centred**2).mean(axis=axis) ** (power / 2)


@drop_in("stats")
def skew(a: Any, axis: int | None = 0, bias: bool = True, **options: Any) -> Any:
    """The skewness of the samples."""
    a, axis = _floating_samples("skew", a, axis, options)
    n, result = a.shape[axis], _standardised_moment(a, axis, 3)
    return result if bias or n < 3 else result * np.sqrt((n - 1.0) * n) / (n - 2.0)


@drop_in("stats")
def kurtosis(
    a: Any, axis: int | None = 0, fisher: bool = True, bias: bool = True, **options: Any
) -> Any:
    """The kurtosis of the samples, with ``fisher`` minus 3: 0 for a normal distribution."""
    a, axis = _floating_samples("kurtosis", a, axis, options)
    n, result = a.shape[axis], _standardised_moment(a, axis, 4)
    if not bias and n > 3:
        scaled = (n**2 - 1.0) * result - 3 * (n - 1) ** 2.0
        result = 1.0 / (n - 2) / (n - 3) * scaled + 3.0
    return result - 3 if fisher else result


@drop_in("stats")
def gmean(
    a: Any, axis: int | None = 0, dtype: Any = None, weights: Any = None, **options: Any
) -> Any:
    """The geometric mean."""
    a, axis = _floating_samples("gmean", a, axis, {**options, "dtype": dtype})
    return np.exp(np.average(np.log(a), axis=axis, weights=weights))


@drop_in("stats")
def hmean(
    a: Any, axis: int | None = 0, dtype: Any = None, weights: Any = None, **options: Any
) -> Any:
    """The harmonic mean."""
    a, axis = _floating_samples("hmean", a, axis, {**options, "dtype": dtype})
    return 1.0 / np.average(1.0 / a, axis=axis, weights=weights)

"""SciPy's functions that are linear in a signal, recorded as products with their matrices.

SciPy itself computes the matrix, so that all its options are supported. A product takes n * n
operations where SciPy needs about n, and the matrix is a constant of the program; so signals are
limited to ``_MAX_SAMPLES`` samples.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ops.shape.transpose import normalize_axes
from letir.scipy.namespace import (
    copy_in_order_of_scipy,
    find_in_scipy,
    is_traced,
    refusal_error,
)
from letir.tracing.operands import traced_or_array

_MAX_SAMPLES = 1024
_NOT_LINEAR = ("zi", "t", "window")  # arguments that change what a function returns


def linear_map(part: str, name: str, signal: str = "x") -> Callable:
    """``scipy.part.name``, also for a traced argument ``signal``."""

    def recorded(*args: Any, **kwargs: Any) -> Any:
        original = find_in_scipy(part, name)
        if not is_traced(*args, **kwargs):
            return original(*args, **kwargs)
        bound = inspect.signature(original).bind(*args, **kwargs)
        x = traced_or_array(bound.arguments.pop(signal))
        others = bound.arguments
        if is_traced(*others.values()) or any(others.get(n) is not None for n in _NOT_LINEAR):
            raise refusal_error(
                name, f"only {signal} may be traced; leave out {' and '.join(_NOT_LINEAR)}"
            )
        bound.apply_defaults()
        options = {key: value for key, value in bound.arguments.items() if key != signal}
        (axis,) = normalize_axes(options.pop("axis"), x.ndim)
        if isinstance(x.concrete_value(), np.ndarray) and not np.isfinite(x).all():
            # in a product with a matrix of zeros, nan would be in all samples
            raise refusal_error(name, "the signal has infinite samples or nan")
        if x.shape[axis] > _MAX_SAMPLES:
            raise refusal_error(
                name,
                "it is recorded as a product with a matrix, which would be too large for "
                f"{x.shape[axis]} samples; pass at most {_MAX_SAMPLES}",
            )
        result = _apply_as_matrix(
            lambda signals: original(**{signal: signals}, axis=0, **options), x, axis
        )
        return copy_in_order_of_scipy(part, name, result)

    recorded.__name__ = recorded.__qualname__ = name
    recorded.__doc__ = f"``scipy.{part}.{name}`` of a signal of at most {_MAX_SAMPLES} samples."
    return recorded


def _apply_as_matrix(function: Callable, x: Any, axis: int) -> Any:
    """``function`` applied along ``axis``: a product with its matrix plus its value at 0."""
    n = x.shape[axis]
    kind = function(np.ones((n, 1), x.dtype)).dtype
    offset = function(np.zeros((n, 1)))[:, 0]
    matrix = function(np.eye(n)) - offset[:, None]
    result = np.moveaxis(x, axis, -1) @ matrix.T
    if offset.any():
        result = result + offset
    result = np.moveaxis(result, -1, axis)
    return result if result.dtype == kind else result.astype(kind)

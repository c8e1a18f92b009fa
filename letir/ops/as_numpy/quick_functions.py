"""Short forms of NumPy's functions that are written in Python: var, std and norm.

They do what NumPy's functions do with arrays of float64, in the same order, without the tests for
other arguments. See ``quick_forms``, which this module extends.
"""

import math
from typing import Any

import numpy as np

from letir.ast.symbolic_sizes import is_static_shape

_FLOAT = np.dtype(np.float64)
_sum: Any = np.add.reduce


def variance(x: np.ndarray, axis: Any, count: float, divisor: float, keepdims: bool) -> Any:
    """``np.var`` of float64: the mean of ``count`` elements, and the sum of the squares of the
    deviations over ``divisor``.
    """
    center = _sum(x, axis, None, None, True)
    away = np.subtract(x, np.divide(center, count, center))
    return _sum(np.multiply(away, away, away), axis, None, None, keepdims) / divisor


def flat_norm(x: np.ndarray) -> Any:
    """``np.linalg.norm`` of float64 without further arguments."""
    flat = x.ravel("K")
    return np.sqrt(flat.dot(flat))


def var_form(write: Any, *, axis: Any, dtype: Any, ddof: Any, keepdims: bool) -> str | None:
    """The call of ``variance``."""
    kind, result = write.type(0), write.result
    if len(write.bind.args) > 1 or dtype is not None or result is None or not _is_float(kind):
        return None
    if not is_static_shape((*kind.shape, *result.shape)) or 0 in kind.shape:
        return None
    count = math.prod(kind.shape) // math.prod(result.shape)
    if type(ddof) not in (int, float) or count - ddof <= 0:
        return None  # where NumPy warns
    write.is_loud = True  # it warns of overflow in a frame of its own
    numbers = f"{float(count)!r}, {float(count - ddof)!r}"
    return f"{write.constant(variance)}({write.slot(0)}, {axis!r}, {numbers}, {keepdims!r})"


def std_form(write: Any, **attrs: Any) -> str | None:
    """The square root of the variance."""
    found = var_form(write, **attrs)
    return None if found is None else f"{write.constant(np.sqrt)}({found})"


def norm_form(write: Any, *, ord: Any, axis: Any, keepdims: bool) -> str | None:
    """The call of ``flat_norm``."""
    kind = write.type(0)
    if ord is not None or axis is not None or keepdims or not _is_float(kind):
        return None
    write.is_loud = True
    return f"{write.constant(flat_norm)}({write.slot(0)})"


def _is_float(kind: Any) -> bool:
    """Whether a type is that of float64 arrays with axes."""
    return kind is not None and bool(kind.shape) and kind.dtype == _FLOAT

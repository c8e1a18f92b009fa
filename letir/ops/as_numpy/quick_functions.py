"""Short forms of NumPy's functions that are written in Python: var, std and norm; and of draws.

They compute with arrays of float64 in the same order as NumPy's functions, without their tests for
other arguments. See ``quick_forms``, which this module extends.
"""

import math
from typing import Any

import numpy as np

from letir.ast.symbolic_sizes import is_static_shape

_FLOAT, _INT = np.dtype(np.float64), np.dtype(np.int64)
_sum: Any = np.add.reduce


def variance(x: np.ndarray, axis: Any, count: float, divisor: float, keepdims: bool) -> Any:
    """``np.var`` of float64: the mean of ``count`` elements, and the sum of the squares of the
    deviations over ``divisor``.
    """
    center = _sum(x, axis, None, None, True)
    away = np.subtract(x, np.divide(center, count, center))
    return _sum(np.multiply(away, away, away), axis, None, None, keepdims) / divisor


def _flat_norm(x: np.ndarray) -> Any:
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
    write.is_loud = True  # the function warns of overflow in its own frame
    numbers = f"{float(count)!r}, {float(count - ddof)!r}"
    return f"{write.constant(variance)}({write.slot(0)}, {axis!r}, {numbers}, {keepdims!r})"


def std_form(write: Any, **attrs: Any) -> str | None:
    """The square root of the variance."""
    found = var_form(write, **attrs)
    return None if found is None else f"{write.constant(np.sqrt)}({found})"


def norm_form(write: Any, *, ord: Any, axis: Any, keepdims: bool) -> str | None:
    """The call of ``_flat_norm``."""
    kind = write.type(0)
    if ord is not None or axis is not None or keepdims or not _is_float(kind):
        return None
    write.is_loud = True
    return f"{write.constant(_flat_norm)}({write.slot(0)})"


def _is_float(kind: Any) -> bool:
    """Whether values of a type are float64 arrays with axes."""
    return kind is not None and bool(kind.shape) and kind.dtype == _FLOAT


def draw_text(write: Any, *, method: str, shape: tuple, dtype: np.dtype, options: tuple) -> Any:
    """The call of a generator's method, None if it takes keywords."""
    if method in ("permutation", "choice", "multinomial") or options or dtype not in (_FLOAT, _INT):
        return None
    given = [write.operand(i) for i in range(1, len(write.bind.args))]
    if shape:
        given.append(repr(shape[0] if len(shape) == 1 else shape))
    return f"{write.slot(0)}.{method}({', '.join(given)})"


def draw_form(write: Any, **attrs: Any) -> str | None:
    """The form of a draw: the drawn numbers, in the dtype of the bind."""
    text, dtype = draw_text(write, **attrs), attrs["dtype"]
    if text is None or (attrs["shape"] and dtype == _FLOAT):
        return text
    if attrs["shape"]:
        return f"{write.constant(np.asarray)}({text}, {write.constant(dtype)})"
    return f"{write.constant(dtype.type)}({text})"

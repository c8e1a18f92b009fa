"""Short forms of NumPy's functions that are written in Python: var, std and norm; and of draws.

They compute with arrays of float64 in the same order as NumPy's functions, without their tests for
other arguments. See ``quick_forms``, which this module extends.
"""

import math
from typing import Any

import numpy as np

from letir.ast.symbolic_sizes import is_static_shape
from letir.ops.random.generator_snapshots import state_setter

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
    return np.float64(math.sqrt(flat.dot(flat)))  # rounded correctly, like NumPy's


def _vector_norm(x: np.ndarray) -> Any:
    """``np.linalg.norm`` of float64 with one axis."""
    flat = x if x.flags.c_contiguous else x.ravel("K")  # as NumPy's: strides change the rounding
    return np.float64(math.sqrt(flat.dot(flat)))


def _cross_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``np.cross`` of two float64 arrays of one shape, whose last axis has three elements."""
    a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
    b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
    result = np.empty(a.shape)
    for n, (x, y, z, w) in enumerate(((a1, b2, a2, b1), (a2, b0, a0, b2), (a0, b1, a1, b0))):
        np.subtract(x * y, z * w, result[..., n])
    return result


def _cross_of_vectors(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``np.cross`` of two float64 arrays of three elements."""
    (a0, a1, a2), (b0, b1, b2) = a.tolist(), b.tolist()
    x, y, z = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
    if x - x or y - y or z - z:  # infinite or nan: NumPy may warn
        return _cross_product(a, b)
    return np.array((x, y, z))


def var_form(write: Any, *, axis: Any, dtype: Any, ddof: Any, keepdims: bool) -> str | None:
    """The call of ``variance``."""
    aval, result = write.type(0), write.result
    if len(write.bind.args) > 1 or dtype is not None or result is None or not _is_float(aval):
        return None
    if not is_static_shape((*aval.shape, *result.shape)) or 0 in aval.shape:
        return None
    count = math.prod(aval.shape) // math.prod(result.shape)
    if type(ddof) not in (int, float) or count - ddof <= 0:
        return None  # where NumPy warns
    write.is_loud = True  # the function warns of overflow in its own frame
    numbers = f"{float(count)!r}, {float(count - ddof)!r}"
    return f"{write.constant(variance)}({write.slot(0)}, {axis!r}, {numbers}, {keepdims!r})"


def std_form(write: Any, **attrs: Any) -> str | None:
    """The square root of the variance."""
    text = var_form(write, **attrs)
    return None if text is None else f"{write.constant(np.sqrt)}({text})"


def norm_form(write: Any, *, ord: Any, axis: Any, keepdims: bool) -> str | None:
    """The call of ``_flat_norm``, or the root of the sum of the squares along an axis."""
    aval = write.type(0)
    if ord is not None or not _is_float(aval):
        return None
    if type(axis) is int:
        square = f"{write.constant(np.multiply)}({write.slot(0)}, {write.slot(0)})"
        total = f"{write.constant(_sum)}({square}, {axis}, None, None, {bool(keepdims)})"
        return f"{write.constant(np.sqrt)}({total})"
    if axis is not None or keepdims:
        return None
    function = _vector_norm if len(aval.shape) == 1 else _flat_norm
    return f"{write.constant(function)}({write.slot(0)})"


def cross_form(write: Any, *, axisa: int, axisb: int, axisc: int) -> str | None:
    """The call of ``_cross_product`` for the last axis."""
    a, b = write.type(0), write.type(1)
    if not _is_float(a) or a is not b or a.shape[-1] != 3 or not is_static_shape(a.shape):
        return None
    if not {axisa, axisb, axisc} <= {-1, len(a.shape) - 1}:
        return None
    write.is_loud = True
    function = _cross_of_vectors if len(a.shape) == 1 else _cross_product
    return f"{write.constant(function)}({write.slot(0)}, {write.slot(1)})"


def _is_float(aval: Any) -> bool:
    """Whether values of a type are float64 arrays with axes."""
    return aval is not None and bool(aval.shape) and aval.dtype == _FLOAT


def draw_text(write: Any, *, method: str, shape: tuple, dtype: np.dtype, options: tuple) -> Any:
    """The call of a generator's method, None if it takes keywords."""
    if method in ("permutation", "choice", "multinomial") or options or dtype not in (_FLOAT, _INT):
        return None
    operands = [write.operand(i) for i in range(1, len(write.bind.args))]
    if shape:
        operands.append(repr(shape[0] if len(shape) == 1 else shape))
    return f"{write.slot(0)}.{method}({', '.join(operands)})"


def draw_form(write: Any, **attrs: Any) -> str | None:
    """The form of a draw: the drawn numbers, in the dtype of the bind."""
    text, dtype = draw_text(write, **attrs), attrs["dtype"]
    if text is None or (attrs["shape"] and dtype == _FLOAT):
        return text
    if attrs["shape"]:
        return f"{write.constant(np.asarray)}({text}, {write.constant(dtype)})"
    return f"{write.constant(dtype.type)}({text})"


def seed_form(write: Any) -> str | None:
    """The call that gives a generator a known state."""
    words = write.known_number(1)
    if type(words) is not np.ndarray:
        return None
    return f"{write.constant(state_setter(words))}({write.slot(0)})"

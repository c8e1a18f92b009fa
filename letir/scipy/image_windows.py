"""Sliding windows of arrays, with SciPy's treatment of borders, for the filters of ``ndimage``."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from letir.ast.builder import Value
from letir.ops.shape.transpose import normalize_axes
from letir.scipy.namespace import refusal_error

_PADDED_BY = {  # SciPy's mode -> the mode of numpy.pad
    **{"reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect"},
    **{"nearest": "edge", "wrap": "wrap", "grid-wrap": "wrap"},
    **{"constant": "constant", "grid-constant": "constant"},
}


def extend_borders(x: Any, before: tuple, after: tuple, mode: str, cval: Any) -> Any:
    """``x`` extended at its borders in this ``mode``; a negative width cuts elements off."""
    if mode not in _PADDED_BY:
        raise RuntimeError("boundary mode not supported")  # SciPy's words
    pairs = list(zip(before, after, strict=True))
    widths = [(max(a, 0), max(b, 0)) for a, b in pairs]
    padding: Any = _PADDED_BY[mode]
    options: dict[str, Any] = {"constant_values": cval} if padding == "constant" else {}
    result = np.pad(x, widths, padding, **options)
    item = [
        slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, result.shape, strict=True)
    ]
    return result[tuple(item)]


def windows_of(x: Any, shape: tuple, origins: tuple, mode: str, cval: Any) -> Any:
    """The window of each element of ``x``, along further axes at the end."""
    starts = [n // 2 + origin for n, origin in zip(shape, origins, strict=True)]
    for n, start in zip(shape, starts, strict=True):
        if n and not 0 <= start < n:
            raise ValueError("invalid origin")
    ends = [n - 1 - start for n, start in zip(shape, starts, strict=True)]
    return sliding_window_view(extend_borders(x, tuple(starts), tuple(ends), mode, cval), shape)


def store_result(result: Any, like: Any, output: Any) -> Any:
    """A result in the dtype of the input or of ``output``, or written into ``output``."""
    if isinstance(output, Value | np.ndarray):
        target: Any = output
        target[...] = _cast_as_in_c(result, output.dtype)
        return output
    dtype = np.dtype(like.dtype if output is None else output)
    if result.dtype.kind == "c" and dtype.kind != "c":
        dtype = np.result_type(dtype, np.complex64)
    return _cast_as_in_c(result, dtype)


def _cast_as_in_c(result: Any, dtype: np.dtype) -> Any:
    """``result`` in this dtype; negative numbers in an unsigned one modulo its size."""
    if dtype.kind == "u" and result.dtype.kind == "f":
        result = result.astype(np.int64)
    return result if result.dtype == dtype else result.astype(dtype)


def dtype_of_output(output: Any) -> Any:
    """The dtype in which a filter stores what it computes along each axis; None for the input's."""
    return output.dtype if isinstance(output, Value | np.ndarray) else output


def refuse_rounding(subject: str, like: Any, output: Any) -> None:
    """Raise MissingRule if results are cut to integers; SciPy itself then computes them.

    A sum in another order may round to the other side of an integer.
    """
    dtype = np.dtype(like.dtype if output is None else dtype_of_output(output))
    if dtype.kind in "biu":
        raise refusal_error(f"ndimage: {subject}", "the result is cut to integers")


def one_per_axis(value: Any, ndim: int) -> list:
    """One value for each axis, from a sequence or a single value."""
    if isinstance(value, str) or np.ndim(value) == 0:
        return [value] * ndim
    if len(value) != ndim:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return list(value)


def filtered_axes(axes: Any, ndim: int) -> list[int]:
    """The axes along which a filter works, by default all."""
    if axes is None:
        return list(range(ndim))
    return list(normalize_axes(axes if np.ndim(axes) == 0 else tuple(axes), ndim))


def shape_along(sizes: list, axes: list[int], ndim: int, other: int) -> tuple:
    """A shape of ``ndim`` axes: ``sizes`` along ``axes``, ``other`` along all other axes."""
    at = dict(zip(axes, sizes, strict=True))
    return tuple([at.get(a, other) for a in range(ndim)])


def cast_to_double(x: Any) -> Any:
    """``x`` in the precision in which SciPy sums."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)

"""Values as Python expressions that evaluate to the same type, dtype, shape and bits."""

import math
import struct
from typing import Any

import numpy as np

from letir.ast.text.printer import float_digits
from letir.ast.types import Size, UndefType
from letir.errors import ExportError

WIDTH = 100


class SourceText(str):
    """An expression that replaces a number in a literal."""


# what np.array makes of plain elements
_NATURAL = frozenset(map(np.dtype, ("bool", "int64", "float64", "complex128")))


def literal_text(value: Any, indent: str = "") -> str:
    """The expression of a constant or an attribute; long arrays continue on further lines.

    >>> literal_text((1, -0.0, slice(None, 2), np.dtype("float32"), np.arange(2, dtype="int8")))
    '(1, -0.0, slice(None, 2), np.float32, np.array([0, 1], dtype=np.int8))'
    """
    kind = type(value)
    # type(), not isinstance: NumPy's scalars are Python floats too
    if kind in (int, bool, type(None)):
        return repr(value)
    if kind is str:
        return _string_text(value)
    if kind is SourceText:
        return str(value)
    if kind is UndefType:
        return "None"
    if kind is float:
        return _float_text(value)
    if kind is complex:
        return _complex_text(value)
    if kind is tuple:
        items = ", ".join([literal_text(item, indent) for item in value])
        return f"({items}{',' if len(value) == 1 else ''})"
    if kind is list:
        return f"[{', '.join([literal_text(item, indent) for item in value])}]"
    if kind is slice:
        parts = [value.start, value.stop] + ([] if value.step is None else [value.step])
        return f"slice({', '.join(map(literal_text, parts))})"
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if isinstance(value, np.generic):
        return f"{dtype_text(value.dtype)}({_element_text(value)})"
    if kind is np.ndarray:
        return _array_text(value, indent)
    raise ExportError(f"to_source: {value!r} cannot be written in NumPy{_size_remedy(value)}")


def _size_remedy(value) -> str:
    """The remedy for a symbolic size without a value."""
    if type(value) is not Size:
        return ""
    return "\n  trace with arrays, so that sizes are numbers"


def _string_text(value: str) -> str:
    """A string literal, in double quotes unless they would need escapes."""
    text = repr(value)
    return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text and "'" not in value else text


def printable_line(text: str) -> str:
    """A text in one line of a comment."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def dtype_text(dtype: np.dtype) -> str:
    """``np.float32``; ``np.bool_``, which every NumPy has."""
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def _float_text(value: float) -> str:
    """``repr`` of a float, with NumPy's nan and inf; a nan with unusual bits is made from bits."""
    if math.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    if not math.isnan(value):
        return repr(value)
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    usual = bits == 0x7FF8000000000000  # the bits of np.nan
    return "np.nan" if usual else f"np.uint64({bits:#x}).view(np.float64).item()"


def _complex_text(value: complex) -> str:
    """``(1+2j)`` if that is exact: a sum loses the signs of zeros, nan and inf."""
    return _pair_text(value.real, value.imag, _float_text(value.real), _float_text(value.imag))


def _pair_text(real, imag, first: str, second: str) -> str:
    """The expression of a complex number from the texts of its parts."""
    if not all(math.isfinite(x) and (x or math.copysign(1, x) > 0) for x in (real, imag)):
        return f"complex({first}, {second})"
    sign = "" if second.startswith("-") else "+"
    return f"({first}{sign}{second}j)" if real or not sign else f"{second}j"  # -2j has -0.0


def _element_text(value: Any) -> str:
    """The Python literal from which its dtype, or an array, makes this NumPy scalar."""
    kind = value.dtype.kind
    if kind == "c":
        parts = value.real, value.imag
        return _pair_text(*parts, *map(_element_text, parts))
    if kind != "f":
        return str(value)
    if np.isnan(value):
        return "np.nan"
    if np.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return float_digits(value) if value.dtype.itemsize == 8 else _short_digits(value)


def _short_digits(value: np.floating) -> str:
    """The fewest digits that round-trip through float64 to the dtype."""
    short = str(value)
    return short if value.dtype.type(float(short)) == value else repr(float(value))


def _array_text(array: np.ndarray, indent: str = "") -> str:
    """``np.array([...], dtype=...)``, or a shorter form if all elements are equal."""
    dtype, shape = array.dtype, array.shape
    if _has_odd_nans(array):
        bits = f"u{array.real.dtype.itemsize}"
        # as integers
        words = _array_text(np.ascontiguousarray(array).reshape(-1).view(bits), indent)
        return f"{words}.view({dtype_text(dtype)}).reshape({literal_text(shape)})"
    suffix = "" if dtype in _NATURAL else f", dtype={dtype_text(dtype)}"
    if array.size == 0:
        return f"np.zeros({literal_text(shape)}, dtype={dtype_text(dtype)})"
    if array.size > 8 and _is_uniform(array):
        first = _element_text(array.reshape(-1)[0])
        return f"np.full({literal_text(shape)}, {first}{suffix})"
    texts = list(map(_element_text, array.reshape(-1)))
    return f"np.array({_nested_rows(texts, shape, indent + '    ')}{suffix})"


def _has_odd_nans(array: np.ndarray) -> bool:
    """Whether an array holds a nan with other bits than ``np.nan``."""
    if array.dtype.kind not in "fc":
        return False
    parts = np.ascontiguousarray(array).reshape(-1).view(array.real.dtype)
    nans = parts[np.isnan(parts)]
    bits = f"u{parts.dtype.itemsize}"
    return bool((nans.view(bits) != np.full(1, np.nan, parts.dtype).view(bits)).any())


def _is_uniform(array: np.ndarray) -> bool:
    """Whether all elements have the same bits."""
    # bytes: 0.0 == -0.0
    words = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    return bool((words == words[0]).all())


def _nested_rows(texts: list[str], shape: tuple, indent: str) -> str:
    """Flat element texts as nested lists of this shape."""
    if not shape:
        return texts[0]
    for length in reversed(shape[1:]):
        texts = [
            f"[{wrapped_items(texts[i : i + length], indent)}]"
            for i in range(0, len(texts), length)
        ]
    return f"[{wrapped_items(texts, indent)}]"


def wrapped_items(items: list[str], indent: str) -> str:
    """Items on one line if they fit, else wrapped."""
    if sum(map(len, items)) + 2 * len(items) + len(indent) < WIDTH - 24:
        return ", ".join(items)
    lines: list[str] = []
    line: list[str] = []
    room = WIDTH - len(indent) - 4
    for item in items:
        if line and room < len(item) + 2:
            lines.append(", ".join(line) + ",")
            line, room = [], WIDTH - len(indent) - 4
        line.append(item)
        room -= len(item) + 2
    lines.append(", ".join(line))
    return f"\n{indent}" + f"\n{indent}".join(lines)

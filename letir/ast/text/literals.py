"""The values of single words: numbers, strings, sizes, types and the elements of arrays.

Each function turns a piece of text into a value, the reverse of ``letir.ast.text.printer``. They
raise ValueError or OverflowError for text that is not such a value; readers add its position.
"""

import ast
import re
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Here
from letir.ast.process_state import float_errors
from letir.ast.types import MAX_AXES, ArrayType, Size

DTYPES = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}

# Possessive quantifiers (*+ and ++) never backtrack, so that any text takes linear time. Before
# Python 3.11.4 a possessive group keeps what an iteration has read that does not match as a whole;
# groups that start with a separator are greedy for that reason, and give up whole iterations.
NAME = r"[^\W\d]\w*+"
REAL = r"-?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
_FLOAT = re.compile(rf"{REAL}|-?inf|nan")
_INT = re.compile(r"-?[0-9]++")
_NAN = re.compile(r"nan@([0-9a-f]++)")
_PAIR = re.compile(r"complex\s*\(([^(),]*),([^(),]*)\)")
_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"  # the escapes of repr
STRING = rf"'(?:[^'\\\n]|{_ESCAPE})*+'" + rf'|"(?:[^"\\\n]|{_ESCAPE})*+"'
# (n//2), ((n+1)//2): a quotient, in which others may be nested once
_GROUP = r"\((?:[\w\s*+/-]++|\([\w\s*+/-]*+\))*+\)"
_QUOTIENT = r"\((?:[\w\s*+-]++|\([\w\s*+/-]*+\))*+//\s*+[0-9]++\)"
_FACTOR = rf"(?:[0-9]++|{NAME}|{_QUOTIENT})"
SIZE = rf"-?\s*{_FACTOR}(?:\s*[-+*]\s*{_FACTOR})*"
_SIZE_TERM = re.compile(rf"([-+]?)((?:[^-+()]++|{_QUOTIENT})+)")
_SIZE_FACTOR = re.compile(_FACTOR)
_WHOLE_GROUP = re.compile(_GROUP)
TYPE = rf"{NAME}\s*+\*?\s*+\[[^\[\]]*+\]"
_MAX_SIZE = 1 << 63
_MAX_TERMS = 100


def parse_string(text: str) -> str:
    """The string of a quoted literal."""
    try:
        return ast.literal_eval(text)  # safe: STRING matches exactly one string literal
    except SyntaxError as error:
        raise ValueError(f"this is not a string: {error.msg}") from None


def parse_int(text: str) -> int:
    """A decimal number."""
    if not _INT.fullmatch(text):
        raise ValueError(f"expected an integer, found {text!r}")
    return int(text)


def parse_float(text: str) -> float:
    """A decimal number, inf or nan, or the nan with the bits after ``nan@``."""
    if text.startswith("nan@"):
        return parse_array(DTYPES["float64"], (), text).item()
    if not _FLOAT.fullmatch(text):
        raise ValueError(f"expected a number, found {text!r}")
    return float(text)


def parse_complex(text: str) -> complex:
    """``complex(real, imag)``."""
    return parse_array(DTYPES["complex128"], (), text).item()


def parse_slice(text: str) -> slice:
    """The slice ``start:stop:step``, in which each part may be missing."""
    parts = (part.strip() for part in text.split(":"))
    return slice(*[_end_of(part) if part else None for part in parts])


def _end_of(text: str) -> Any:
    """An end or the step of a slice: an integer or a size."""
    return parse_int(text) if _INT.fullmatch(text) else parse_size(text)


def parse_placeholder(text: str) -> Here:
    """``@``, or ``@`` and a count."""
    return Here(parse_int(text[1:]) if len(text) > 1 else None)


def parse_scalar(text: str) -> Any:
    """``dtype(element)``."""
    name, _, element = text[:-1].partition("(")
    if name.strip() not in DTYPES:
        raise ValueError(f"{name}(...) is not a value here: bind its result to a local first")
    return parse_array(DTYPES[name.strip()], (), element)[()]


def parse_dtype(name: str) -> np.dtype:
    """The dtype with this name."""
    if name not in DTYPES:
        raise ValueError(f"expected a dtype ({', '.join(DTYPES)}), found {name!r}")
    return DTYPES[name]


def _within_64_bits(number: int) -> int:
    """``number``, if an array can have that many elements: larger integers are slow."""
    if abs(number) > _MAX_SIZE:
        raise ValueError("a number in a size is beyond 64 bits")
    return number


def parse_size(text: str) -> Size | int:
    """A sum of products of numbers and names."""
    if not re.fullmatch(SIZE, text):
        raise ValueError(f"expected a size such as 3, n or 2*n+1, found {text!r}")
    terms = _SIZE_TERM.findall(text)
    if max(len(terms), text.count("*")) > _MAX_TERMS:
        raise ValueError(f"a size has more than {_MAX_TERMS} terms or factors")
    coefficients: dict = {}
    for sign, product in terms:
        names, coefficient = [], -1 if sign == "-" else 1
        for factor in _SIZE_FACTOR.findall(product):
            if factor[0] in "0123456789":
                coefficient *= int(factor)
            elif factor[0] == "(":
                names.append(_parse_quotient(factor))
            else:
                Size.named(factor)  # raises for a word that cannot name a size
                names.append(factor)
            coefficient = _within_64_bits(coefficient)
        key = tuple(sorted(names))
        coefficients[key] = _within_64_bits(coefficients.get(key, 0) + coefficient)
    return Size.from_coefficients(coefficients)


def _parse_quotient(text: str) -> str:
    """The name of a quotient, in brackets."""
    of, _, by = text[1:-1].rpartition("//")
    of, divisor = of.strip(), int(by)
    size = parse_size(of[1:-1] if _WHOLE_GROUP.fullmatch(of) else of)
    quotient = size // divisor if divisor else 0
    match quotient.terms if type(quotient) is Size else ():
        case (((name,), 1),) if type(name) is not str:
            return name
    raise ValueError(f"{text} is not a quotient that a size can have: it is {quotient}")


def parse_type(text: str) -> ArrayType:
    """``dtype[sizes]``, or ``dtype*[sizes]`` for a weak one."""
    name, _, sizes = text[:-1].partition("[")
    if sizes.count(",") > MAX_AXES:
        raise ValueError(f"an array has at most {MAX_AXES} axes")
    shape = tuple([parse_size(size.strip()) for size in sizes.split(",")]) if sizes.strip() else ()
    if any(type(n) is int and n < 0 for n in shape):
        raise ValueError(f"a size is negative in {text}")
    name = name.strip()
    return ArrayType(parse_dtype(name.removesuffix("*").strip()), shape, weak=name.endswith("*"))


def parse_array(dtype: np.dtype, shape: tuple, text: str) -> np.ndarray:
    """The read-only array of these comma-separated elements in C order."""
    if any(type(n) is Size for n in shape):
        raise ValueError("the shape of an array is made of numbers, not of names")
    pairs = dtype.kind == "c"
    if pairs:
        text, pair_count = _PAIR.subn(r"\1,\2", text)
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    count = len(parts) // 2 if pairs else len(parts)
    expected = ArrayType(dtype, shape).size
    if pairs and len(parts) != 2 * pair_count:
        raise ValueError("expected elements of the form complex(real, imag)")
    if count != expected:
        raise ValueError(f"expected {expected} elements, found {count}")
    array = np.empty(shape, dtype)
    flat = array.reshape(-1)
    _write_elements(flat.real.dtype, flat.view(flat.real.dtype), parts)
    array.flags.writeable = False
    return array


def _write_elements(dtype: np.dtype, array: np.ndarray, parts: list[str]) -> None:
    """Write elements of a dtype that is not complex; nans with bits are written as bits."""
    if dtype.kind != "f":
        array[:] = np.array([*map(_bool_of if dtype.kind == "b" else parse_int, parts)], dtype)
        return
    bits = {i: _nan_bits(part, dtype) for i, part in enumerate(parts) if part.startswith("nan@")}
    with float_errors(over="ignore", under="ignore"):
        array[:] = [0.0 if i in bits else parse_float(part) for i, part in enumerate(parts)]
    for i, pattern in bits.items():
        # as integers: float conversion would turn a signalling nan into a quiet one
        array.view(f"u{dtype.itemsize}")[i] = pattern


def _bool_of(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError(f"expected True or False, found {text!r}")
    return text == "True"


def _nan_bits(text: str, dtype: np.dtype) -> int:
    """The bits in the text of a nan, such as ``nan@7fc00001``."""
    digits = _NAN.fullmatch(text)
    if digits is None or len(digits[1]) != 2 * dtype.itemsize:
        raise ValueError(f"expected nan@ and {2 * dtype.itemsize} digits 0-9a-f, found {text!r}")
    bits = int(digits[1], 16)
    if not np.isnan(np.array(bits, f"u{dtype.itemsize}").view(dtype)):
        raise ValueError(f"{text} are not the bits of a nan")
    return bits


LATE_BOUND["parse_size"] = parse_size

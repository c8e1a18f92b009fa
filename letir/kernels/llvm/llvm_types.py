"""LLVM's texts of types and constants."""

import numpy as np

from letir.kernels.loop_language import Number

_FLOATS = {4: "float", 8: "double"}


def type_text(dtype: np.dtype) -> str:
    """LLVM's type of a scalar."""
    if dtype.kind == "b":
        return "i1"
    return _FLOATS[dtype.itemsize] if dtype.kind == "f" else f"i{8 * dtype.itemsize}"


def vector_type(dtype: np.dtype, lanes: int) -> str:
    """LLVM's type of a vector of scalars; of a scalar if there is one lane."""
    text = type_text(dtype)
    return text if lanes == 1 else f"<{lanes} x {text}>"


def memory_type(dtype: np.dtype) -> str:
    """LLVM's type of an element of an array."""
    return "i8" if dtype.kind == "b" else type_text(dtype)


def number_text(number: Number) -> str:
    """LLVM's text of a constant."""
    value, kind = number.value, number.dtype.kind
    if kind == "b":
        return "true" if value else "false"
    if kind != "f":
        return str(int(value))
    bits = np.float64(value).view("u8")  # LLVM writes a float as the double of the same value
    return f"0x{int(bits):016X}"

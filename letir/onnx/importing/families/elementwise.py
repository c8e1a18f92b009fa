"""Operators on each element: arithmetic, functions, comparisons, logic, bits, conversions."""

import functools
from typing import Any

import numpy as np

import letir.numpy as lnp
from letir.ast.process_state import float_errors
from letir.errors import DTypeError, MissingRule
from letir.onnx.importing.tensors import dtype_of
from letir.onnx.importing.values import is_known, known_array, number_like
from letir.ops.special.special_functions import erf

# ---- arithmetic ----


def _divide(a: Any, b: Any) -> Any:
    """Div: the quotient; for integers rounded toward 0."""
    if a.dtype.kind == "f" or a.dtype.kind == "c":
        return np.divide(a, b)
    if a.dtype.kind == "u":
        return np.floor_divide(a, b)
    # floor_divide rounds down, ONNX toward 0
    rest = np.fmod(a, b)
    return np.floor_divide(np.subtract(a, rest), b)


def _modulo(a: Any, b: Any, fmod: int = 0) -> Any:
    """Mod: with ``fmod`` the result has the sign of ``a``."""
    return np.fmod(a, b) if fmod else np.mod(a, b)


def _power(a: Any, b: Any) -> Any:
    """Pow: the result has the dtype of the base."""
    if a.dtype.kind in "iu" and b.dtype.kind == "f":
        return np.power(a.astype(np.float64), b).astype(a.dtype)
    if a.dtype.kind in "iu" and is_known(b):
        # a negative power of an integer is an error in NumPy
        return (
            np.power(a.astype(np.float64), b).astype(a.dtype)
            if (b < 0).any()
            else _cast(np.power(a, b), a.dtype)
        )
    return np.power(a, b if a.dtype.kind in "iu" else b.astype(a.dtype)).astype(a.dtype)


def _cast(x: Any, dtype: Any) -> Any:
    """``x`` with another dtype."""
    return x if x.dtype == dtype else x.astype(dtype)


def _fold(f: Any) -> Any:
    """The operator that applies ``f`` to any number of operands from the left."""

    def run(*operands: Any) -> Any:
        return functools.reduce(f, operands)

    return run


def _average(*operands: Any) -> Any:
    """Mean: the mean of the operands, element by element."""
    return functools.reduce(np.add, operands) / number_like(len(operands), operands[0])


def _clip(x: Any, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Clip: the bounds are inputs; before version 11 they were attributes."""
    low = number_like(min, x) if low is None and min is not None else low
    high = number_like(max, x) if high is None and max is not None else high
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _reciprocal(x: Any) -> Any:
    """Reciprocal: 1 / x."""
    return number_like(1, x) / x


def _identity(x: Any) -> Any:
    """Identity: the value itself."""
    return x


def _is_infinite(x: Any, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    """IsInf: whether an element is one of the infinities that are asked for."""
    if detect_negative and detect_positive:
        return np.isinf(x)
    sign = x < 0 if detect_negative else x > 0
    return np.logical_and(np.isinf(x), sign) if detect_negative or detect_positive else sign & False


# ---- conversions ----


def _convert(x: Any, dtype: np.dtype, saturate: int, mode: str) -> Any:
    """Cast: ``x`` as another type."""
    if x.dtype.kind == "U" or dtype.kind in "OU":
        return _convert_text(x, dtype)
    if dtype.name.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2")) and saturate:
        raise MissingRule("Cast: numbers of less than 8 bits are not supported\n  cast to int8")
    if x.dtype.kind == "f" and dtype.kind in "iu" and is_known(x):
        with float_errors(all="ignore"):
            return x.astype(dtype)
    return _cast(x, dtype)


def _convert_text(x: Any, dtype: np.dtype) -> Any:
    """Cast between numbers and strings, which is done when the model is loaded."""
    array = known_array(x, "Cast: the numbers of a string")
    if dtype.kind in "OU":
        return array.astype(np.str_)
    return array.astype(np.float64).astype(dtype) if dtype.kind != "b" else array != "False"


def _cast_to(x: Any, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """Cast: ``x`` as the element type ``to``."""
    return _convert(x, dtype_of(to), saturate, round_mode)


def _cast_like(x: Any, y: Any, saturate: int = 1, round_mode: str = "up") -> Any:
    """CastLike: ``x`` with the dtype of ``y``."""
    return _convert(x, y.dtype, saturate, round_mode)


def _bit_cast(x: Any, to: int) -> Any:
    """BitCast: the same bits as another type of the same width."""
    dtype = dtype_of(to)
    if dtype.itemsize != x.dtype.itemsize:
        raise DTypeError(
            f"BitCast: {x.dtype} and {dtype} have different numbers of bits\n"
            "  choose a type of the same width"
        )
    if is_known(x):
        return x.view(dtype)
    if x.dtype.kind in "iu" and dtype.kind in "iu":
        return x.astype(dtype)
    return x if x.dtype == dtype else known_array(x, "BitCast: the bits").view(dtype)


def _shift(x: Any, by: Any, direction: str) -> Any:
    """BitShift: to the left or to the right."""
    return np.left_shift(x, by) if direction == "LEFT" else np.right_shift(x, by)


def _where(condition: Any, x: Any, y: Any) -> Any:
    """Where: ``x`` where the condition is true, else ``y``."""
    return np.where(condition, x, y)


def _erf(x: Any) -> Any:
    """Erf: the error function."""
    return erf(x)


def _legacy(f: Any) -> Any:
    """The operator of two arrays; before version 7 with attributes ``axis`` and ``broadcast``."""

    def run(a: Any, b: Any, axis: int | None = None, broadcast: int = 0) -> Any:
        if axis is not None and broadcast and b.ndim:
            b = lnp.reshape(b, (*b.shape, *[1] * (a.ndim - axis % a.ndim - b.ndim)))
        return f(a, b)

    return run


OPERATORS: dict[str, Any] = {
    **{"Add": _legacy(np.add), "Sub": _legacy(np.subtract), "Mul": _legacy(np.multiply)},
    **{"Div": _legacy(_divide), "Pow": _legacy(_power), "Mod": _modulo, "Neg": np.negative},
    **{"Abs": np.abs, "Sign": np.sign, "Ceil": np.ceil, "Floor": np.floor, "Round": np.rint},
    **{"Sqrt": np.sqrt, "Exp": np.exp, "Log": np.log, "Reciprocal": _reciprocal, "Erf": _erf},
    **{"Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos},
    **{"Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh},
    **{"Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh},
    **{"Max": _fold(np.maximum), "Min": _fold(np.minimum), "Sum": _fold(np.add)},
    **{"Mean": _average, "Clip": _clip, "Identity": _identity, "Where": _where},
    **{"Equal": _legacy(np.equal), "Less": _legacy(np.less), "Greater": _legacy(np.greater)},
    **{"LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal, "Not": np.logical_not},
    **{"And": _legacy(np.logical_and), "Or": _legacy(np.logical_or)},
    **{"Xor": _legacy(np.logical_xor), "IsNaN": np.isnan, "IsInf": _is_infinite},
    **{"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor},
    **{"BitwiseNot": np.invert, "BitShift": _shift, "BitCast": _bit_cast},
    **{"Cast": _cast_to, "CastLike": _cast_like},
}

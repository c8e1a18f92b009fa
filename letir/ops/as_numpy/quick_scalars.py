"""Quick forms of NumPy's scalars: Python's operators and functions in place of ufuncs.

See ``quick_forms``, which includes these forms, for the ``write`` of a form.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.terms import Bind, Const
from letir.ops.as_numpy.quick_numbers import INT, NUMBERS, SCALAR, is_local, number_test

_FLOAT, _INT = np.dtype(np.float64), np.dtype(np.int64)
_COMPLEX = np.dtype(np.complex128)
# operators may round other complex products differently than ufuncs, which have fused operations
_EXACT_COMPLEX = ("add", "sub", "div")
_MAX_EXACT = 1 << 53  # integers up to this one are exact as floats


def scalar_operator(write: Any, bind: Bind, symbol: str) -> str | None:
    """Python's operator, which NumPy's scalars compute without a ufunc."""
    result = write.result
    if write.plain or result is None or result.shape or result.weak:
        return None
    if symbol in ("==", "!=") and all(_is_flag(write, i) for i in range(2)):
        return f"{write.slot(0)} {symbol} {write.slot(1)}"
    if not all(_is_scalar(write, i) for i in range(2)):
        return None
    if all(write.fact(i) in NUMBERS for i in range(2)):
        test = number_test(write, bind)
        if test is None:
            return None
        return f"{write.constant(np.True_)} if {test} else {write.constant(np.False_)}"
    is_integer = [_is_integer(write, i) for i in range(2)]
    if result.dtype == _COMPLEX and not _is_exact_complex(write, bind.op.name):
        return None
    if not all(is_integer) and any(write.fact(i) == INT and is_local(write, i) for i in range(2)):
        return None  # NumPy converts the integer, which may be too large to be exact
    if all(is_integer) and result.dtype != np.bool_:
        write.has_integers = True  # overflow warns here, and wraps around in a ufunc
    return f"{_scalar_text(write, 0)} {symbol} {_scalar_text(write, 1)}"


def _is_exact_complex(write: Any, name: str) -> bool:
    """Whether an operator of complex scalars gives the bits of the ufunc."""
    return name in _EXACT_COMPLEX or (
        name == "mul" and any(_has_zero_part(write, i) for i in range(2))
    )


def _scalar_text(write: Any, i: int) -> str:
    """The text of an operand; the plan has constant complex numbers as arrays without axes."""
    arg = write.bind.args[i]
    if type(arg) is Const and type(arg.value) is complex:
        return write.constant(np.complex128(arg.value))
    return write.operand(i)


def _is_flag(write: Any, i: int) -> bool:
    """Whether an operand is a boolean scalar."""
    aval = write.type(i)
    is_known = aval is not None and not aval.shape and not aval.weak and aval.dtype == np.bool_
    return is_known and write.fact(i) == SCALAR


def _is_scalar(write: Any, i: int) -> bool:
    """Whether an operand is a scalar of 64 bits a part, or a Python number that becomes one."""
    arg = write.bind.args[i]
    if type(arg) is Const:
        value = arg.value
        is_small = type(value) is int and abs(value) <= _MAX_EXACT
        is_part = type(value) is complex and write.result.dtype == _COMPLEX  # else a comparison
        return is_small or ((is_part or type(value) is float) and bool(np.isfinite(value)))
    aval = write.type(i)
    if aval is None or aval.shape or aval.dtype not in (_FLOAT, _INT, _COMPLEX):
        return False
    return not aval.weak or write.fact(i) in NUMBERS


def _has_zero_part(write: Any, i: int) -> bool:
    """Whether an operand is a known number with a part that is 0: then each part of a complex
    product has one term that is rounded, and one that is 0 or nan.
    """
    value = write.known_number(i)
    if type(value) in (complex, np.complex128):
        return bool(np.isfinite(value)) and not (value.real and value.imag)
    return type(value) in (int, float)


def _is_integer(write: Any, i: int) -> bool:
    arg = write.bind.args[i]
    return type(arg.value) is int if type(arg) is Const else write.type(i).dtype == _INT


def scalar_extremum(ufunc: np.ufunc, symbol: str) -> Callable:
    """The smaller or larger scalar; the ufunc's result for nan and signed zeros."""

    def form(write: Any) -> str | None:
        bound = write.bind.args[1]
        if type(bound) is Const and type(bound.value) is int and write.fact(0) == SCALAR:
            if write.plain or write.type(0).dtype != _INT or write.result.dtype != _INT:
                return None
            other = write.constant(np.int64(bound.value))
            return f"{write.slot(0)} if {write.slot(0)} {symbol} {bound.value} else {other}"
        types = {write.type(i) for i in range(2)}
        if write.plain or len(types) > 1 or any(write.fact(i) != SCALAR for i in range(2)):
            return None
        if types.pop().dtype not in (_FLOAT, _INT):
            return None
        x, y = write.slot(0), write.slot(1)
        other = f"{write.constant(ufunc)}({x}, {y})"
        other = f"{x} if {x} == {y} != 0 else {other}"
        return f"{x} if {x} {symbol} {y} else {y} if {y} {symbol} {x} else {other}"

    return form


def neg_form(write: Any) -> str | None:
    """Python's ``-x`` for a float64 scalar; None for other operands."""
    aval = write.type(0)
    is_scalar = aval is not None and aval.shape == () and not aval.weak and aval.dtype == _FLOAT
    return f"-{write.slot(0)}" if is_scalar and not write.plain else None


def abs_form(write: Any) -> str | None:
    """Python's ``abs(x)`` for a NumPy scalar; None for other operands."""
    aval = write.type(0)
    if write.plain or write.fact(0) != SCALAR or aval is None or aval.dtype not in (_FLOAT, _INT):
        return None
    write.has_integers |= aval.dtype == _INT  # abs of the smallest integer warns here
    return f"abs({write.slot(0)})"


def sqrt_form(write: Any) -> str | None:
    """Python's square root, which is rounded correctly, like NumPy's."""
    aval = write.type(0)
    if write.plain or write.fact(0) != SCALAR or aval is None or aval.dtype != _FLOAT:
        return None
    x = write.slot(0)
    root = f"{write.constant(np.float64)}({write.constant(math.sqrt)}({x}))"
    return f"{root} if {x} >= 0.0 else {write.constant(np.sqrt)}({x})"

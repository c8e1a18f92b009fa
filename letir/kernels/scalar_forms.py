"""Scalar forms: elementwise operations as instructions of the loop language.

An operation's record names its form in the field ``scalar``. The form ``f(b, *operands)`` writes
the operation on one element with the builder ``b``; the operands have the dtypes of NumPy's inner
loop. A form raises TypeError for dtypes that it does not support; then NumPy computes the
operation.
"""

from collections.abc import Callable

import numpy as np

from letir.ast.terms import NO_TYPE, Bind
from letir.kernels.elementary import ELEMENTARY
from letir.kernels.elementary.expression import elementary
from letir.kernels.elementary.remainders import fmod
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Number, Operand
from letir.kernels.scalar_instructions import BOOL, INSTRUCTIONS

Form = Callable[..., Operand]


def scalar_name(bind: Bind) -> str | None:
    """The name of a bind's scalar form, or None."""
    return None if is_of_python_integers(bind) else any_scalar_name(bind)


def any_scalar_name(bind: Bind) -> str | None:
    """``scalar_name``, but also for Python integers, which kernels compute with 64 bits."""
    scalar = bind.op.scalar
    return scalar(**bind.attrs) if callable(scalar) else scalar


def is_of_python_integers(bind: Bind) -> bool:
    """Whether all operands of a bind are Python integers, which do not wrap around."""
    avals = [arg.type for arg in bind.args]
    return bool(avals) and all(
        aval is not None and aval is not NO_TYPE and aval.weak and aval.dtype.kind == "i"
        for aval in avals
    )


def form_of(name: str | None) -> Form | None:
    """The scalar form of this name, or None."""
    return None if name is None else _FORMS.get(name) or ELEMENTARY.get(name)


def is_worth_a_kernel(bind: Bind) -> bool:
    """Whether there is a form of an operation that NumPy may compute one element at a time."""
    return scalar_name(bind) in ELEMENTARY or bool(bind.op.by_element)


def may_raise_flags(name: str) -> bool:
    """Whether a form may raise a floating-point flag for ordinary numbers, such as 0 and -1."""
    return name in _WITH_FLAGS or name in ELEMENTARY


def selects(name: str) -> bool:
    """Whether a form selects one of its operands."""
    return name in _SELECTIONS


def _instruction_form(name: str) -> Form:
    return lambda b, *operands: b.let(name, *operands)


def _truth_value(b: Builder, x: Operand) -> Operand:
    return x if x.dtype == BOOL else b.let("ne", x, b.number(0, x.dtype))


def _logical_form(name: str) -> Form:
    return lambda b, x, y: b.let(name, _truth_value(b, x), _truth_value(b, y))


def _not(b: Builder, x: Operand) -> Operand:
    return b.let("xor", _truth_value(b, x), b.number(True, BOOL))


def _invert(b: Builder, x: Operand) -> Operand:
    ones = True if x.dtype == BOOL else np.bitwise_not(np.zeros((), x.dtype))[()]
    return b.let("xor", x, b.number(ones, x.dtype))


def _arithmetic_form(name: str, of_booleans: str | None = None) -> Form:
    """The form of an arithmetic operation; on booleans NumPy computes ``of_booleans`` instead."""

    def form(b: Builder, *operands: Operand) -> Operand:
        is_boolean = operands[0].dtype == BOOL
        return b.let(of_booleans if is_boolean and of_booleans else name, *operands)

    return form


def _abs(b: Builder, x: Operand) -> Operand:
    if x.dtype.kind == "f":
        return b.let("abs", x)
    if x.dtype.kind in "bu":
        return x
    return b.select(b.let("lt", x, b.number(0, x.dtype)), b.let("neg", x), x)


def _negative(b: Builder, x: Operand) -> Operand:
    return b.sub(b.number(0, x.dtype), x) if x.dtype.kind == "u" else b.let("neg", x)


def _extremum_form(comparison: str, with_nan: bool) -> Form:
    """The form of ``maximum`` or ``minimum`` if ``with_nan``, else of ``fmax`` or ``fmin``.

    For two zeros the result is the second operand, as in NumPy's loops on x86.
    """

    def form(b: Builder, x: Operand, y: Operand) -> Operand:
        first = b.let(comparison, x, y)
        if x.dtype.kind == "f":
            nan = x if with_nan else y
            first = b.let("or", first, b.let("ne", nan, nan))
        return b.select(first, x, y)

    return form


def _clip(b: Builder, x: Operand, low: Operand, high: Operand) -> Operand:
    low_ = _extremum_form("gt", True)(b, x, low)
    return _extremum_form("lt", True)(b, low_, high)


def _sign(b: Builder, x: Operand) -> Operand:
    zero, one = b.number(0, x.dtype), b.number(1, x.dtype)
    if x.dtype.kind in "bu":
        return b.select(b.let("ne", x, zero), one, zero)
    minus = b.number(-1, x.dtype)
    result = b.select(b.let("gt", x, zero), one, b.select(b.let("lt", x, zero), minus, zero))
    return b.select(b.let("ne", x, x), x, result) if x.dtype.kind == "f" else result


def _is_nan(b: Builder, x: Operand) -> Operand:
    return b.let("ne", x, x) if x.dtype.kind == "f" else b.number(False, BOOL)


def _is_inf(b: Builder, x: Operand) -> Operand:
    return b.let("eq", b.let("abs", x), b.number(np.inf, x.dtype))


def _is_finite(b: Builder, x: Operand) -> Operand:
    return b.let("lt", b.let("abs", x), b.number(np.inf, x.dtype))


def _signbit(b: Builder, x: Operand) -> Operand:
    bits = b.bits(x, f"int{8 * x.dtype.itemsize}")
    return b.let("lt", bits, b.number(0, bits.dtype))


def _reciprocal(b: Builder, x: Operand) -> Operand:
    return b.div(b.number(1, x.dtype), x)


def _heaviside(b: Builder, x: Operand, at_zero: Operand) -> Operand:
    zero, one = b.number(0, x.dtype), b.number(1, x.dtype)
    result = b.select(b.let("lt", x, zero), zero, b.select(b.let("gt", x, zero), one, at_zero))
    return b.select(b.let("ne", x, x), x, result)


def _shift_form(name: str) -> Form:
    """A shift; by more bits than the integer has it gives zero, or copies of the sign bit."""

    def form(b: Builder, x: Operand, n: Operand) -> Operand:
        bits = 8 * x.dtype.itemsize
        unsigned = b.bits(n, f"uint{bits}")
        fits = b.let("lt", unsigned, b.number(bits, unsigned.dtype))
        inside = b.select(fits, n, b.number(bits - 1, n.dtype))
        beyond = b.number(0, x.dtype)
        if name == "shr" and x.dtype.kind == "i":
            return b.let(name, x, inside)
        return b.select(fits, b.let(name, x, inside), beyond)

    return form


def _safe_divide(b: Builder, x: Operand, y: Operand) -> Operand:
    """x / y, and 0 where both are 0."""
    zero = b.number(0, x.dtype)
    is_void = b.let("and", b.let("eq", x, zero), b.let("eq", y, zero))
    return b.div(x, b.select(is_void, b.number(1, x.dtype), y))


_fmod = elementary(fmod)


def _remainder(b: Builder, x: Operand, y: Operand) -> Operand:
    """Python's ``x % y``, with the sign of ``y``."""
    zero = b.number(0, x.dtype)
    if x.dtype.kind in "iu":
        return b.sub(x, b.mul(_floor_divide(b, x, y), y))
    rest = _fmod(b, x, y)
    is_apart = b.let("ne", b.let("lt", y, zero), b.let("lt", rest, zero))
    whole = b.let("copysign", zero, y)
    result = b.select(b.let("ne", rest, zero), b.select(is_apart, b.add(rest, y), rest), whole)
    return b.select(b.let("eq", y, zero), rest, result)


def _floor_divide(b: Builder, x: Operand, y: Operand) -> Operand:
    """Python's ``x // y``; a divisor of integers must be a constant."""
    if x.dtype.kind in "iu":
        return _floor_divide_integers(b, x, y)
    zero, one = b.number(0, x.dtype), b.number(1, x.dtype)
    rest = _fmod(b, x, y)
    quotient = b.div(b.sub(x, rest), y)
    is_apart = b.let("ne", b.let("lt", y, zero), b.let("lt", rest, zero))
    is_apart = b.let("and", is_apart, b.let("ne", rest, zero))
    quotient = b.select(is_apart, b.sub(quotient, one), quotient)
    whole = b.let("floor", quotient)
    is_below = b.let("gt", b.sub(quotient, whole), b.number(0.5, x.dtype))
    whole = b.select(is_below, b.add(whole, one), whole)
    exact = b.div(x, y)
    whole = b.select(b.let("ne", quotient, zero), whole, b.let("copysign", zero, exact))
    return b.select(b.let("eq", y, zero), exact, whole)


def _floor_divide_integers(b: Builder, x: Operand, y: Operand) -> Operand:
    """Division by a constant, so that division by 0 (a warning) and overflow are excluded."""
    if type(y) is not Number or y.value in (0, -1):
        raise TypeError("the divisor may be 0")
    result = b.let("quotient", x, y)
    if x.dtype.kind == "u":
        return result
    rest, zero = b.sub(x, b.mul(result, y)), b.number(0, x.dtype)
    is_apart = b.let("ne", b.let("lt", rest, zero), b.number(int(y.value) < 0, BOOL))
    is_apart = b.let("and", is_apart, b.let("ne", rest, zero))
    return b.select(is_apart, b.sub(result, b.number(1, x.dtype)), result)


_WITH_FLAGS = {"div", "fmod", "floor_divide", "reciprocal", "remainder", "safe_divide", "sqrt"}
_SELECTIONS = {"where", "clip", "maximum", "minimum", "fmax", "fmin"}
_FORMS: dict[str, Form] = {
    **{
        name: _instruction_form(name)
        for name in INSTRUCTIONS
        if INSTRUCTIONS[name].result == "same"
    },
    "add": _arithmetic_form("add", "or"),
    "mul": _arithmetic_form("mul", "and"),
    "div": _instruction_form("div"),
    "neg": _negative,
    "positive": lambda b, x: x,
    "conj": lambda b, x: x,
    "stop_gradient": lambda b, x: x,
    "cast": lambda b, x: x,  # the group converts it to the dtype of the result
    "where": lambda b, condition, x, y: b.select(_truth_value(b, condition), x, y),
    "equal": _instruction_form("eq"),
    "not_equal": _instruction_form("ne"),
    "less": _instruction_form("lt"),
    "less_equal": _instruction_form("le"),
    "greater": _instruction_form("gt"),
    "greater_equal": _instruction_form("ge"),
    "logical_and": _logical_form("and"),
    "logical_or": _logical_form("or"),
    "logical_xor": _logical_form("xor"),
    "logical_not": _not,
    "bitwise_and": _instruction_form("and"),
    "bitwise_or": _instruction_form("or"),
    "bitwise_xor": _instruction_form("xor"),
    "invert": _invert,
    "abs": _abs,
    "fabs": _abs,
    "square": lambda b, x: _arithmetic_form("mul", "and")(b, x, x),
    "reciprocal": _reciprocal,
    "safe_divide": _safe_divide,
    "fmod": _fmod,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
    "maximum": _extremum_form("gt", True),
    "minimum": _extremum_form("lt", True),
    "fmax": _extremum_form("gt", False),
    "fmin": _extremum_form("lt", False),
    "clip": _clip,
    "sign": _sign,
    "isnan": _is_nan,
    "isinf": _is_inf,
    "isfinite": _is_finite,
    "signbit": _signbit,
    "heaviside": _heaviside,
    "radians": lambda b, x: b.mul(x, b.number(np.pi / 180, x.dtype)),
    "degrees": lambda b, x: b.mul(x, b.number(180 / np.pi, x.dtype)),
    "left_shift": _shift_form("shl"),
    "right_shift": _shift_form("shr"),
}

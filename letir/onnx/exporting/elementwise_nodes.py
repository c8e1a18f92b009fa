"""Elementwise operations: one node if ONNX has it, several if NumPy's operation differs."""

from collections.abc import Sequence

import numpy as np

from letir.ast.terms import Arg, Bind, Const
from letir.kernels.scalar_lowering import operand_dtypes
from letir.onnx.exporting.node_graph import (
    Graph,
    Unexportable,
    exports_as,
    exports_op,
    refuses_operations,
)

_OF_BOOLEANS = {"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And", "Equal": "Equal"}
_LOGICAL = frozenset(["And", "Or", "Xor", "Not"])
_COMPARISONS = frozenset(["Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
_ON_ALL = frozenset(["Identity", "Where", "Equal", "Cast"])


def emit_node(g: Graph, bind: Bind, kind: str) -> str:
    """One node on the operands, which are cast as NumPy's ufunc casts them."""
    result_dtype = bind.binders[0].type.dtype
    dtypes = operand_dtypes(bind) if len(bind.args) else []
    if kind in _LOGICAL:
        names = [as_truth(g, arg) for arg in bind.args]
        return g(kind, *names)
    names = [g.operand(arg, dtype) for arg, dtype in zip(bind.args, dtypes, strict=True)]
    return node_on(g, kind, names, dtypes[-1], result_dtype)


def node_on(
    g: Graph, kind: str, names: Sequence[str], dtype: np.dtype, result_dtype: np.dtype
) -> str:
    """A node on operands of one dtype, cast to a wider one if runtimes have no kernel for it."""
    if kind in _ON_ALL:
        return g(kind, *names)
    if dtype.kind == "b" and kind in _OF_BOOLEANS:
        return g(_OF_BOOLEANS[kind], *names)
    wide = _runtime_dtype(dtype)
    if wide == dtype:
        return g(kind, *names)
    # wrapping around is the same in the wider type, after the cast back
    result = g(kind, *[g.cast(name, dtype, wide) for name in names])
    is_test = kind in _COMPARISONS or result_dtype.kind == "b"
    return result if is_test else g.cast(result, wide, result_dtype)


def _runtime_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype for which runtimes have kernels, in which ``dtype`` can be computed."""
    if dtype.kind in "bi" and dtype.itemsize < 4:
        return np.dtype(np.int32)
    if dtype.kind == "u":
        return np.dtype(np.int64 if dtype.itemsize < 8 else dtype)
    return dtype


def as_truth(g: Graph, arg: Arg) -> str:
    """The operand as booleans: whether elements are not zero."""
    dtype = arg.type.dtype
    name = g.operand(arg)
    return name if dtype.kind == "b" else is_not(g, name, dtype, 0)


def is_not(g: Graph, name: str, dtype: np.dtype, value: float) -> str:
    """Whether elements differ from a number."""
    return g("Not", g("Equal", name, g.array(value, dtype)))


def loop_operands(g: Graph, bind: Bind) -> tuple[list[str], np.dtype]:
    """The operands as the ufunc casts them, and their dtype."""
    dtypes = operand_dtypes(bind)
    names = [g.operand(arg, dtype) for arg, dtype in zip(bind.args, dtypes, strict=True)]
    return names, dtypes[0]


# ---- casts and identities ----


@exports_op("cast")
def _cast(g: Graph, bind: Bind) -> str:
    target = bind.attrs["dtype"]
    have = bind.args[0].type.dtype
    name = g.operand(bind.args[0])
    if have.kind == "f" and target.kind in "iu" and target.itemsize < 4:
        # by way of a wider integer, to wrap around as in NumPy: runtimes saturate
        return g.cast(g.cast(name, have, np.int64), np.dtype(np.int64), target)
    return g.cast(name, have, target)


@exports_op("weaken", "copy", "stop_gradient", "barrier", "positive", "conj", "real")
def _identity(g: Graph, bind: Bind) -> str:
    aval = bind.binders[0].type
    arg = bind.args[0]
    return g.cast(g.operand(arg), arg.type.dtype, aval.dtype)


@exports_op("special_round")
def _special_round(g: Graph, bind: Bind) -> str:
    return g("Round", g.operand(bind.args[0], bind.binders[0].type.dtype))


@exports_op("imag")
def _imag(g: Graph, bind: Bind) -> str:
    zero = g.array(0, bind.binders[0].type.dtype)
    return g("Mul", g.operand(bind.args[0]), zero)


# ---- comparisons and logic ----


@exports_as(equal="Equal", not_equal="Not")
def _equal(g: Graph, bind: Bind, word: str) -> str:
    names, dtype = loop_operands(g, bind)
    result = node_on(g, "Equal", names, dtype, np.dtype(bool))
    return result if word == "Equal" else g("Not", result)


@exports_op("where")
def _where(g: Graph, bind: Bind) -> str:
    dtype = bind.binders[0].type.dtype
    test, *parts = bind.args
    holds, (on_true, on_false) = as_truth(g, test), [g.operand(part, dtype) for part in parts]
    if dtype.kind == "b":  # for which runtimes have no kernel
        chosen = g("And", holds, on_true), g("And", g("Not", holds), on_false)
        return g("Or", *chosen)
    wide = _runtime_dtype(dtype)
    if wide == np.uint64:  # the bits of an int64 are the same
        wide = np.dtype(np.int64)
    names = [g.cast(name, dtype, wide) for name in (on_true, on_false)]
    return g.cast(g("Where", holds, *names), wide, dtype)


@exports_as(bitwise_and="And", bitwise_or="Or", bitwise_xor="Xor", invert="Not")
def _bitwise(g: Graph, bind: Bind, word: str) -> str:
    names, dtype = loop_operands(g, bind)
    return g(word if dtype.kind == "b" else f"Bitwise{word}", *names)


@exports_op("isfinite")
def _isfinite(g: Graph, bind: Bind) -> str:
    (x,), dtype = loop_operands(g, bind)
    x = g.cast(x, dtype, _floating(dtype))
    return g("Not", g("Or", g("IsNaN", x), _is_infinite(g, x, _floating(dtype))))


@exports_op("isnan")
def _isnan(g: Graph, bind: Bind) -> str:
    (x,), dtype = loop_operands(g, bind)
    return g("IsNaN", g.cast(x, dtype, _floating(dtype)))


@exports_op("isinf")
def _isinf(g: Graph, bind: Bind) -> str:
    (x,), dtype = loop_operands(g, bind)
    return _is_infinite(g, g.cast(x, dtype, _floating(dtype)), _floating(dtype))


def _is_infinite(g: Graph, x: str, dtype: np.dtype) -> str:
    return g("Equal", g("Abs", x), g.array(np.inf, dtype))


def _floating(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


@exports_op("signbit")
def _signbit(g: Graph, bind: Bind) -> str:
    (x,), dtype = loop_operands(g, bind)
    return _sign_bit(g, x, dtype)


def _sign_bit(g: Graph, x: str, dtype: np.dtype) -> str:
    """Whether elements have a minus sign; -0.0 has one."""
    zero, one = g.array(0, dtype), g.array(1, dtype)
    # 1 / -0.0 is -inf; nan counts as positive
    whole = g("Where", g("Equal", x, zero), g("Div", one, x), x)
    return g("Less", whole, zero)


@exports_op("copysign")
def _copysign(g: Graph, bind: Bind) -> str:
    (x, y), dtype = loop_operands(g, bind)
    size = g("Abs", x)
    return g("Where", _sign_bit(g, y, dtype), g("Neg", size), size)


# ---- division ----


@exports_op("quotient")
def _quotient(g: Graph, bind: Bind) -> str:
    dtype = bind.binders[0].type.dtype
    x, y = g.operands(bind, dtype)
    zero = g.array(0, dtype)
    is_zero = g("Equal", x, zero)
    return g("Where", is_zero, zero, g("Div", x, g("Where", is_zero, g.array(1, dtype), y)))


@exports_op("floor_divide")
def _floor_divide(g: Graph, bind: Bind) -> str:
    (x, y), dtype = loop_operands(g, bind)
    return floor_quotient(g, x, y, dtype)


def floor_quotient(g: Graph, x: str, y: str, dtype: np.dtype) -> str:
    """``x // y``, by the remainder as NumPy computes it."""
    if dtype.kind == "f":
        rest = _remainder_of(g, x, y, dtype)
        # the difference is a multiple of y up to rounding
        quotient = g("Round", g("Div", g("Sub", x, rest), y))
        return g("Where", g("Equal", y, g.array(0, dtype)), g("Div", x, y), quotient)
    wide = np.dtype(np.int64) if dtype.kind in "bi" or dtype.itemsize < 8 else dtype
    x, y = g.cast(x, dtype, wide), g.cast(y, dtype, wide)
    zero, one = g.array(0, wide), g.array(1, wide)
    is_zero = g("Equal", y, zero)  # NumPy gives 0, where runtimes stop
    y = g("Where", is_zero, one, y)
    quotient = g("Div", g("Sub", x, g("Mod", x, y)), y)
    return g.cast(g("Where", is_zero, zero, quotient), wide, dtype)


@exports_op("remainder")
def _remainder(g: Graph, bind: Bind) -> str:
    (x, y), dtype = loop_operands(g, bind)
    if dtype.kind == "f":
        return _remainder_of(g, x, y, dtype)
    return _integer_mod(g, x, y, dtype, 0)


@exports_op("fmod")
def _fmod(g: Graph, bind: Bind) -> str:
    (x, y), dtype = loop_operands(g, bind)
    return g("Mod", x, y, fmod=1) if dtype.kind == "f" else _integer_mod(g, x, y, dtype, 1)


def _integer_mod(g: Graph, x: str, y: str, dtype: np.dtype, fmod: int) -> str:
    """The remainder of integers; 0 for a division by 0."""
    wide = np.dtype(np.int64) if dtype.kind in "bi" or dtype.itemsize < 8 else dtype
    x, y = g.cast(x, dtype, wide), g.cast(y, dtype, wide)
    zero = g.array(0, wide)
    is_zero = g("Equal", y, zero)
    remainder = g("Mod", x, g("Where", is_zero, g.array(1, wide), y), fmod=fmod)
    return g.cast(g("Where", is_zero, zero, remainder), wide, dtype)


def _remainder_of(g: Graph, x: str, y: str, dtype: np.dtype) -> str:
    """The remainder with the sign of the divisor."""
    rest, zero = g("Mod", x, y, fmod=1), g.array(0, dtype)
    differs = g("Xor", g("Less", rest, zero), g("Less", y, zero))
    is_rest = g("Not", g("Equal", rest, zero))
    return g("Where", g("And", differs, is_rest), g("Add", rest, y), rest)


@exports_op("divmod")
def _divmod(g: Graph, bind: Bind) -> tuple[str, ...]:
    dtype = bind.binders[0].type.dtype
    x, y = g.operands(bind, dtype)
    result = floor_quotient(g, x, y, dtype)
    if dtype.kind == "f":
        return result, _remainder_of(g, x, y, dtype)
    return result, _integer_mod(g, x, y, dtype, 0)


# ---- powers, minima and maxima ----


@exports_op("power", "float_power")
def _power(g: Graph, bind: Bind) -> str:
    (x, y), dtype = loop_operands(g, bind)
    exponent = bind.args[1]
    number = exponent.value if type(exponent) is Const else None
    if number == 2:
        return node_on(g, "Mul", [x, x], dtype, dtype)
    if dtype.kind in "iu" and type(number) is int and 0 < number <= 64:
        return _integer_power(g, x, number, dtype)  # runtimes compute Pow in floating point
    return node_on(g, "Pow", [x, y], dtype, dtype)


def _integer_power(g: Graph, x: str, count: int, dtype: np.dtype) -> str:
    """``x`` to a positive power, by squaring."""
    power = None
    while count:
        if count & 1:
            power = x if power is None else node_on(g, "Mul", [power, x], dtype, dtype)
        count >>= 1
        x = node_on(g, "Mul", [x, x], dtype, dtype) if count else x
    return power or x


@exports_op("square")
def _square(g: Graph, bind: Bind) -> str:
    (x,), dtype = loop_operands(g, bind)
    return node_on(g, "Mul", [x, x], dtype, dtype)


@exports_op("reciprocal")
def _reciprocal(g: Graph, bind: Bind) -> str:
    (x,), dtype = loop_operands(g, bind)
    if dtype.kind == "f":
        return g("Reciprocal", x)
    return g("Div", g.array(1, dtype), x)


@exports_op("round")
def _round(g: Graph, bind: Bind) -> str:
    dtype, decimals = bind.binders[0].type.dtype, bind.attrs["decimals"]
    x = g.operand(bind.args[0], dtype)
    if dtype.kind != "f":
        if decimals < 0:
            raise Unexportable("integers rounded to tens")
        return x
    if decimals == 0:
        return g("Round", x)
    scale = g.array(10.0 ** abs(decimals), dtype)
    scale_op, unscale_op = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return g(unscale_op, g("Round", g(scale_op, x, scale)), scale)


@exports_op("trunc")
def _trunc(g: Graph, bind: Bind) -> str:
    (x,), dtype = loop_operands(g, bind)
    if dtype.kind != "f":
        return x
    size = g("Floor", g("Abs", x))
    return g("Where", _sign_bit(g, x, dtype), g("Neg", size), size)


@exports_as(floor="Floor", ceil="Ceil", rint="Round")
def _rounding(g: Graph, bind: Bind, word: str) -> str:
    (x,), dtype = loop_operands(g, bind)
    return g(word, x) if dtype.kind == "f" else x


@exports_as(sign="Sign", abs="Abs", fabs="Abs", neg="Neg")
def _sign(g: Graph, bind: Bind, word: str) -> str:
    (x,), dtype = loop_operands(g, bind)
    if word == "Sign" and dtype.kind == "f":  # runtimes differ about the sign of nan
        return g("Where", g("IsNaN", x), x, g("Sign", x))
    return x if dtype.kind == "b" else node_on(g, word, [x], dtype, dtype)


@exports_op("heaviside")
def _heaviside(g: Graph, bind: Bind) -> str:
    (x, y), dtype = loop_operands(g, bind)
    zero, one = g.array(0, dtype), g.array(1, dtype)
    step = g("Where", g("Less", x, zero), zero, one)
    result = g("Where", g("Equal", x, zero), y, step)
    return g("Where", g("IsNaN", x), x, result)


@exports_op("modf")
def _modf(g: Graph, bind: Bind) -> tuple[str, str]:
    dtype = bind.binders[0].type.dtype
    x = g.operand(bind.args[0], dtype)
    size = g("Floor", g("Abs", x))
    is_negative = _sign_bit(g, x, dtype)
    whole = g("Where", is_negative, g("Neg", size), size)
    zero = g.array(0, dtype)
    rest = g("Where", _is_infinite(g, x, dtype), zero, g("Sub", x, whole))
    size = g("Abs", rest)
    return g("Where", is_negative, g("Neg", size), size), whole


# the neighbours of a floating-point number need its bits
refuses_operations(
    "ONNX has no access to the bits of floating-point numbers", "nextafter", "spacing"
)

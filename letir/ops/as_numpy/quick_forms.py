"""Quick forms: the cheapest Python texts for operations on NumPy arrays, for plans that run often.

A form gets the writer of ``letir.plan.straight_line`` and returns an expression with the bits, kind
and memory order of ``impl``, or None where it does not apply. Values whose type is not weak and
has axes are arrays of class ``np.ndarray``; others without axes are NumPy scalars or 0-d arrays.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.attrs import Here
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Const
from letir.ast.types import ArrayType
from letir.ops.as_numpy.quick_functions import norm_form, std_form, var_form

_FLOAT, _INT = np.dtype(np.float64), np.dtype(np.int64)
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_OPERATORS = {
    **_ARITHMETIC,
    **{"div": "/", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="},
    **{"equal": "==", "not_equal": "!="},
}
_MOST_EXACT = 1 << 53  # integers up to here are floats


def quick_form(write: Any, bind: Bind) -> str | None:
    """The expression for the result of a bind, None if there is none but the call."""
    name = bind.op.name
    if name in _OPERATORS:
        return _scalar_operator(write, bind, _OPERATORS[name])
    form = _FORMS.get(name)
    return None if form is None else form(write, **bind.attrs)


def write_form(write: Any, bind: Bind) -> tuple[str, str] | None:
    """(test, statement) of a bind that stores its results itself: where the test holds, the
    statement is all there is to do, and the first operand is the result.
    """
    form = _WRITES.get(bind.op.name)
    return None if form is None else form(write, **bind.attrs)


# ---- facts ----

# What is known of a slot: it holds a Python float, a Python int, a NumPy scalar (not a 0-d array),
# or an array that owns its memory. The first two are the names of their classes in the text.
FLOAT, INT, SCALAR, OWNED = "float", "int", "scalar", "owned"
NUMBER_FACTS = {float: FLOAT, int: INT}
_NUMBERS = (FLOAT, INT)
_GIVE_NUMBERS = ("weaken", "math_function", "python_operator")
_GIVE_SCALARS = ("sum", "prod", "max", "min", "mean", "var", "std", "norm", "dot", "matmul")


def number_fact(kind: Any) -> str | None:
    """The fact of a Python number of this type, None for other types."""
    if type(kind) is not ArrayType or not kind.weak:
        return None
    return FLOAT if kind.dtype == _FLOAT else INT if kind.dtype == _INT else None


def result_fact(write: Any, bind: Bind) -> str | None:
    """What is known of the result of a bind with one result."""
    kind, name = write.result, bind.op.name
    if kind is None:
        return None
    if kind.weak:
        return number_fact(kind) if name in _GIVE_NUMBERS else None
    if kind.shape:
        return OWNED if bind.op.memory == "new" else None
    if hasattr(bind.op.impl, "ufunc") or name in _GIVE_SCALARS:
        return SCALAR
    if name == "cast":
        return SCALAR if write.fact(0) in (*_NUMBERS, SCALAR) else None
    return SCALAR if name == "index" and _selects_one(bind) else None


def _selects_one(bind: Bind) -> bool:
    """Whether an index selects an element, not a 0-d array."""
    item, kind = bind.attrs["item"], bind.args[0].type
    entries = item if type(item) is tuple else (item,)
    return len(entries) == kind.ndim and all(type(entry) is int for entry in entries)


# ---- Python numbers ----


def number_form(write: Any, bind: Bind, following: Bind) -> tuple[str, str] | None:
    """(expression, fact) of a bind of Python numbers and the ``weaken`` that follows it.

    NumPy's operators on Python numbers, made Python's again, give Python's bits.
    """
    fact = number_fact(following.binders[0].type)
    if following.op.name != "weaken" or fact is None:
        return None
    facts = [write.fact(i) for i in range(len(bind.args))]
    if not all(known in _NUMBERS for known in facts):
        return None
    form = _NUMBER_FORMS.get(bind.op.name)
    # all integers, or one float at least: a Const alone is folded
    if form is None or (FLOAT in facts) != (fact == FLOAT):
        return None
    text = form(write)
    return None if text is None else (text, fact)


def _number_operator(symbol: str) -> Callable:
    return lambda write: f"{write.operand(0)} {symbol} {write.operand(1)}"


def _number_div(write) -> str | None:
    """A quotient by a number other than zero, by which Python would raise."""
    divisor = write.bind.args[1]
    is_known = type(divisor) is Const and divisor.value
    return f"{write.operand(0)} / {write.operand(1)}" if is_known else None


def _number_power(write) -> str | None:
    """A square, which NumPy's power multiplies as well."""
    exponent = write.bind.args[1]
    if type(exponent) is Const and exponent.value == 2:
        return f"{write.operand(0)} * {write.operand(0)}"
    return None


def _number_extremum(ufunc: np.ufunc, symbol: str) -> Callable:
    """The smaller or larger number; the ufunc's where neither is, for nan and signed zeros."""

    def form(write) -> str | None:
        if write.fact(0) != write.fact(1):  # the result would be of one class or the other
            return None
        x, y = write.operand(0), write.operand(1)
        other = f"{write.constant(ufunc)}({x}, {y}).item()"
        return f"{x} if {x} {symbol} {y} else {y} if {y} {symbol} {x} else {other}"

    return form


_NUMBER_FORMS: dict[str, Callable] = {
    **{name: _number_operator(symbol) for name, symbol in _ARITHMETIC.items()},
    "neg": lambda write: f"-{write.operand(0)}",
    "abs": lambda write: f"abs({write.operand(0)})",
    # correctly rounded as NumPy's; raises for negative numbers
    "sqrt": lambda write: f"{write.constant(math.sqrt)}({write.operand(0)})",
    "div": _number_div,
    "power": _number_power,
    "minimum": _number_extremum(np.minimum, "<"),
    "maximum": _number_extremum(np.maximum, ">"),
}


def _math_function(write, *, name: str) -> str:
    operands = ", ".join(map(write.operand, range(len(write.bind.args))))
    return f"{write.constant(getattr(math, name))}({operands})"


def _python_operator(write, *, operator: str, kind: str) -> str | None:
    """Python's operator, where its class of result is certain."""
    facts = [write.fact(0), write.fact(1)]
    if not all(known in _NUMBERS for known in facts):
        return None
    symbol = {"div": "/", "floor_divide": "//", "remainder": "%"}.get(operator)
    if operator == "power" and facts == [FLOAT, INT]:
        symbol = "**"
    if symbol is None or kind != (FLOAT if operator == "div" or FLOAT in facts else INT):
        return None
    return f"{write.operand(0)} {symbol} {write.operand(1)}"


def _weaken(write) -> str | None:
    return f"{write.slot(0)}.item()" if _is_numpys(write, 0) else None


# ---- NumPy scalars ----


def _scalar_operator(write, bind: Bind, symbol: str) -> str | None:
    """Python's operator, which NumPy's scalars compute without a ufunc."""
    result = write.result
    if write.plain or result is None or result.shape or result.weak:
        return None
    if not all(_is_scalar(write, i) for i in range(2)):
        return None
    if all(write.fact(i) in _NUMBERS for i in range(2)):
        # Python compares an int and a float exactly, which matters for large ones only
        is_same = write.fact(0) == write.fact(1)
        if result.dtype != np.bool_ or not (
            is_same or any(not _is_local(write, i) for i in (0, 1))
        ):
            return None
        test = f"{write.operand(0)} {symbol} {write.operand(1)}"
        return f"{write.constant(np.True_)} if {test} else {write.constant(np.False_)}"
    is_integer = [_is_integer(write, i) for i in range(2)]
    if not all(is_integer) and any(write.fact(i) == INT and _is_local(write, i) for i in range(2)):
        return None  # NumPy converts the integer, which may be too large to be exact
    if all(is_integer) and result.dtype != np.bool_:
        write.has_integers = True  # overflow warns here, and wraps around in a ufunc
    return f"{write.operand(0)} {symbol} {write.operand(1)}"


def _is_scalar(write, i: int) -> bool:
    """Whether an operand is a float64 or int64 scalar, or a Python number that becomes one."""
    arg = write.bind.args[i]
    if type(arg) is Const:
        value = arg.value
        is_small = type(value) is int and abs(value) <= _MOST_EXACT
        return is_small or (type(value) is float and math.isfinite(value))
    kind = write.type(i)
    if kind is None or kind.shape or kind.dtype not in (_FLOAT, _INT):
        return False
    return not kind.weak or write.fact(i) in _NUMBERS


def _is_integer(write, i: int) -> bool:
    arg = write.bind.args[i]
    return type(arg.value) is int if type(arg) is Const else write.type(i).dtype == _INT


def _scalar_extremum(ufunc: np.ufunc, symbol: str) -> Callable:
    """The smaller or larger scalar; the ufunc's where neither is, for nan and signed zeros."""

    def form(write) -> str | None:
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


def _is_local(write, i: int) -> bool:
    return type(write.bind.args[i]) is not Const


def _neg(write) -> str | None:
    kind = write.type(0)
    is_scalar = kind is not None and kind.shape == () and not kind.weak and kind.dtype == _FLOAT
    return f"-{write.slot(0)}" if is_scalar and not write.plain else None


def _is_numpys(write, i: int) -> bool:
    """Whether an operand is an array or a NumPy scalar, not a Python number."""
    kind = write.type(i)
    return kind is not None and not kind.weak and type(write.bind.args[i]) is not Const


def _is_array(write, i: int) -> bool:
    """Whether an operand is an array with axes."""
    return _is_numpys(write, i) and bool(write.type(i).shape)


# ---- reductions ----


def _reduction(ufunc: np.ufunc) -> Callable:
    """The form of a reduction that calls the method of its ufunc at once."""

    def form(write, *, axis, keepdims, dtype=None, initial=None) -> str | None:
        if not _is_array(write, 0) or len(write.bind.args) > 1 or initial is not None:
            return None
        call = f"{write.constant(ufunc.reduce)}({write.slot(0)}, {axis!r}"
        if dtype is not None or keepdims:
            call += f", {None if dtype is None else write.constant(dtype)}"
        return call + (f", None, {keepdims!r})" if keepdims else ")")

    return form


_sum = _reduction(np.add)


def _mean(write, *, axis, dtype, keepdims) -> str | None:
    """The sum over the number of elements, as ``np.mean`` computes it for float64."""
    kind, result = write.type(0), write.result
    if dtype is not None or not _is_array(write, 0) or kind.dtype != _FLOAT or result is None:
        return None
    if not is_static_shape((*kind.shape, *result.shape)) or 0 in kind.shape:
        return None
    total = _sum(write, axis=axis, keepdims=keepdims)
    count = math.prod(kind.shape) // math.prod(result.shape)
    return None if total is None else f"{total} / {float(count)!r}"


def _arg_extremum(method: str) -> Callable:
    def form(write, *, axis, keepdims=False) -> str | None:
        if keepdims or not _is_array(write, 0):
            return None
        return f"{write.slot(0)}.{method}({axis!r})"

    return form


# ---- shapes and parts ----


def _item_text(write, item: Any, first: int) -> str | None:
    """The text of an index whose array entries are the operands from number ``first`` on."""
    entries = item if type(item) is tuple else (item,)
    texts, place = [], first
    for entry in entries:
        if type(entry) is Here:
            texts.append(write.slot(place))
            place += 1
        elif type(entry) is int:
            texts.append(repr(entry))
        elif entry is None or entry is ... or type(entry) is slice:
            texts.append(write.constant(entry))
        else:
            return None
    if place == first and type(item) is tuple:
        return write.constant(item)
    return ", ".join(texts) + ("," if type(item) is tuple and len(texts) == 1 else "")


def _index(write, *, item) -> str | None:
    if not _is_array(write, 0):
        return None
    text = _item_text(write, item, 1)
    return None if text is None else f"{write.slot(0)}[{text}]"


def _index_set(write, *, item) -> tuple[str, str] | None:
    """A store into an array that nothing else refers to."""
    text = _item_text(write, item, 2)
    if text is None or not _is_array(write, 0) or write.fact(0) != OWNED:
        return None
    if not write.is_dying(0) or write.slots[0] in write.slots[1:]:
        return None
    x = write.slot(0)
    return f"getrefcount({x}) == ALONE and {x}.base is None", f"{x}[{text}] = {write.operand(1)}"


def _guard(write, *, value) -> tuple[str, str] | None:
    if type(value) is bool:
        return (write.slot(0) if value else f"not {write.slot(0)}"), ""
    return (f"{write.slot(0)} == {value!r}", "") if type(value) is int else None


def _transpose(write, *, axes) -> str | None:
    if not _is_array(write, 0):
        return None
    return f"{write.slot(0)}.transpose({'' if axes is None else repr(tuple(axes))})"


def _reshape(write, *, shape, order) -> str | None:
    if not _is_array(write, 0) or len(write.bind.args) > 1 or not is_static_shape(shape):
        return None
    return f"{write.slot(0)}.reshape({tuple(shape)!r})" if order == "C" else None


def _zeros(write, *, shape, dtype) -> str | None:
    if write.bind.args or shape is None or not is_static_shape(shape):
        return None
    return f"{write.constant(np.zeros)}({tuple(shape)!r}, {write.constant(dtype)})"


def _copy(write, *, order) -> str | None:
    return f"{write.slot(0)}.copy({order!r})" if _is_array(write, 0) else None


def _cast(write, *, dtype) -> str | None:
    if write.fact(0) in _NUMBERS and dtype == _FLOAT:
        return f"{write.constant(np.float64)}({write.operand(0)})"
    return f"{write.slot(0)}.astype({write.constant(dtype)})" if _is_numpys(write, 0) else None


def _stack(write, *, axis) -> str | None:
    """``np.array`` of scalars, or a concatenation of arrays with a new axis."""
    result, count = write.result, len(write.bind.args)
    if result is None or axis < 0 or result.dtype.kind not in "biuf":
        return None
    if result.ndim == 1 and all(
        _is_numpys(write, i) or write.fact(i) in _NUMBERS for i in range(count)
    ):
        items = ", ".join(map(write.operand, range(count)))
        return f"{write.constant(np.array)}([{items}], {write.constant(result.dtype)})"
    if not all(_is_array(write, i) for i in range(count)):
        return None
    place = write.constant((slice(None),) * axis + (None,))
    items = ", ".join([f"{write.slot(i)}[{place}]" for i in range(count)])
    return f"{write.constant(np.concatenate)}(({items},), {axis})"


def _concatenate(write, *, axis, dtype) -> str | None:
    count = len(write.bind.args)
    if (
        axis is None
        or dtype is not None
        or not count
        or not all(_is_array(write, i) for i in range(count))
    ):
        return None
    items = ", ".join(map(write.slot, range(count)))
    return f"{write.constant(np.concatenate)}(({items},), {axis!r})"


def _direct(function: Callable) -> Callable:
    """The form of an operation that is a function of arrays alone."""

    def form(write) -> str:
        items = ", ".join(map(write.slot, range(len(write.bind.args))))
        return f"{write.constant(function)}({items})"

    return form


def _dot(write) -> str | None:
    if not _is_array(write, 0) or not _is_array(write, 1):
        return None
    return f"{write.slot(0)}.dot({write.slot(1)})"


_FORMS: dict[str, Callable] = {
    "math_function": _math_function,
    "python_operator": _python_operator,
    "weaken": _weaken,
    "neg": _neg,
    "minimum": _scalar_extremum(np.minimum, "<"),
    "maximum": _scalar_extremum(np.maximum, ">"),
    "sum": _sum,
    "prod": _reduction(np.multiply),
    "max": _reduction(np.maximum),
    "min": _reduction(np.minimum),
    "mean": _mean,
    "var": var_form,
    "std": std_form,
    "norm": norm_form,
    "argmax": _arg_extremum("argmax"),
    "argmin": _arg_extremum("argmin"),
    "index": _index,
    "transpose": _transpose,
    "reshape": _reshape,
    "zeros": _zeros,
    "copy": _copy,
    "cast": _cast,
    "stack": _stack,
    "concatenate": _concatenate,
    "where": _direct(np.where),
    "matmul": _direct(np.matmul),
    "dot": _dot,
}
_WRITES: dict[str, Callable] = {"guard": _guard, "index_set": _index_set}

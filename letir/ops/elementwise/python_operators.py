"""``python_operator``: an operator of two Python numbers, computed by Python.

Python and NumPy differ where Python raises (``1.0 / 0.0``, ``1 >> -1``), where the values decide on
the type (``2 ** -1`` is a float, ``(-4.0) ** 0.5`` is complex), and in the rounding of products of
complex numbers.
"""

import operator as python
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import is_final
from letir.ast.terms import Bind, Const
from letir.ast.types import WEAK
from letir.errors import GuardError
from letir.ops.define.records import define
from letir.ops.elementwise.casting import cast

_COMPUTE = {
    "mul": python.mul,
    "div": python.truediv,
    "floor_divide": python.floordiv,
    "remainder": python.mod,
    "power": python.pow,
    "left_shift": python.lshift,
    "right_shift": python.rshift,
    "round": round,
}
_KINDS = {"int": int, "float": float, "complex": complex}


def compute_operator(name: str, x: Any, y: Any, xp: Any = np) -> Any:
    """The operator ``name`` on Python numbers, with Python's errors.

    Raises OverflowError for an integer beyond 64 bits.
    """
    both_int = type(x) is int and type(y) is int
    if both_int and y >= 0 and name in ("power", "left_shift"):
        return PRIMITIVES[name].impl(xp, x, y).item()  # refuses 9**9**9 without computing it
    return _COMPUTE[name](x, y)


def _python_operator_impl(xp, x, y, *, operator, kind):
    """The result. Raises GuardError if it is of another type than ``kind``."""
    x, y = [n.item() if hasattr(n, "item") else n for n in (x, y)]
    result = compute_operator(operator, x, y, xp)
    if type(result).__name__ != kind:
        text = _python_text(operator, repr(x), repr(y))
        raise GuardError(
            f"the program was recorded where this was {_noun_with_article(kind)}, now it is "
            f"{_noun_with_article(type(result).__name__)}: {text}\n"
            "  trace again, or pass numbers whose result has one type: floats for integers, "
            "complex numbers for floats"
        )
    return result


def _python_text(operator: str, x: str, y: str) -> str:
    """The operator in Python's source."""
    if operator == "round":
        return f"round({x}, {y})"
    x = f"({x})" if x.startswith("-") else x  # -4.0 ** 0.5 is -(4.0 ** 0.5)
    return f"{x} {PRIMITIVES[operator].symbol} {y}"


def _noun_with_article(kind: str) -> str:
    """``kind`` as a noun with its article."""
    return {"int": "an int", "float": "a float"}.get(kind, kind)


def may_change_kind(bind: Bind) -> bool:
    """Whether other values may make the result of an operator a number of another type.

    Only a power: ``x ** 0.5`` is complex for a negative float, ``2 ** n`` a float for a negative n.
    """
    if bind.op is not PRIMITIVES["python_operator"] or bind.attrs["operator"] != "power":
        return False
    base, exponent = [arg.value if type(arg) is Const else None for arg in bind.args]
    is_whole = type(exponent) is int or (type(exponent) is float and exponent.is_integer())
    return not is_whole and not (type(base) is float and base > 0)


def _as_kind(x: Any, kind: str) -> Any:
    """An operand of a derivative rule, complex where the result is."""
    if kind != "complex" or not isinstance(x, Value):
        return x
    return x if x.type is None or x.dtype.kind == "c" else cast(x, complex)


def _python_operator_vjp(ct, out, x, y, *, operator, kind):
    if operator == "round" or is_final(PRIMITIVES[operator].vjp):  # piecewise constant
        return None, None
    converted = (_as_kind(x, kind), _as_kind(y, kind))
    cotangents = PRIMITIVES[operator].vjp(ct, out, *converted)
    return tuple(
        # the real part: the cotangent of a real operand is real
        None if ct is None else ct if operand is arg else PRIMITIVES["real"](ct)
        for ct, operand, arg in zip(cotangents, converted, (x, y), strict=True)
    )


def _python_operator_jvp(tangents, out, x, y, *, operator, kind):
    if operator == "round" or is_final(PRIMITIVES[operator].jvp):
        return None
    return PRIMITIVES[operator].jvp(tangents, out, _as_kind(x, kind), _as_kind(y, kind))


def _python_operator_batch(args, axes, *, operator, kind):
    """NumPy's operator: a batch of Python numbers is an array."""
    if operator == "round":
        return PRIMITIVES["round"](args[0], args[1]), axes[0]
    converted = [_as_kind(x, kind) for x in args]
    if kind == "float" and all(_is_integer(x) for x in converted):
        converted[0] = (
            cast(converted[0], float) if isinstance(converted[0], Value) else float(converted[0])
        )
    return PRIMITIVES[operator].batch(converted, axes)


def _is_integer(x) -> bool:
    """Whether an operand is an integer."""
    return x.dtype.kind in "biu" if isinstance(x, Value) else type(x) is int


python_operator = define(
    "python_operator",
    _python_operator_impl,
    lambda x, y, *, operator, kind: WEAK[_KINDS[kind]],
    vjp=_python_operator_vjp,
    jvp=_python_operator_jvp,
    batch=_python_operator_batch,
    source=lambda write, x, y, *, operator, kind: _python_text(operator, x, y),
    rule_reads_numbers=True,
    scalar=lambda operator, kind: operator if kind == "float" else None,
    python_errors=True,
    for_scripts=False,
)

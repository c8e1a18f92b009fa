"""Divisions for derivative rules: ``safe_divide``, in which 0 / 0 is 0, and ``over_squares``.

The dividend of ``safe_divide`` is a cotangent or a tangent. It is 0 where a result is not used, as
in the branch of a ``where`` that is not taken, and an infinite slope there must not turn it into
nan.
"""

from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType
from letir.ops.as_numpy import copied_function
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import (
    add_terms,
    broadcast_tangent,
    define,
    dtypes_for_result,
    takes_gradient,
    ufunc_aval,
    unbroadcast,
)


def _quotient_impl(xp, x, y):
    """x / y, and 0 where both are 0."""
    return xp.divide(x, xp.where((x == 0) & (y == 0), 1, y))


def _quotient_aval(x, y) -> ArrayType:
    """The type rule of x / y."""
    return ufunc_aval(np.divide)(x, y)


def _quotient_vjp(ct, out, x, y):
    """Cotangents of x / y. The one for x must not read x, so that the transform sees division as
    linear in x.
    """
    by_x = unbroadcast(safe_divide(ct, y), x) if takes_gradient(x) else None
    by_y = unbroadcast(-safe_divide(ct * out, y), y) if takes_gradient(y) else None
    return by_x, by_y


def _quotient_jvp(tangents, out, x, y) -> Value:
    """Tangent of x / y by the quotient rule. Where x and y are 0 the result is a constant 0, so the
    tangent of y has no effect there.
    """
    by_x, by_y = tangents
    term = None if by_y is None else -out * PRIMITIVES["where"]((out == 0) & (y == 0), 0, by_y)
    return broadcast_tangent(safe_divide(add_terms((by_x, term)), y), out)


safe_divide = define(
    "quotient",
    _quotient_impl,
    _quotient_aval,
    vjp=_quotient_vjp,
    jvp=_quotient_jvp,
    elementwise=True,
    batch=pointwise_rule("quotient"),
    scalar="safe_divide",
    operand_dtypes=dtypes_for_result,
    source=copied_function(_quotient_impl),
)


# ---- division by a sum of squares ----

# of floats of this many bytes: numbers whose squares, and those of whose reciprocals, are normal;
# and exponents of 2 that move all other numbers between them, or nearly
_SQUARES = {4: (1e15, 70), 8: (1e150, 600)}


def over_squares(number: Any, x: Any, y: Any, out: Any) -> Any:
    """``number / (x**2 + y**2)`` for one of x and y, if squares overflow or underflow too.

    For the rule of a function with result ``out``.
    """
    if out.type is None or out.dtype.kind != "f" or out.dtype.itemsize not in _SQUARES:
        length = PRIMITIVES["hypot"](x, y)
        return number / length / length
    most, exponent = _SQUARES[out.dtype.itemsize]
    where = PRIMITIVES["where"]
    size = PRIMITIVES["maximum"](abs(x), abs(y))
    small, large = [out.dtype.type(2.0**n) for n in (-exponent, exponent)]
    scale = where(size > most, small, where(size < 1 / most, large, out.dtype.type(1)))
    x, y = x * scale, y * scale
    return number * scale / (x * x + y * y) * scale

"""``safe_divide``: a division for rules, in which 0 / 0 is 0.

What is divided is a cotangent or a tangent. It is 0 where a result is not used, as in the branch of
a ``where`` that is not taken; a slope that is infinite there must not make it nan.
"""

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType
from letir.ops.as_numpy.copied_functions import copied_function
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import (
    add_terms,
    broadcast_tangent,
    define,
    takes_gradient,
    ufunc_aval,
    unbroadcast,
)


def _quotient_impl(xp, x, y):
    """x / y, but 0 where both are 0."""
    return xp.divide(x, xp.where((x == 0) & (y == 0), 1, y))


def _quotient_aval(x, y) -> ArrayType:
    """That of a division."""
    return ufunc_aval(np.divide)(x, y)


def _quotient_vjp(ct, out, x, y):
    """Those of a division; by x it does not depend on x, as linear maps have to."""
    by_x = unbroadcast(safe_divide(ct, y), x) if takes_gradient(x) else None
    by_y = unbroadcast(-safe_divide(ct * out, y), y) if takes_gradient(y) else None
    return by_x, by_y


def _quotient_jvp(tangents, out, x, y) -> Value:
    """The product rule; what is 0 does not change with y, however fast that changes."""
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
    source=copied_function(_quotient_impl),
)

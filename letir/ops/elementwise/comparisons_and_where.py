"""Comparisons, logic and bits, which have no derivatives, and the choice ``where``."""

import numpy as np

from letir.ast import operators as python
from letir.ast.primitive import Primitive
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import (
    SAFE,
    broadcast_tangent,
    define,
    discrete,
    result_dtype,
    takes_gradient,
    unbroadcast,
)

_SILENT: dict = {**SAFE, "no_float_errors": True}

# ---- comparisons, logic, bits ----

equal = discrete("equal", np.equal, python=python.EQUAL, onnx="Equal", commutative=True, **_SILENT)
not_equal = discrete(
    "not_equal", np.not_equal, python=python.NOT_EQUAL, commutative=True, **_SILENT
)
less = discrete("less", np.less, python=python.LESS, onnx="Less", **SAFE)
less_equal = discrete(
    "less_equal", np.less_equal, python=python.LESS_EQUAL, onnx="LessOrEqual", **SAFE
)
greater = discrete("greater", np.greater, python=python.GREATER, onnx="Greater", **SAFE)
greater_equal = discrete(
    "greater_equal", np.greater_equal, python=python.GREATER_EQUAL, onnx="GreaterOrEqual", **SAFE
)
logical_and = discrete(
    "logical_and",
    np.logical_and,
    methods={"reduce": "all"},
    onnx="And",
    commutative=True,
    **SAFE,
)
logical_or = discrete(
    "logical_or", np.logical_or, methods={"reduce": "any"}, onnx="Or", commutative=True, **SAFE
)
logical_xor = discrete("logical_xor", np.logical_xor, onnx="Xor", commutative=True, **SAFE)
logical_not = discrete("logical_not", np.logical_not, onnx="Not", **SAFE)
bitwise_and = discrete("bitwise_and", np.bitwise_and, symbol="&", commutative=True, **_SILENT)
bitwise_or = discrete("bitwise_or", np.bitwise_or, symbol="|", commutative=True, **_SILENT)
bitwise_xor = discrete("bitwise_xor", np.bitwise_xor, symbol="^", commutative=True, **_SILENT)
invert = discrete(
    "invert", np.invert, source=arrays.invert, python=python.COUNTS_BOOLEANS, **_SILENT
)
isnan = discrete("isnan", np.isnan, onnx="IsNaN", **_SILENT)
isinf = discrete("isinf", np.isinf, onnx="IsInf", **_SILENT)
isfinite = discrete("isfinite", np.isfinite, **_SILENT)

# ---- choice ----


def _where_aval(condition, x, y):
    """The dtype that the two choices promote to, and the three shapes broadcast."""
    return ArrayType(result_dtype(x, y), broadcast_shapes(condition.shape, x.shape, y.shape))


def _where_vjp(ct, out, condition, x, y):
    """The cotangent, chosen for x and y by the condition. Never multiplied by it: a nan in the
    choice not taken must not spread.
    """
    by_x = unbroadcast(where(condition, ct, 0), x) if takes_gradient(x) else None
    by_y = unbroadcast(where(condition, 0, ct), y) if takes_gradient(y) else None
    return None, by_x, by_y


def _where_jvp(tangents, out, condition, x, y):
    """The tangent of the chosen operand."""
    _, by_x, by_y = tangents
    return broadcast_tangent(
        where(condition, 0 if by_x is None else by_x, 0 if by_y is None else by_y), out
    )


def _where_prepare(condition, *choices):
    """np.where with both choices; without them it is np.nonzero, another operation."""
    if len(choices) != 2:
        raise ShapeError(
            "where: either both or neither of x and y should be given\n"
            "  write where(condition, x, y), or nonzero(condition)"
        )
    return (condition, *choices), {}


where: Primitive = define(
    "where",
    lambda xp, condition, x, y: xp.where(condition, x, y),
    _where_aval,
    vjp=_where_vjp,
    jvp=_where_jvp,
    prepare=_where_prepare,
    numpy=(np.where,),
    batch=pointwise_rule("where"),
    elementwise=True,
    scalar="where",
    reusable=True,
    onnx="Where",
    exact=True,
    never_fails="biuf",
    only_float_warnings=True,
    operand_dtypes=lambda dtype, count: [np.dtype(bool), dtype, dtype],
    compact="array",
    cost="cheap",
    no_float_errors=True,
)

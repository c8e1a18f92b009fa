"""Elementwise operations on NumPy's ufuncs: one record each, given by its derivative.

Read this file first to see what an operation is. Derivatives use the result ``y`` where that saves
work. At points without a derivative they follow the table in docs/semantics.md: 0 for abs and sign
at 0, halves for ties of maximum and minimum, 1 for clip at its bounds. Complex functions follow the
convention of JAX and autograd: the cotangent of z = x + iy is df/dx - i df/dy, and a holomorphic f
has the cotangent ``ct * f'(z)``.
"""

import cmath
import math
from typing import Any

import numpy as np

from letir.ast import operators as python
from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ops.as_numpy import arrays
from letir.ops.define.records import (
    SAFE,
    binary,
    elementwise,
    piecewise_constant,
    takes_gradient,
    unary,
    unbroadcast,
)
from letir.ops.define.safe_division import over_squares, safe_divide
from letir.ops.elementwise.comparisons_and_where import where

# ---- arithmetic ----

add = binary(
    "add",
    lambda g, out, x, y: g,
    lambda g, out, x, y: g,
    numpy=np.add,
    methods={"reduce": "sum", "accumulate": "cumsum", "at": "index_add"},
    python=python.ADD,
    onnx="Add",
    commutative=True,
    exact=True,
    never_fails="biu",
    cost="cheap",
)


def _sub_vjp(ct, out, x, y):
    """The cotangent for x, and its negative for y."""
    # -unbroadcast(ct, y), not unbroadcast(-ct, y): the sum may have fewer elements to negate
    by_y = unbroadcast(ct, y)
    return unbroadcast(ct, x), None if by_y is None else -by_y


sub = binary(
    "sub",
    lambda g, out, x, y: g,
    lambda g, out, x, y: -g,
    numpy=np.subtract,
    vjp=_sub_vjp,
    python=python.SUBTRACT,
    onnx="Sub",
    exact=True,
    never_fails="biu",
    cost="cheap",
)
mul = binary(
    "mul",
    lambda g, out, x, y: g * y,
    lambda g, out, x, y: g * x,
    numpy=np.multiply,
    methods={"reduce": "prod", "accumulate": "cumprod"},
    python=python.MULTIPLY,
    onnx="Mul",
    commutative=True,
    exact=True,
    never_fails="biu",
    odd_in=(0, 1),
    cost="cheap",
)


def _div_vjp(ct, out, x, y):
    """ct / y for x, and -ct / y * out for y, negated after it is summed."""
    # the derivative of 1 / y needs only its result, so y is not kept as a residual
    each = ct * out if type(x) in (int, float) and x == 1 else ct / y
    by_y = unbroadcast(each * out, y) if takes_gradient(y) else None
    return unbroadcast(each, x), None if by_y is None else -by_y


div = binary(
    "div",
    lambda g, out, x, y: g / y,
    lambda g, out, x, y: -(g / y) * out,  # not x / (y * y), which overflows sooner
    numpy=np.divide,
    vjp=_div_vjp,
    python=python.DIVIDE,
    onnx="Div",
    exact=True,
    odd_in=(0, 1),
    cost="cheap",
)
neg = elementwise(
    "neg",
    lambda g, y, x: -g,
    numpy=np.negative,
    onnx="Neg",
    source=arrays.neg,
    role="negation",
    python=python.NEGATE,
    **SAFE,
)
positive = elementwise("positive", lambda g, y, x: g, numpy=np.positive, python=python.PLUS, **SAFE)
floor_divide = piecewise_constant(
    "floor_divide", np.floor_divide, python=python.FLOOR_DIVIDE, by_element="fd"
)
remainder = binary(
    "remainder",
    lambda g, out, x, y: g,
    lambda g, out, x, y: -g * floor_divide(x, y),  # x - y * floor(x / y) with a constant floor
    numpy=np.remainder,
    python=python.REMAINDER,
    by_element="fd",
    linear_in=(),
    result_below=1,
)


def power_by_base(g: Any, out: Value, x: Any, y: Any) -> Any:
    """``g`` times the derivative of x**y with respect to x: y * x**(y - 1), 0 where y is 0."""
    # a number is part of the program, so the form is chosen when the rule is recorded
    if type(y) in (int, float):
        return None if y == 0 else g if y == 1 else g * (2 * x if y == 2 else y * x ** (y - 1))
    return g * (y * x ** (y - 1 if isinstance(y, complex) else where(y == 0, 1, y - 1)))


def power_by_exponent(g: Any, out: Value, x: Any, y: Any) -> Any:
    """``g`` times the derivative of x**y with respect to y: x**y * log(x), 0 where x is 0."""
    if out.type is not None and out.dtype.kind == "c":  # the logarithm of a negative x is complex
        x = x.astype(out.dtype) if isinstance(x, Value) else complex(x)
    if type(x) is complex:
        return g * (out * (cmath.log(x) if x else 0))
    if type(x) in (int, float):
        return g * (out * math.log(x)) if x > 0 else g * (out * (0.0 if x == 0 else math.nan))
    return g * (out * log(where(x == 0, 1, x)))


power = binary(
    "power",
    power_by_base,
    power_by_exponent,
    numpy=np.power,
    python=python.POWER,
    onnx="Pow",
    rule_reads_numbers=True,
    raises=lambda x, y: x.dtype.kind in "iub" and y.dtype.kind == "i",
)


def _extremum_share(g: Any, out: Value, x: Any, y: Any) -> Value:
    """``g`` where the result of maximum or minimum is ``x``, half of ``g`` where x == y, else 0."""
    return where(x == y, 0.5 * g, where(x == out, g, 0))


EXTREMUM_TERMS = (_extremum_share, lambda g, out, x, y: _extremum_share(g, out, y, x))
_EXTREMUM: dict = {"commutative": True, "never_fails": "biuf", "cost": "cheap"}
maximum = binary(
    "maximum", *EXTREMUM_TERMS, numpy=np.maximum, methods={"reduce": "max"}, onnx="Max", **_EXTREMUM
)
minimum = binary(
    "minimum", *EXTREMUM_TERMS, numpy=np.minimum, methods={"reduce": "min"}, onnx="Min", **_EXTREMUM
)

# ---- exponentials and logarithms ----

exp = unary("exp", lambda y, x: y, numpy=np.exp, onnx="Exp")
exp2 = unary("exp2", lambda y, x: math.log(2) * y, numpy=np.exp2)
expm1 = unary("expm1", lambda y, x: exp(x), numpy=np.expm1)  # y + 1 would be rounded to 0
log = elementwise("log", lambda g, y, x: g / x, numpy=np.log, onnx="Log")  # rounded once
log2 = elementwise("log2", lambda g, y, x: g / (math.log(2) * x), numpy=np.log2)
log10 = elementwise("log10", lambda g, y, x: g / (math.log(10) * x), numpy=np.log10)
log1p = elementwise("log1p", lambda g, y, x: g / (1 + x), numpy=np.log1p)
# from y, so that x is not a residual; safe_divide: 0 at 0 where the root is not used
sqrt = elementwise(
    "sqrt",
    lambda g, y, x: safe_divide(g, 2 * y),
    numpy=np.sqrt,
    onnx="Sqrt",
    exact=True,
    cost="cheap",
)
cbrt = elementwise("cbrt", lambda g, y, x: safe_divide(g, 3 * y * y), numpy=np.cbrt)
square = unary("square", lambda y, x: 2 * x, numpy=np.square, exact=True, cost="cheap")
reciprocal = unary(
    "reciprocal",
    lambda y, x: -y * y,
    numpy=np.reciprocal,
    onnx="Reciprocal",
    exact=True,
    cost="cheap",
)

# ---- trigonometric and hyperbolic functions ----

sin = unary("sin", lambda y, x: cos(x), numpy=np.sin, onnx="Sin", by_element="d")
cos: Primitive = unary("cos", lambda y, x: -sin(x), numpy=np.cos, onnx="Cos", by_element="d")
tan = unary("tan", lambda y, x: 1 + y * y, numpy=np.tan, onnx="Tan")


def _leg(x, side, angle):
    """sqrt(1 - x**2); for a complex x ``side(angle)``, which is right on both sides of the branch
    cut.
    """
    return side(angle) if x.type is not None and x.dtype.kind == "c" else sqrt(1 - x * x)


arcsin = elementwise("arcsin", lambda g, y, x: g / _leg(x, cos, y), numpy=np.arcsin, onnx="Asin")
arccos = elementwise("arccos", lambda g, y, x: -g / _leg(x, sin, y), numpy=np.arccos, onnx="Acos")
arctan = elementwise("arctan", lambda g, y, x: g / (1 + x * x), numpy=np.arctan, onnx="Atan")
arctan2 = binary(
    "arctan2",
    # operands in the order of np.arctan2(y, x): the first, here x, is the ordinate
    lambda g, out, x, y: g * over_squares(y, x, y, out),
    lambda g, out, x, y: -g * over_squares(x, x, y, out),
    numpy=np.arctan2,
)
hypot: Primitive = binary(
    "hypot",
    lambda g, out, x, y: g * where(out == 0, 0, x / where(out == 0, 1, out)),  # 0 at the origin
    lambda g, out, x, y: g * where(out == 0, 0, y / where(out == 0, 1, out)),
    numpy=np.hypot,
    commutative=True,
    by_element="fd",
)
sinh = unary("sinh", lambda y, x: cosh(x), numpy=np.sinh, onnx="Sinh")
cosh: Primitive = unary("cosh", lambda y, x: sinh(x), numpy=np.cosh, onnx="Cosh")
tanh = unary("tanh", lambda y, x: 1 - y * y, numpy=np.tanh, onnx="Tanh")
arcsinh = elementwise(
    "arcsinh", lambda g, y, x: g / sqrt(x * x + 1), numpy=np.arcsinh, onnx="Asinh"
)
# not sqrt(x * x - 1), which cancels near 1 and is on the wrong branch for complex x
arccosh = elementwise(
    "arccosh",
    lambda g, y, x: g / (sqrt(x - 1) * sqrt(x + 1)),
    numpy=np.arccosh,
    in_domain=1.5,
    onnx="Acosh",
)
# not 1 - x * x, which cancels near 1
arctanh = unary("arctanh", lambda y, x: 1 / (1 - x) / (1 + x), numpy=np.arctanh, onnx="Atanh")

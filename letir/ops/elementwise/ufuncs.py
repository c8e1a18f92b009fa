"""Elementwise operations on NumPy's ufuncs: one record each, given by its derivative.

Read this file first to see what an operation is. Derivatives use the result ``y`` where that saves
work. At points without a derivative they follow the table in docs/semantics.md: 0 for abs and sign
at 0, halves for ties of maximum and minimum, 1 for clip at its bounds. Complex functions follow the
convention of JAX and autograd: the cotangent of z = x + iy is df/dx - i df/dy, and a holomorphic f
has the cotangent ``ct * f'(z)``.
"""

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import (
    SAFE,
    add_terms,
    binary,
    broadcast_tangent,
    define,
    discrete,
    elementwise,
    in_dtype_of_result,
    piecewise_constant,
    recast,
    result_dtype,
    takes_gradient,
    unary,
    unbroadcast,
)
from letir.ops.define.safe_division import safe_divide

# ---- arithmetic ----

add = binary(
    "add",
    lambda g, out, x, y: g,
    lambda g, out, x, y: g,
    numpy=np.add,
    symbol="+",
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
    symbol="-",
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
    symbol="*",
    onnx="Mul",
    commutative=True,
    exact=True,
    never_fails="biu",
    odd_in=(0, 1),
    cost="cheap",
)


def _div_vjp(ct, out, x, y):
    """ct / y for x, and -ct / y * out for y, negated after it is summed."""
    # 1 / y needs its result only: y is not kept as a residual
    each = ct * out if _is_one(x) else ct / y
    by_y = unbroadcast(each * out, y) if takes_gradient(y) else None
    return unbroadcast(each, x), None if by_y is None else -by_y


def _is_one(x) -> bool:
    """Whether an operand is the Python number 1."""
    return type(x) in (int, float) and x == 1


div = binary(
    "div",
    lambda g, out, x, y: g / y,
    lambda g, out, x, y: -(g / y) * out,  # not x / (y * y), which overflows sooner
    numpy=np.divide,
    vjp=_div_vjp,
    symbol="/",
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
    source=arrays.prefix_operator("-"),
    **SAFE,
)
positive = elementwise("positive", lambda g, y, x: g, numpy=np.positive, **SAFE)
floor_divide = piecewise_constant("floor_divide", np.floor_divide, symbol="//")
remainder = binary(
    "remainder",
    lambda g, out, x, y: g,
    lambda g, out, x, y: -g * floor_divide(x, y),  # of x - y * floor(x / y), with a constant floor
    numpy=np.remainder,
    symbol="%",
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


power = binary("power", power_by_base, power_by_exponent, numpy=np.power, symbol="**", onnx="Pow")


def _extremum_share(g: Any, out: Value, x: Any, y: Any) -> Value:
    """``g`` where the result of maximum or minimum is ``x``, half of ``g`` where x == y, else 0."""
    return where(x == y, 0.5 * g, where(x == out, g, 0))


EXTREMUM_TERMS = (_extremum_share, lambda g, out, x, y: _extremum_share(g, out, y, x))
maximum = binary(
    "maximum",
    *EXTREMUM_TERMS,
    numpy=np.maximum,
    onnx="Max",
    commutative=True,
    never_fails="biuf",
    cost="cheap",
)
minimum = binary(
    "minimum",
    *EXTREMUM_TERMS,
    numpy=np.minimum,
    onnx="Min",
    commutative=True,
    never_fails="biuf",
    cost="cheap",
)

# ---- exponentials and logarithms ----

exp = unary("exp", lambda y, x: y, numpy=np.exp, onnx="Exp")
exp2 = unary("exp2", lambda y, x: math.log(2) * y, numpy=np.exp2)
expm1 = unary("expm1", lambda y, x: y + 1, numpy=np.expm1)
# g / x, not g * (1 / x): one operation fewer, and rounded once
log = elementwise("log", lambda g, y, x: g / x, numpy=np.log, onnx="Log")
log2 = elementwise("log2", lambda g, y, x: g / (math.log(2) * x), numpy=np.log2)
log10 = elementwise("log10", lambda g, y, x: g / (math.log(10) * x), numpy=np.log10)
log1p = elementwise("log1p", lambda g, y, x: g / (1 + x), numpy=np.log1p)


def log_share(g: Any, out: Value, x: Any, exponential: Callable) -> Value:
    """``g`` times exp(x - out), the share of the summand ``x`` in logaddexp: 0 for -inf, and never
    nan from inf - inf.
    """
    if out.type is None or x.type is None:
        return g * exponential(where(x == out, 0, x - out))
    most = float(min(np.finfo(x.dtype).max, np.finfo(out.dtype).max))
    x = x if x.type.weak else minimum(x, most)
    return g * exponential(x - clip(out, -most, most))


logaddexp = binary(
    "logaddexp",
    lambda g, out, x, y: log_share(g, out, x, exp),
    lambda g, out, x, y: log_share(g, out, y, exp),
    numpy=np.logaddexp,
    commutative=True,
)
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

sin = unary("sin", lambda y, x: cos(x), numpy=np.sin, onnx="Sin")
cos: Primitive = unary("cos", lambda y, x: -sin(x), numpy=np.cos, onnx="Cos")
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
    lambda g, out, x, y: g * (y / (x * x + y * y)),
    lambda g, out, x, y: -g * (x / (x * x + y * y)),
    numpy=np.arctan2,
)
hypot = binary(
    "hypot",
    lambda g, out, x, y: g * (x / where(out == 0, 1, out)),  # 0 at the origin, not 0 / 0
    lambda g, out, x, y: g * (y / where(out == 0, 1, out)),
    numpy=np.hypot,
    commutative=True,
)
sinh = unary("sinh", lambda y, x: cosh(x), numpy=np.sinh, onnx="Sinh")
cosh: Primitive = unary("cosh", lambda y, x: sinh(x), numpy=np.cosh, onnx="Cosh")
tanh = unary("tanh", lambda y, x: 1 - y * y, numpy=np.tanh, onnx="Tanh")
arcsinh = elementwise(
    "arcsinh", lambda g, y, x: g / sqrt(x * x + 1), numpy=np.arcsinh, onnx="Asinh"
)
# not sqrt(x * x - 1), which cancels near 1 and is on the wrong branch for complex x
arccosh = elementwise(
    "arccosh", lambda g, y, x: g / (sqrt(x - 1) * sqrt(x + 1)), numpy=np.arccosh, onnx="Acosh"
)
arctanh = elementwise("arctanh", lambda g, y, x: g / (1 - x * x), numpy=np.arctanh, onnx="Atanh")

# ---- rounding, signs, complex parts ----

floor = piecewise_constant("floor", np.floor, onnx="Floor", **SAFE)
ceil = piecewise_constant("ceil", np.ceil, onnx="Ceil", **SAFE)
trunc = piecewise_constant("trunc", np.trunc, **SAFE)
rint = piecewise_constant("rint", np.rint, onnx="Round", **SAFE)


def _sign_vjp(ct, y, x):
    """Zero for a real x; for a complex one the part of ``ct`` perpendicular to x, over abs(x)."""
    if x.type is not None and x.dtype.kind != "c":
        return (None,)
    return (unbroadcast(_sign_jvp((conj(ct),), y, x).conj(), x),)


def _sign_jvp(tangents, y, x):
    """i * y * imag(t * conj(y)) / abs(x), which is 0 for a real x."""
    across = imag(tangents[0] * conj(y))  # moving along x leaves its sign unchanged
    return 1j * y * (across / where(x == 0, 1, abs_(x))) if x.dtype.kind == "c" else None


# z / abs(z) for complex z since NumPy 2:
# https://numpy.org/doc/stable/reference/generated/numpy.sign.html
sign = elementwise("sign", numpy=np.sign, vjp=_sign_vjp, jvp=_sign_jvp, onnx="Sign", **SAFE)


def _abs_vjp(ct, y, x):
    """ct times the conjugate of sign(x)."""
    return (unbroadcast(ct * sign(x).conj(), x),)


def _abs_jvp(tangents, y, x):
    """The part of the tangent along ``sign(x)``."""
    return recast(tangents[0] * sign(x).conj(), y.dtype)


abs_ = elementwise("abs", numpy=np.absolute, vjp=_abs_vjp, jvp=_abs_jvp, onnx="Abs", **SAFE)


conj: Primitive = elementwise(
    "conj",
    lambda g, y, x: conj(g),
    numpy=np.conjugate,
    never_fails="biuf",
    odd_in=(0,),
    cost="cheap",
)


def _part_aval(x):
    """The real dtype of a part; the parts of a Python number are Python numbers."""
    return ArrayType(np.empty(0, x.dtype).real.dtype, x.shape, x.weak)


def _write_real(parent, new):
    """Complex numbers of the new real part; the real part of a real array is the array itself."""
    return PRIMITIVES["complex_of"](new, imag(parent)) if parent.dtype.kind == "c" else new


def _write_imag(parent, new):
    """Complex numbers of the new imaginary part."""
    return PRIMITIVES["complex_of"](real(parent), new)


real = define(
    "real",
    lambda xp, x: xp.real(x),
    _part_aval,
    vjp=lambda ct, y, x: (unbroadcast(ct, x) if x.dtype.kind != "c" else ct * (1 + 0j),),
    jvp=lambda t, y, x: recast(t[0], y.dtype),
    numpy=(np.real,),
    batch=pointwise_rule("real"),
    never_fails="biuf",
    odd_in=(0,),
    only_float_warnings=True,
    memory="view",
    cost="free",
    views=lambda x: x is not None,
    write_through=_write_real,
)
imag: Primitive = define(
    "imag",
    lambda xp, x: xp.imag(x),
    _part_aval,
    vjp=lambda ct, y, x: (None if x.dtype.kind != "c" else ct * -1j,),  # df/dx - i df/dy
    jvp=lambda t, y, x: imag(t[0]),
    numpy=(np.imag,),
    batch=pointwise_rule("imag"),
    never_fails="biuf",
    odd_in=(0,),
    only_float_warnings=True,
    is_zero=lambda kind: kind is not None and kind.dtype.kind != "c",
    memory="view",
    cost="free",
    views=lambda x: x is not None and x.dtype.kind == "c",
    write_through=_write_imag,
)

# ---- comparisons, logic, bits ----

equal = discrete(
    "equal", np.equal, symbol="==", onnx="Equal", commutative=True, **SAFE, no_float_errors=True
)
not_equal = discrete(
    "not_equal", np.not_equal, symbol="!=", commutative=True, **SAFE, no_float_errors=True
)
less = discrete("less", np.less, symbol="<", onnx="Less", **SAFE)
less_equal = discrete("less_equal", np.less_equal, symbol="<=", onnx="LessOrEqual", **SAFE)
greater = discrete("greater", np.greater, symbol=">", onnx="Greater", **SAFE)
greater_equal = discrete(
    "greater_equal", np.greater_equal, symbol=">=", onnx="GreaterOrEqual", **SAFE
)
logical_and = discrete("logical_and", np.logical_and, onnx="And", commutative=True, **SAFE)
logical_or = discrete("logical_or", np.logical_or, onnx="Or", commutative=True, **SAFE)
logical_xor = discrete("logical_xor", np.logical_xor, onnx="Xor", commutative=True, **SAFE)
logical_not = discrete("logical_not", np.logical_not, onnx="Not", **SAFE)
bitwise_and = discrete("bitwise_and", np.bitwise_and, symbol="&", commutative=True, **SAFE)
bitwise_or = discrete("bitwise_or", np.bitwise_or, symbol="|", commutative=True, **SAFE)
bitwise_xor = discrete("bitwise_xor", np.bitwise_xor, symbol="^", commutative=True, **SAFE)
invert = discrete("invert", np.invert, source=arrays.prefix_operator("~"), **SAFE)
isnan = discrete("isnan", np.isnan, onnx="IsNaN", **SAFE)
isinf = discrete("isinf", np.isinf, onnx="IsInf", **SAFE)
isfinite = discrete("isfinite", np.isfinite, **SAFE)

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
        raise ShapeError("where: either both or neither of x and y should be given")
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
    reusable=True,
    onnx="Where",
    exact=True,
    never_fails="biuf",
    only_float_warnings=True,
    operand_dtypes=lambda dtype, count: [np.dtype(bool), dtype, dtype],
    cost="cheap",
    no_float_errors=True,
)


def _clip_aval(x, low, high):
    """The dtype and shape of the array promoted and broadcast with the bounds that are not None."""
    there = [kind for kind in (x, low, high) if kind is not None]
    return ArrayType(result_dtype(*there), broadcast_shapes(*[kind.shape for kind in there]))


def _clip_terms(g, out, x, low, high):
    """``g`` for the array, the lower and the upper bound: each element goes to the operand that it
    was taken from, the others get 0.
    """
    # np.clip is minimum(maximum(x, low), high), so the result is high where low > high
    above = False if high is None else (x > high if low is None else maximum(x, low) > high)
    below = False if low is None else x < low
    to_high = None if high is None else where(above, g, 0)
    rest = g if high is None else where(above, 0, g)
    to_low = None if low is None else where(below, rest, 0)
    return rest if low is None else where(below, 0, rest), to_low, to_high


def _clip_vjp(ct, out, x, low, high):
    """The cotangent of each operand where the result was taken from it, else 0."""
    terms = _clip_terms(ct, out, x, low, high)
    return tuple(
        None if t is None else unbroadcast(t, a) for t, a in zip(terms, (x, low, high), strict=True)
    )


def _clip_jvp(tangents, out, x, low, high):
    """The tangent of the operand from which each element was taken."""
    picked = (_clip_terms(g, out, x, low, high)[i] for i, g in enumerate(tangents) if g is not None)
    return broadcast_tangent(add_terms(picked), out)


def _clip_prepare(a, a_min=None, a_max=None, out=None, *, min=None, max=None):
    """np.clip, whose bounds have two names each."""
    return (a, a_min if min is None else min, a_max if max is None else max), {}


clip = define(
    "clip",
    lambda xp, x, low, high: xp.clip(x, low, high),
    _clip_aval,
    vjp=_clip_vjp,
    jvp=_clip_jvp,
    prepare=_clip_prepare,
    numpy=(np.clip,),
    batch=pointwise_rule("clip"),
    elementwise=True,
    reusable=True,
    onnx="Clip",
    only_float_warnings=True,
    operand_dtypes=in_dtype_of_result,
    cost="cheap",
)

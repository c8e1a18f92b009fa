"""Rounding, signs, absolute values, and the parts of complex numbers.

Derivatives of complex functions follow the convention in ``ufuncs.py``.
"""

import numpy as np

from letir.ast import operators as python
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.types import ArrayType
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import (
    SAFE,
    cast_cotangent,
    define,
    elementwise,
    piecewise_constant,
    unbroadcast,
)
from letir.ops.elementwise.comparisons_and_where import where

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
    """The component of the tangent along ``sign(x)``."""
    return cast_cotangent(tangents[0] * sign(x).conj(), y.dtype)


abs_ = elementwise(
    "abs",
    numpy=np.absolute,
    vjp=_abs_vjp,
    jvp=_abs_jvp,
    python=python.COUNTS_BOOLEANS,
    onnx="Abs",
    **SAFE,
)


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
    """``parent`` after its real part was overwritten by ``new``, which is all of a real array."""
    return PRIMITIVES["complex_of"](new, imag(parent)) if parent.dtype.kind == "c" else new


def _write_imag(parent, new):
    """``parent`` after its imaginary part was overwritten by ``new``."""
    return PRIMITIVES["complex_of"](real(parent), new)


real = define(
    "real",
    lambda xp, x: x.real,
    _part_aval,
    vjp=lambda ct, y, x: (unbroadcast(ct, x) if x.dtype.kind != "c" else ct * (1 + 0j),),
    jvp=lambda t, y, x: cast_cotangent(t[0], y.dtype),
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
    lambda xp, x: x.imag,
    _part_aval,
    vjp=lambda ct, y, x: (None if x.dtype.kind != "c" else ct * -1j,),  # df/dx - i df/dy
    jvp=lambda t, y, x: imag(t[0]),
    numpy=(np.imag,),
    batch=pointwise_rule("imag"),
    never_fails="biuf",
    odd_in=(0,),
    only_float_warnings=True,
    is_zero=lambda aval: aval is not None and aval.dtype.kind != "c",
    memory="view",
    cost="free",
    views=lambda x: x is not None and x.dtype.kind == "c",
    write_through=_write_imag,
)


def real_part(x: Value) -> Value:
    """The real part of ``x``; ``x`` itself if it is real."""
    return real(x) if x.type is not None and x.dtype.kind == "c" else x

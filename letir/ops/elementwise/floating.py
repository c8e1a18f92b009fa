"""Further elementwise operations on floating numbers: angles, signs, remainders, parts.

Records of NumPy's ufuncs; read ``ufuncs.py`` first. Of the two results of
modf, frexp and divmod only the fraction, the mantissa and the remainder have a derivative.
``spacing`` is a step function; ``nextafter`` varies with its first operand. The angle of a real
number is constant, 0 or pi; the angle of a complex one has no derivative at 0 (nan). ``unwrap``
adds multiples of the period, so its derivative is 1.
"""

import math

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.types import ArrayType
from letir.ops.define.batch_rules import axes_rule, pointwise_rule
from letir.ops.define.records import (
    add_terms,
    binary,
    broadcast_tangent,
    cast_cotangent,
    composite,
    define,
    discrete,
    elementwise,
    piecewise_constant,
    ufunc_aval,
    ufunc_impl,
    unbroadcast,
)
from letir.ops.elementwise.casting import stop_gradient
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.logaddexp import log_share
from letir.ops.elementwise.rounding_sign_parts import imag, real, rint, sign
from letir.ops.elementwise.ufuncs import (
    EXTREMUM_TERMS,
    arctan2,
    exp2,
    power_by_base,
    power_by_exponent,
)
from letir.ops.shape.shape_and_creation import as_size
from letir.ops.shape.transpose import normalize_axes


def _angle_decompose(x, *, deg=False):
    """arctan2 of the imaginary and the real part."""
    parts = (imag(x), real(x)) if x.dtype.kind == "c" else (0, stop_gradient(x))
    result = arctan2(*parts)
    return result * (180 / math.pi) if deg else result


angle = composite(
    "angle",
    _angle_decompose,
    impl=lambda xp, x, *, deg: xp.angle(x, deg),
    prepare=lambda z, deg=False: ((z,), {"deg": bool(deg)}),
    numpy=(np.angle,),
)


def _unwrap_aval(x, *, discont, axis, period):
    """The dtype that the operand and the period promote to."""
    normalize_axes(axis, x.ndim)
    return ArrayType(np.result_type(x.dtype, period), x.shape)


def _unwrap_prepare(p, discont=None, axis=-1, *, period=2 * math.pi):
    """np.unwrap."""
    return (p,), {"discont": discont, "axis": as_size(axis), "period": period}


unwrap = define(
    "unwrap",
    lambda xp, x, *, discont=None, axis=-1, period=2 * math.pi: xp.unwrap(
        x, discont, axis, period=period
    ),
    _unwrap_aval,
    vjp=lambda ct, y, x, **_: (unbroadcast(ct, x),),
    jvp=lambda t, y, x, **_: cast_cotangent(t[0], y.dtype),
    prepare=_unwrap_prepare,
    numpy=(np.unwrap,),
    batch=axes_rule("unwrap"),
    linear_in=(),
    memory="may_alias",
)


# ---- units of angles ----

_DEGREE = math.pi / 180
radians = elementwise("radians", lambda g, y, x: g * _DEGREE, numpy=np.radians, also=(np.deg2rad,))
degrees = elementwise("degrees", lambda g, y, x: g / _DEGREE, numpy=np.degrees, also=(np.rad2deg,))

# ---- signs and neighbours ----

fabs = elementwise("fabs", lambda g, y, x: g * sign(x), numpy=np.fabs)
copysign = elementwise(
    "copysign",
    lambda g, out, x, y: g * (sign(x) * sign(out)),  # 0 at 0, as for abs
    None,
    numpy=np.copysign,
)
signbit = discrete("signbit", np.signbit, never_fails="biuf")
nextafter = elementwise("nextafter", lambda g, out, x, y: g, None, numpy=np.nextafter, linear_in=())
spacing = piecewise_constant("spacing", np.spacing)
heaviside = elementwise(
    "heaviside", None, lambda g, out, x, y: where(x == 0, g, 0), numpy=np.heaviside, linear_in=()
)

# ---- extrema that ignore nan ----

fmax = binary("fmax", *EXTREMUM_TERMS, numpy=np.fmax)
fmin = binary("fmin", *EXTREMUM_TERMS, numpy=np.fmin)

# ---- remainders and powers ----

fmod = binary(
    "fmod",
    lambda g, out, x, y: g,
    # not trunc(x / y), which is off by one where the quotient rounds up to an integer
    lambda g, out, x, y: -g * rint((x - out) / y),
    numpy=np.fmod,
    by_element="fd",
    linear_in=(),
)


def _cast_to_result_dtype(x, out: Value):
    """An operand cast to the dtype of the result, which is double precision."""
    return x.astype(out.dtype) if isinstance(x, Value) and x.dtype != out.dtype else x


float_power = binary(
    "float_power",
    lambda g, out, x, y: power_by_base(
        g, out, _cast_to_result_dtype(x, out), _cast_to_result_dtype(y, out)
    ),
    lambda g, out, x, y: power_by_exponent(
        g, out, _cast_to_result_dtype(x, out), _cast_to_result_dtype(y, out)
    ),
    numpy=np.float_power,
    by_element="fd",
)
logaddexp2 = binary(
    "logaddexp2",
    lambda g, out, x, y: log_share(g, out, x, exp2),
    lambda g, out, x, y: log_share(g, out, y, exp2),
    numpy=np.logaddexp2,
    by_element="fd",
)
ldexp: Primitive = elementwise("ldexp", lambda g, out, x, i: ldexp(g, i), None, numpy=np.ldexp)

# ---- two results ----


def _define_two_results(name: str, numpy: np.ufunc, vjp, jvp) -> Primitive:
    """Register an elementwise function with two results."""
    return define(
        name,
        ufunc_impl(numpy),
        ufunc_aval(numpy),
        vjp=vjp,
        jvp=jvp,
        results=lambda: 2,
        numpy=(numpy,),
        batch=pointwise_rule(name),
    )


modf = _define_two_results(
    "modf",
    np.modf,
    lambda cts, outs, x: (unbroadcast(cts[0], x),),  # the integral part is a step function
    lambda tangents, outs, x: (broadcast_tangent(tangents[0], outs[0]), None),
)


def _frexp_vjp(cts, outs, x):
    """The cotangent of the mantissa, x / 2**exponent; the exponent is a step function."""
    return (None if cts[0] is None else unbroadcast(ldexp(cts[0], -outs[1]), x),)


frexp = _define_two_results(
    "frexp",
    np.frexp,
    _frexp_vjp,
    lambda tangents, outs, x: (ldexp(broadcast_tangent(tangents[0], outs[0]), -outs[1]), None),
)


def _divmod_vjp(cts, outs, x, y):
    """The cotangents of the remainder, x - quotient * y, with a constant quotient."""
    _, ct = cts
    if ct is None:
        return None, None
    return unbroadcast(ct, x), unbroadcast(-ct * outs[0], y)


def _divmod_jvp(tangents, outs, x, y):
    """The tangent of the remainder; the quotient is a step function and has none."""
    by_x, by_y = tangents
    terms = (by_x, None if by_y is None else -by_y * outs[0])
    return None, broadcast_tangent(add_terms(terms), outs[1])


divmod_ = _define_two_results("divmod", np.divmod, _divmod_vjp, _divmod_jvp)

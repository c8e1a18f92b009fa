"""Elementwise operations on floating numbers that are less often used: parts, signs, remainders,
angles.

Records of NumPy's ufuncs, as in ``elementwise``, which is to be read first. Those with two results
(modf, frexp, divmod) give a derivative to what moves with their operand: the fraction, the
mantissa, the remainder. ``spacing`` is a step function, ``nextafter`` moves with its first operand.
"""

import math

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ops.batching import pointwise
from letir.ops.elementwise import (
    exp2,
    log_share,
    power_by_base,
    power_by_exponent,
    rint,
    share,
    sign,
    where,
)
from letir.ops.makers import (
    added,
    binary,
    discrete,
    elementwise,
    flat,
    match,
    op,
    spread,
    ufunc_aval,
    ufunc_impl,
)

# ---- angles ----

DEGREE = math.pi / 180
radians = elementwise("radians", lambda g, y, x: g * DEGREE, numpy=np.radians, also=(np.deg2rad,))
degrees = elementwise("degrees", lambda g, y, x: g / DEGREE, numpy=np.degrees, also=(np.rad2deg,))

# ---- signs and neighbours ----

fabs = elementwise("fabs", lambda g, y, x: g * sign(x), numpy=np.fabs)
copysign = elementwise(
    "copysign",
    lambda g, out, x, y: g * (sign(x) * sign(out)),  # 0 at 0, as the absolute value has
    None,
    numpy=np.copysign,
)
signbit = discrete("signbit", np.signbit)
nextafter = elementwise("nextafter", lambda g, out, x, y: g, None, numpy=np.nextafter)
spacing = flat("spacing", np.spacing)
heaviside = elementwise(
    "heaviside", None, lambda g, out, x, y: where(x == 0, g, 0), numpy=np.heaviside
)

# ---- extrema that pass over nan ----

fmax = binary("fmax", share, lambda g, out, x, y: share(g, out, y, x), numpy=np.fmax)
fmin = binary("fmin", share, lambda g, out, x, y: share(g, out, y, x), numpy=np.fmin)

# ---- remainders and powers ----

fmod = binary(
    "fmod",
    lambda g, out, x, y: g,
    # not trunc(x / y), which is one too much where the quotient rounds up to an integer
    lambda g, out, x, y: -g * rint((x - out) / y),
    numpy=np.fmod,
)


def wide(x, out: Value):
    """An operand in the double precision of the result."""
    return x.astype(out.dtype) if isinstance(x, Value) and x.dtype != out.dtype else x


float_power = binary(
    "float_power",
    lambda g, out, x, y: power_by_base(g, out, wide(x, out), wide(y, out)),
    lambda g, out, x, y: power_by_exponent(g, out, wide(x, out), wide(y, out)),
    numpy=np.float_power,
)
logaddexp2 = binary(
    "logaddexp2",
    lambda g, out, x, y: log_share(g, out, x, exp2),
    lambda g, out, x, y: log_share(g, out, y, exp2),
    numpy=np.logaddexp2,
)
ldexp = elementwise("ldexp", lambda g, out, x, i: ldexp(g, i), None, numpy=np.ldexp)

# ---- two results ----


def in_two(name: str, numpy: np.ufunc, vjp, jvp) -> Primitive:
    """Register an elementwise function with two results."""
    return op(
        name,
        ufunc_impl(numpy),
        ufunc_aval(numpy),
        vjp=vjp,
        jvp=jvp,
        results=lambda: 2,
        numpy=(numpy,),
        batch=pointwise(name),
    )


modf = in_two(
    "modf",
    np.modf,
    lambda cts, outs, x: (match(cts[0], x),),  # the integral part is a step function
    lambda tangents, outs, x: (spread(tangents[0], outs[0]), None),
)


def frexp_vjp(cts, outs, x):
    """The mantissa is x / 2**exponent."""
    return (None if cts[0] is None else match(ldexp(cts[0], -outs[1]), x),)


frexp = in_two(
    "frexp",
    np.frexp,
    frexp_vjp,
    lambda tangents, outs, x: (ldexp(spread(tangents[0], outs[0]), -outs[1]), None),
)


def divmod_vjp(cts, outs, x, y):
    """The remainder is x - quotient * y."""
    _, ct = cts
    if ct is None:
        return None, None
    return match(ct, x), match(-ct * outs[0], y)


def divmod_jvp(tangents, outs, x, y):
    """No tangent of the quotient, a step function."""
    by_x, by_y = tangents
    terms = (by_x, None if by_y is None else -by_y * outs[0])
    return None, spread(added(terms), outs[1])


divmod_ = in_two("divmod", np.divmod, divmod_vjp, divmod_jvp)

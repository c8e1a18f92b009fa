"""Angles of complex numbers, and angles without jumps: angle, unwrap.

The angle of a real number is 0 or pi, and moves with nothing; at 0 a complex one has no derivative
(nan). ``unwrap`` adds multiples of the period, so that its derivative is that of its operand.
"""

import math

import numpy as np

from letir.ast.types import ArrayType
from letir.ops.batching import on_axes
from letir.ops.casting import stop_gradient
from letir.ops.elementwise import arctan2, imag, real
from letir.ops.makers import composite, match, op, recast
from letir.ops.shaping import normalized
from letir.ops.sizes import as_size


def angle_decompose(x, *, deg=False):
    """The arc tangent of the imaginary part and the real part."""
    parts = (imag(x), real(x)) if x.dtype.kind == "c" else (0, stop_gradient(x))
    found = arctan2(*parts)
    return found * (180 / math.pi) if deg else found


angle = composite(
    "angle",
    angle_decompose,
    impl=lambda xp, x, *, deg: xp.angle(x, deg),
    prepare=lambda z, deg=False: ((z,), {"deg": bool(deg)}),
    numpy=(np.angle,),
)


def unwrap_aval(x, *, discont, axis, period):
    """What the operand and the period promote to."""
    normalized(axis, x.ndim)
    return ArrayType(np.result_type(x.dtype, period), x.shape)


def unwrap_prepare(p, discont=None, axis=-1, *, period=2 * math.pi):
    """np.unwrap's call."""
    return (p,), {"discont": discont, "axis": as_size(axis), "period": period}


unwrap = op(
    "unwrap",
    lambda xp, x, *, discont=None, axis=-1, period=2 * math.pi: xp.unwrap(
        x, discont, axis, period=period
    ),
    unwrap_aval,
    vjp=lambda ct, y, x, **_: (match(ct, x),),
    jvp=lambda t, y, x, **_: recast(t[0], y.dtype),
    prepare=unwrap_prepare,
    numpy=(np.unwrap,),
    batch=on_axes("unwrap"),
)

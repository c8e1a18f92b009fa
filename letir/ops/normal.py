"""The cumulative distribution function of the normal distribution, which NumPy lacks, for gelu.

The numerics are those of ``s_erf.c`` in fdlibm, on arrays:

    Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
    Developed at SunPro, a Sun Microsystems, Inc. business.
    Permission to use, copy, modify, and distribute this software is freely granted, provided that
    this notice is preserved.
"""

import math

from letir.ast.types import ArrayType
from letir.errors import DTypeError
from letir.ops.batching import pointwise
from letir.ops.elementwise import exp
from letir.ops.makers import match, op, recast
from letir.ops.written_functions import itself


def normal_cdf_impl(xp, x):
    """The probability of less than ``x``: erfc(-x / sqrt(2)) / 2, exact to about 1e-15 in the
    relative sense, also far to the left.
    """
    given = xp.asarray(x)
    z = given.astype(xp.float64) * -0.7071067811865476
    dtype = given.dtype if given.dtype.kind == "f" else xp.float64
    return (0.5 * erfc(xp, z)).astype(dtype)[()]


def erfc(xp, x):
    """1 - erf(x) in double precision: a rational function for each of four ranges."""
    small = (0.12837916709551256, -0.3250421072470015, -0.02848174957559851)
    small += (-0.005770270296489442, -2.3763016656650163e-05)
    small_q = (1.0, 0.39791722395915535, 0.0650222499887673, 0.005081306281875766)
    small_q += (0.00013249473800432164, -3.960228278775368e-06)
    one = (-0.0023621185607526594, 0.41485611868374833, -0.3722078760357013, 0.31834661990116175)
    one += (-0.11089469428239668, 0.035478304325618236, -0.002166375594868791)
    one_q = (1.0, 0.10642088040084423, 0.540397917702171, 0.07182865441419627)
    one_q += (0.12617121980876164, 0.01363708391202905, 0.011984499846799107)
    near = (-0.009864944034847148, -0.6938585727071818, -10.558626225323291, -62.375332450326006)
    near += (-162.39666946257347, -184.60509290671104, -81.2874355063066, -9.814329344169145)
    near_q = (1.0, 19.651271667439257, 137.65775414351904, 434.56587747522923)
    near_q += (645.3872717332679, 429.00814002756783, 108.63500554177944, 6.570249770319282)
    near_q += (-0.0604244152148581,)
    far = (-0.0098649429247001, -0.799283237680523, -17.757954917754752, -160.63638485582192)
    far += (-637.5664433683896, -1025.0951316110772, -483.5191916086514)
    far_q = (1.0, 30.33806074348246, 325.7925129965739, 1536.729586084437)
    far_q += (3199.8582195085955, 2553.0504064331644, 474.52854120695537, -22.44095244658582)

    def quotient(p, q, t):
        """The polynomial with coefficients p, divided by that with q."""
        above, below = p[-1], q[-1]
        for c in p[-2::-1]:
            above = above * t + c
        for c in q[-2::-1]:
            below = below * t + c
        return above / below

    size, out = xp.abs(x), xp.full(x.shape, xp.nan)
    here = size < 0.84375
    z = x[here]
    y = z * quotient(small, small_q, z * z)
    out[here] = xp.where(z < 0.25, 1 - (z + y), 0.5 - (y + (z - 0.5)))
    here = (size >= 0.84375) & (size < 1.25)
    z, y = x[here], 0.8450629115104675 + quotient(one, one_q, size[here] - 1)
    out[here] = xp.where(z >= 0, 1 - y, 1 + y)
    for low, high, p, q in ((1.25, 1 / 0.35, near, near_q), (1 / 0.35, 28.0, far, far_q)):
        here = (size >= low) & (size < high)
        z = size[here]
        head = z.astype(xp.float32).astype(xp.float64)  # its square is exact
        y = xp.exp((head - z) * (head + z) + quotient(p, q, 1 / (z * z)))
        y = xp.exp(-head * head - 0.5625) * y / z
        out[here] = xp.where(x[here] >= 0, y, 2 - y)
    out[size >= 28] = 1 - xp.sign(x[size >= 28])
    return out


def normal_cdf_aval(x):
    """The floating dtype of the operand, double precision for others."""
    if x.dtype.kind == "c":
        raise DTypeError(f"the normal distribution function takes real numbers, found {x}")
    return ArrayType(x.dtype if x.dtype.kind == "f" else float, x.shape)


def density(x):
    """The density of the normal distribution."""
    return exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))


normal_cdf = op(
    "normal_cdf",
    normal_cdf_impl,
    normal_cdf_aval,
    vjp=lambda ct, y, x: (match(ct * density(x), x),),
    jvp=lambda t, y, x: recast(t[0] * density(x), y.dtype),
    elementwise=True,
    batch=pointwise("normal_cdf"),
    source=itself(normal_cdf_impl, erfc),
)

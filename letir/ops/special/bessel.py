"""SciPy's Bessel functions, and SciPy's own versions of functions that NumPy has too.

Derivatives with respect to the argument follow Abramowitz and Stegun, 9.1.27 and 9.6.26;
derivatives with respect to the order have no closed form. Functions that are finite at 0 have
derivatives in terms of the function of order 2: the formulas with division by x would fail there.
"""

import math

from letir.ast.primitive import Primitive
from letir.errors import MissingRule
from letir.ops.elementwise.rounding_sign_parts import sign
from letir.ops.elementwise.ufuncs import exp
from letir.ops.special.define import NO_FORM, special
from letir.ops.special.special_functions import unary_special

# ---- of any order ----

jv: Primitive = special("jv", NO_FORM, lambda g, y, v, x: g * (0.5 * (jv(v - 1, x) - jv(v + 1, x))))
yv: Primitive = special("yv", NO_FORM, lambda g, y, v, x: g * (0.5 * (yv(v - 1, x) - yv(v + 1, x))))
iv: Primitive = special("iv", NO_FORM, lambda g, y, v, x: g * (0.5 * (iv(v - 1, x) + iv(v + 1, x))))
kv: Primitive = special(
    "kv", NO_FORM, lambda g, y, v, x: g * (-0.5 * (kv(v - 1, x) + kv(v + 1, x)))
)
yn: Primitive = special("yn", NO_FORM, lambda g, y, n, x: g * (0.5 * (yn(n - 1, x) - yn(n + 1, x))))
kn: Primitive = special(
    "kn", NO_FORM, lambda g, y, n, x: g * (-0.5 * (kn(n - 1, x) + kn(n + 1, x)))
)


def _kve_by_argument(g, y, v, x):
    """The derivative of exp(x) * kv(v, x) with respect to x, times g."""
    return g * (y - 0.5 * (kve(v - 1, x) + kve(v + 1, x)))


def _ive_by_argument(g, y, v, x):
    """The derivative of exp(-abs(real(x))) * iv(v, x) with respect to a real x, times g."""
    if x.type is not None and x.dtype.kind == "c":
        raise MissingRule("ive of complex numbers is not analytic: use iv")
    return g * (0.5 * (ive(v - 1, x) + ive(v + 1, x)) - sign(x) * y)


kve = special("kve", NO_FORM, _kve_by_argument)
ive = special("ive", NO_FORM, _ive_by_argument)

# ---- of orders 0 and 1 ----

j0 = unary_special("j0", lambda y, x: -j1(x))
j1: Primitive = unary_special("j1", lambda y, x: 0.5 * (j0(x) - jv(2, x)))
y0 = unary_special("y0", lambda y, x: -y1(x))
y1: Primitive = unary_special("y1", lambda y, x: 0.5 * (y0(x) - yv(2, x)))
i0 = unary_special("bessel_i0", lambda y, x: i1(x), ufunc="i0")  # NumPy has an i0 too
i1: Primitive = unary_special("i1", lambda y, x: 0.5 * (i0(x) + iv(2, x)))
i0e = unary_special("i0e", lambda y, x: i1e(x) - sign(x) * y)
i1e: Primitive = unary_special("i1e", lambda y, x: 0.5 * (i0e(x) + ive(2, x)) - sign(x) * y)
k0 = unary_special("k0", lambda y, x: -k1(x))
k1: Primitive = unary_special("k1", lambda y, x: -k0(x) - y / x)
k0e = unary_special("k0e", lambda y, x: y - k1e(x))
k1e: Primitive = unary_special("k1e", lambda y, x: y - k0e(x) - y / x)

# ---- functions that NumPy has, as SciPy computes them ----

special_exp2 = unary_special("special_exp2", lambda y, x: math.log(2) * y, ufunc="exp2")
special_expm1 = unary_special("special_expm1", lambda y, x: exp(x), ufunc="expm1")
special_log1p = special("special_log1p", lambda g, y, x: g / (1 + x), ufunc="log1p")
special_cbrt = special("special_cbrt", lambda g, y, x: g / (3 * y * y), ufunc="cbrt")
special_round = special("special_round", ufunc="round")

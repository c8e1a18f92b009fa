"""Elementwise functions that are not ufuncs in NumPy: sinc, and the modified Bessel function i0.

``sinc`` is a Taylor series near 0, so that all its derivatives exist there. The derivative of
``i0`` is the Bessel function of order 1, computed by Chebyshev series on two ranges (Clenshaw,
Chebyshev series for mathematical functions, NPL Mathematical Tables 5, 1962; coefficients computed
with mpmath).
"""

import math

import numpy as np

from letir.ast.primitive import Primitive
from letir.ast.types import ArrayType
from letir.errors import DTypeError
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import broadcast_tangent, composite, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import abs_
from letir.ops.elementwise.ufuncs import sin

# ---- sinc ----


def _sinc_decompose(x):
    """sin(pi * x) / (pi * x), and 1 at 0."""
    y = math.pi * x
    near = abs_(y) < 0.5
    square = where(near, y * y, 0)
    series = 1.0
    for k in range(14, 0, -2):  # error 1e-17 below 0.5; 1e-14 in the second derivative
        series = 1 - square * series / (k * (k + 1))
    y = where(near, 1, y)
    return where(near, series, sin(y) / y)


sinc = composite("sinc", _sinc_decompose, impl=lambda xp, x: xp.sinc(x), numpy=(np.sinc,))

# ---- i0 ----


def _bessel_aval(x):
    """A real floating dtype; double precision for integers."""
    if x.dtype.kind == "c":
        raise DTypeError(
            f"i0 does not take complex numbers, found {x}\n  take .real or abs of them"
        )
    return ArrayType(x.dtype if x.dtype.kind == "f" else float, x.shape)


i0 = define(
    "i0",
    lambda xp, x: xp.i0(x),
    _bessel_aval,
    vjp=lambda ct, y, x: (unbroadcast(ct * i0_slope(x), x),),
    jvp=lambda t, y, x: broadcast_tangent(t[0] * i0_slope(x), y),
    numpy=(np.i0,),
    batch=pointwise_rule("i0"),
)
_WITHIN_8 = (
    *(0.126293593221816827, -0.176416518357834055, 0.102643658689847095, -0.0529459812080949914),
    *(0.0247264490306265168, -0.0105640848946261982, 0.00415642294431288816),
    *(-0.00151357245063125315, 0.000512285956168575773, -0.000161760815825896746),
    *(4.78156510755005423e-5, -1.32731636560394358e-5, 3.47025130813767848e-6),
    *(-8.56872026469545474e-7, 2.00329475355213526e-7, -4.44505912879632808e-8),
    *(9.38153738649577178e-9, -1.88724975172282929e-9, 3.62559028155211704e-10),
    *(-6.66348972350202774e-11, 1.17361862988909016e-11, -1.98397439776494372e-12),
    *(3.22379336594557471e-13, -5.04218550472791169e-14, 7.60068429473540693e-15),
    *(-1.10559694773538631e-15, 1.55363195773620047e-16, -2.11142121435816608e-17),
)
_BEYOND_8 = (
    *(0.38928811750914006, -0.00976109749136146841, -0.000110588938762623716),
    *(-3.88256480887769039e-6, -2.51223623787020893e-7, -2.63146884688951951e-8),
    *(-3.83538038596423702e-9, -5.58974346219658381e-10, -1.89749581235054123e-11),
    *(3.25260358301548824e-11, 1.41258074366137813e-11, 2.03562854414708951e-12),
    *(-7.19855177624590851e-13, -4.08355111109219732e-13, -2.10154184277266431e-14),
    *(4.27244001671195135e-14, 1.04202769841288028e-14, -3.8144030724370078e-15),
    *(-1.88035477551078245e-15, 3.30820231092092828e-16, 2.96262899764595014e-16),
    *(-3.20952592199342396e-17, -4.65030536848935833e-17),
)


def _chebyshev_series(t, coefficients: tuple):
    """The Chebyshev series with these coefficients at ``t``, by Clenshaw's recurrence."""
    ahead = further = 0.0 * t
    for c in coefficients[:0:-1]:
        ahead, further = c + 2 * t * ahead - further, ahead
    return coefficients[0] + t * ahead - further


def _i0_slope_impl(xp, x):
    """I1(x): exp(x) times a Chebyshev series in x / 4 - 1 up to 8, in 16 / x - 1 beyond."""
    x = xp.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(float)
    size = xp.abs(x)
    small, large = xp.minimum(size, 8), xp.maximum(size, 8)
    inner = _chebyshev_series(small / 4 - 1, _WITHIN_8) * small * xp.exp(small)
    outer = _chebyshev_series(16 / large - 1, _BEYOND_8) * xp.exp(large) / xp.sqrt(large)
    return xp.copysign(xp.where(size <= 8, inner, outer), x)


def _i0_second_derivative(x):
    """I0(x) - I1(x) / x, whose quotient is computed by a series near 0."""
    near = abs_(x) < 1
    quarter = where(near, 0.25 * (x * x), 0)
    series = 1.0
    for k in range(10, 0, -1):
        series = 1 + quarter * series / (k * (k + 1))
    x_far = where(near, 1, x)
    return i0(x) - where(near, 0.5 * series, i0_slope(x_far) / x_far)


_SLOPE = f'''
def i0_slope(x):
    """The Bessel function I1, the derivative of I0, by its Chebyshev series."""
    within = {_WITHIN_8}
    beyond = {_BEYOND_8}

    def series(t, coefficients):
        ahead = further = 0.0 * t
        for c in coefficients[:0:-1]:
            ahead, further = c + 2 * t * ahead - further, ahead
        return coefficients[0] + t * ahead - further

    x = np.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(float)
    size = np.abs(x)
    small, large = np.minimum(size, 8), np.maximum(size, 8)
    inner = series(small / 4 - 1, within) * small * np.exp(small)
    outer = series(16 / large - 1, beyond) * np.exp(large) / np.sqrt(large)
    return np.copysign(np.where(size <= 8, inner, outer), x)
'''
i0_slope: Primitive = define(
    "i0_slope",
    _i0_slope_impl,
    _bessel_aval,
    vjp=lambda ct, y, x: (unbroadcast(ct * _i0_second_derivative(x), x),),
    jvp=lambda t, y, x: broadcast_tangent(t[0] * _i0_second_derivative(x), y),
    batch=pointwise_rule("i0_slope"),
    source=lambda write, x: f"{write.helper(_SLOPE)}({x})",
)

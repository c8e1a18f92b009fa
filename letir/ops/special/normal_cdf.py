"""``normal_cdf``: the distribution function of the normal distribution, which NumPy lacks.

``gelu`` uses it, and therefore needs no SciPy.
"""

import math

from letir.ast.types import ArrayType
from letir.errors import DTypeError
from letir.ops.as_numpy import copied_function
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import cast_cotangent, define, unbroadcast
from letir.ops.elementwise.ufuncs import exp


def _normal_cdf_impl(xp, x):
    """The probability of less than ``x``, exact to 1e-15 in the relative sense, far to the left
    too.

    The density times a polynomial in t = (z - 5) / (z + 5), divided by 1 + sqrt(2) * z, for z =
    abs(x) (Shepherd and Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2) erfc x, Math.
    Comp., 1981; the terms are sums of Chebyshev's, to 60 digits).
    """
    terms = (
        *(-5.653681660742065e-10, -3.4699000171317083e-10, 6.548287250697723e-09),
        *(4.545041356509558e-09, -4.625922148399785e-08, -3.291508755242886e-08),
        *(2.939102379915857e-07, 1.4920136610816914e-07, -1.949862828729628e-06),
        *(1.7995727073140766e-07, 1.3338626139583815e-05, -1.6747328997516554e-05),
        *(-7.621075727027579e-05, 0.0002828892833447806, -4.4600306645668384e-05),
        *(-0.0024612651308514887, 0.010208851393502095, -0.025178554835797593),
        *(0.04439886132871471, -0.057159048971975226, 0.04764866133894879),
        *(-0.004193708178282688, -0.07005241362061797, 0.6208209264948372),
    )
    array = xp.asarray(x)
    values = array.astype(xp.float64).ravel()
    out = xp.empty_like(values)
    for i in range(0, values.size, 1 << 14):  # blocks that stay in the cache: a fifth of the time
        x = values[i : i + (1 << 14)]
        z = xp.minimum(xp.abs(x), 40)  # beyond, the result is 0 or 1
        t = 1 - 10 / (z + 5)
        tail = xp.full_like(t, terms[0])
        for term in terms[1:]:
            tail *= t
            tail += term
        head = z.astype(xp.float32).astype(xp.float64)  # its square is exact
        tail *= xp.exp(head * head * -0.5) * xp.exp((head - z) * (head + z) * 0.5)
        tail /= 1 + 1.4142135623730951 * z
        out[i : i + (1 << 14)] = xp.where(x < 0, tail, 1 - tail)
    dtype = array.dtype if array.dtype.kind == "f" else xp.float64
    return out.reshape(array.shape).astype(dtype)[()]


def _normal_cdf_aval(x):
    """The dtype of the operand, float64 unless it is floating."""
    if x.dtype.kind == "c":
        raise DTypeError(f"normal_cdf takes real numbers, found {x}\n  take .real")
    return ArrayType(x.dtype if x.dtype.kind == "f" else float, x.shape)


def _normal_density(x):
    """The density of the normal distribution."""
    return exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))


normal_cdf = define(
    "normal_cdf",
    _normal_cdf_impl,
    _normal_cdf_aval,
    vjp=lambda ct, y, x: (unbroadcast(ct * _normal_density(x), x),),
    jvp=lambda t, y, x: cast_cotangent(t[0] * _normal_density(x), y.dtype),
    elementwise=True,
    batch=pointwise_rule("normal_cdf"),
    scalar="ndtr",
    by_element="fd",
    source=copied_function(_normal_cdf_impl),
)

"""``gamma_slope``: the derivative of gamma random numbers with respect to their shape parameter a.

Let F(x; a) be the regularized incomplete gamma function, gammainc, and f its derivative with
respect to x. At a fixed F, dx/da = -(dF/da) / f: the implicit derivative of gamma random numbers
(Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, NeurIPS 2018), which also gives
the derivative of gammainc with respect to a. It has no closed form.
"""

from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import never
from letir.ast.types import ArrayType, broadcast_shapes
from letir.ops.as_numpy import copied_function
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import define, diagonal_rules, result_dtype
from letir.ops.elementwise.ufuncs import log


def _digamma(xp, a):
    """psi(a) and psi'(a) of positive numbers: Abramowitz and Stegun, 6.3.18 and 6.4.12, from a + 8
    down.
    """
    first, second = xp.zeros_like(a), xp.zeros_like(a)
    for i in range(8):
        first, second = first - 1 / (a + i), second + 1 / (a + i) ** 2
    b = a + 8
    r = 1 / (b * b)
    log_part = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132)))))
    first = first + xp.log(b) - 0.5 / b - log_part
    series = 1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (5 / 66))))
    return first, second + 1 / b + r / 2 + series * r / b


def _tail(xp, a, x):
    """(1 - F) / f and its first and second derivative with respect to a, for x above a.

    The continued fraction of Abramowitz and Stegun, 6.5.31, in its even part, from its end.
    """
    steps = 60 + int(0.3 * float(xp.max(a, initial=1.0)) ** 0.5)  # enough for all digits
    value, by_a, twice = x + (2 * steps + 1) - a, -xp.ones_like(x), xp.zeros_like(x)
    for k in range(steps, 0, -1):
        part = -k * (k - a) / value
        part_by_a = (k - part * by_a) / value
        part_twice = -(2 * part_by_a * by_a + part * twice) / value
        value, by_a, twice = x + (2 * k - 1) - a + part, part_by_a - 1, part_twice
    total = x / value
    rise = -total * by_a / value
    return total, rise, -(2 * rise * by_a + total * twice) / value


def _slope_impl(xp, a, x, *, order=1):
    """dx/da at a fixed F(x; a), and its derivative with respect to a at a fixed x.

    Computed from the series of F, Abramowitz and Stegun, 6.5.29, differentiated term by term. For x
    well above a the terms cancel, and 1 - F is used instead. Beyond a = 1e6, where there are
    thousands of terms, the expansion for large a is right to 1e-9.
    """
    dtype = xp.result_type(a, x, 0.0)
    a, x = xp.broadcast_arrays(xp.asarray(a, "float64"), xp.asarray(x, "float64"))
    near = xp.where((a > 0) & (a <= 1e6), a, 1.0)
    y = xp.where(a > 1e6, 1.0, xp.where(x > 0, xp.minimum(x, 1e300), 1.0))
    is_above = y > xp.maximum(near + 2 * xp.sqrt(near), 3.0)
    psi, trigamma = _digamma(xp, near)
    start = xp.log(y) - psi
    below = xp.where(is_above, near, y)
    ratio, by_a, twice = below / near, xp.zeros_like(y), xp.zeros_like(y)
    level, curve, shift = xp.log(below) - psi - 1 / near, trigamma - 1 / near**2, near
    while True:
        term = ratio * level
        by_a, twice = by_a + term, twice + ratio * (level * level - curve)
        # the terms grow up to a + n = x, and fall from there on
        if bool(xp.all((shift > below) & (ratio * (1 + level * level) < 1e-17 * (1 + abs(by_a))))):
            break
        shift = shift + 1
        ratio, level, curve = ratio * (below / shift), level - 1 / shift, curve - 1 / shift**2
    total, rise, bend = _tail(xp, near, xp.where(is_above, y, 2 * near + 3))
    far = xp.where(a > 1e6, (x - a) / xp.where(a > 0, a, 1), 0)
    if order == 1:
        out = xp.where(is_above, start * total + rise, -by_a)
        out = xp.where(a > 1e6, 1 + far / 2 - (far * far - 1 / xp.maximum(a, 1)) / 6, out)
    else:
        above = start * rise + bend - trigamma * total
        out = xp.where(is_above, above, start * by_a - twice)
        out = xp.where(a > 1e6, -x / (2 * xp.maximum(a, 1) ** 2), out)
    out = xp.where((a > 0) & (x > 0), out, xp.nan)
    return xp.where(x <= 0, 0.0, out).astype(dtype)[()]


def _slope_aval(a, x, *, order):
    """The promoted dtype, float64 unless it is floating, in the broadcast shape."""
    dtype = result_dtype(a, x)
    dtype = dtype if dtype.kind == "f" else float
    return ArrayType(dtype, broadcast_shapes(a.shape, x.shape))


_THIRD = never("the incomplete gamma function has two derivatives with respect to a here, no third")


def _second_by_shape(g, y, a, x):
    """The derivative of gamma_slope with respect to a, at a fixed x, times g."""
    return g * gamma_slope(a, x, order=2)


def _second_by_number(g, y, a, x):
    """The derivative of gamma_slope with respect to x, from dF/da + f * dx/da = 0, times g."""
    return g * ((1 - (a - 1) / x) * y - log(x) + PRIMITIVES["psi"](a))


_FIRST = diagonal_rules((_second_by_shape, _second_by_number))
_SECOND = diagonal_rules((_THIRD, _THIRD))

gamma_slope = define(
    "gamma_slope",
    _slope_impl,
    _slope_aval,
    vjp=lambda ct, y, a, x, *, order: (_SECOND if order > 1 else _FIRST)[0](ct, y, a, x),
    jvp=lambda t, y, a, x, *, order: (_SECOND if order > 1 else _FIRST)[1](t, y, a, x),
    batch=pointwise_rule("gamma_slope"),
    elementwise=True,
    source=copied_function(_slope_impl, _digamma, _tail),
)

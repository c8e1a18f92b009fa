"""``betainc_slope``: derivatives of the regularized incomplete beta function by a and b.

I_x(a, b) is a prefactor, x**a (1 - x)**b / (a B(a, b)), over the continued fraction of Abramowitz
and Stegun (A&S), 26.5.8, which is differentiated term by term (Boik and Robison-Cox, Derivatives of
the incomplete beta function, Journal of Statistical Software, 1998). At a fixed I, dx/da is
-(dI/da) over the density: the derivative of quantiles and of random numbers.
"""

from typing import Any

from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import never
from letir.ast.types import ArrayType, broadcast_shapes
from letir.ops.as_numpy import copied_function
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import define, diagonal_rules, result_dtype
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.ufuncs import exp, log, log1p
from letir.ops.special.density_powers import log_of_power, power_at_zero


def _beta_fraction(xp, a, b, x):
    """(v, v_a, v_b, v_aa, v_ab, v_bb): the continued fraction v and its partial derivatives.

    Computed from its end. The number of steps is enough for all digits if x is below the mean.
    """
    large, small = xp.maximum(a, b), xp.minimum(a, b)
    steps = 80 + int(xp.max(4 * xp.sqrt(small) + 0.3 * xp.sqrt(large), initial=0.0))
    v, by_a, by_b = xp.ones_like(x), xp.zeros_like(x), xp.zeros_like(x)
    by_aa, by_ab, by_bb = xp.zeros_like(x), xp.zeros_like(x), xp.zeros_like(x)
    for k in range(steps, 0, -1):
        i, is_odd = k // 2, k % 2
        # the coefficient is c m, where c is of a only, and m is linear in a and b
        r, s, p = a + (k - 1), a + k, a + i
        c = x * p / (r * s) if is_odd else x * i / (r * s)
        level = 1 / p - 1 / r - 1 / s if is_odd else -1 / r - 1 / s
        curve = 1 / r**2 + 1 / s**2 - (1 / p**2 if is_odd else 0)
        m, m_a, m_b = (-(p + b), -1, -1) if is_odd else (b - i, 0, 1)
        c_a, c_aa = c * level, c * (level * level + curve)
        u = c * m / v
        u_a, u_b = (c_a * m + c * m_a - u * by_a) / v, (c * m_b - u * by_b) / v
        by_aa = (c_aa * m + 2 * c_a * m_a - 2 * u_a * by_a - u * by_aa) / v
        by_ab = (c_a * m_b - u_a * by_b - u_b * by_a - u * by_ab) / v
        by_bb = (-2 * u_b * by_b - u * by_bb) / v
        v, by_a, by_b = 1 + u, u_a, u_b
    return v, by_a, by_b, by_aa, by_ab, by_bb


def _psi_step(xp, p, d):
    """psi(p + d) - psi(p) and psi'(p + d) - psi'(p) without cancellation.

    By recurrence up to p + 16, and from there the differences of the terms of A&S 6.3.18 and
    6.4.12.
    """
    first, second = xp.zeros_like(p), xp.zeros_like(p)
    for k in range(16):
        low, high = 1 / (p + k), 1 / (p + d + k)
        part = d * low * high
        first, second = first + part, second - part * (low + high)
    low, high = 1 / (p + 16), 1 / (p + d + 16)
    steps = [
        d * low * high * sum([low**j * high ** (n - 1 - j) for j in range(n)]) for n in range(10)
    ]
    first = first + xp.log1p(d * low) + steps[1] / 2 + steps[2] / 12
    first = first - steps[4] / 120 + steps[6] / 252 - steps[8] / 240
    second = second - steps[1] - steps[2] / 2 - steps[3] / 6
    return first, second + steps[5] / 30 - steps[7] / 42 + steps[9] / 30


def _beta_prefactor(xp, a, b, log_x, log_y):
    """x**a y**b / (a B(a, b)), by Stirling's series, A&S 6.1.40, from a + 17 and b + 16 down."""
    product = xp.zeros_like(a)
    for k in range(16):
        product = product + xp.log((a + (k + 1)) * ((b + k) / (a + b + k)))
    p, q, s = a + 17, b + 16, a + b + 16
    rest = 0.0
    for z, sign in ((s, 1.0), (p, -1.0), (q, -1.0)):
        r = 1 / (z * z)
        rest = rest + sign / z * (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r / 1680)))
    level = a * (log_x + xp.log1p((b - 1) / p)) + b * (log_y + xp.log1p(a / q))
    level = level + 15.5 * (xp.log(s) - xp.log(q)) - 16.5 * xp.log(p)
    return xp.exp(level + rest + product + (17 - 0.9189385332046727))  # log(2 pi) / 2


def _slope_below_mean(xp, a, b, x, y):
    """The derivatives of I_x(a, b) by a, by b, twice by a, by both, twice by b; y is 1 - x."""
    v, v_a, v_b, v_aa, v_ab, v_bb = _beta_fraction(xp, a, b, x)
    log_x = xp.where(x > 0.5, xp.log1p(-xp.minimum(y, 0.5)), xp.log(x))
    log_y = xp.where(x > 0.5, xp.log(y), xp.log1p(-xp.minimum(x, 0.5)))
    value = _beta_prefactor(xp, a, b, log_x, log_y) / v
    (psi_a, trigamma_a), (psi_b, trigamma_b) = _psi_step(xp, a + 1, b - 1), _psi_step(xp, b, a)
    trigamma = _trigamma(xp, a + b)
    by_a, by_b = log_x + psi_a - v_a / v, log_y + psi_b - v_b / v
    by_aa = trigamma_a - v_aa / v + (v_a / v) ** 2 + by_a**2
    by_ab = trigamma - v_ab / v + v_a * v_b / v**2 + by_a * by_b
    by_bb = trigamma_b - v_bb / v + (v_b / v) ** 2 + by_b**2
    return [value * part for part in (by_a, by_b, by_aa, by_ab, by_bb)]


def _trigamma(xp, z):
    """psi'(z) of positive numbers: A&S 6.4.12, from z + 16 down."""
    result = xp.zeros_like(z)
    for k in range(16):
        result = result + 1 / (z + k) ** 2
    b = z + 16
    r = 1 / (b * b)
    return result + 1 / b + r / 2 + r / b * (1 / 6 - r * (1 / 30 - r * (1 / 42 - r / 30)))


def _slope_impl(xp, a, b, x, *, by_a, by_b):
    """The derivative of betainc of order ``by_a`` in a and ``by_b`` in b, one or two in all.

    For x above the mean it is computed from I_x(a, b) = 1 - I_{1-x}(b, a). nan where a and b are
    above 1e10: the continued fraction would take hundreds of thousands of steps there.
    """
    dtype = xp.result_type(a, b, x, 0.0)
    a, b, x = [xp.asarray(part, "float64") for part in (a, b, x)]
    a, b, x = xp.broadcast_arrays(a, b, x)
    is_known = (a > 0) & (b > 0) & (xp.minimum(a, b) <= 1e10) & (xp.maximum(a, b) <= 1e15)
    is_inside = is_known & (x > 0) & (x < 1)
    p, q = [xp.where(is_known, xp.maximum(part, 1e-100), 1.0) for part in (a, b)]
    outside = xp.where(is_known & (x == x), 0.0, xp.nan)
    x = xp.where(is_inside, x, 0.5)
    is_above = x > (p + 1) / (p + q + 2)
    swapped = xp.where(is_above, q, p), xp.where(is_above, p, q)
    ends = xp.where(is_above, 1 - x, x), xp.where(is_above, x, 1 - x)
    parts = _slope_below_mean(xp, *swapped, *ends)
    place = {(1, 0): 0, (0, 1): 1, (2, 0): 2, (1, 1): 3, (0, 2): 4}[by_a, by_b]
    mirror = {0: 1, 1: 0, 2: 4, 3: 3, 4: 2}[place]
    out = xp.where(is_above, -parts[mirror], parts[place])
    return xp.where(is_inside, out, outside).astype(dtype)[()]


def _slope_aval(a, b, x, *, by_a, by_b):
    """The promoted dtype, float64 unless it is floating, in the broadcast shape."""
    dtype = result_dtype(a, b, x)
    return ArrayType(
        dtype if dtype.kind == "f" else float, broadcast_shapes(a.shape, b.shape, x.shape)
    )


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """x**(a - 1) * (1 - x)**(b - 1) / beta(a, b), A&S 6.6.1."""
    level = log_of_power(x, a - 1) + log_of_power(1 - x, b - 1) - PRIMITIVES["betaln"](a, b)
    return exp(level) * power_at_zero(x, a - 1) * power_at_zero(1 - x, b - 1)


def _levels(a, b, x):
    """(whether x is in (0, 1), partial derivatives of the log density with respect to a and b)."""
    psi, is_inside = PRIMITIVES["psi"], (x > 0) & (x < 1)
    inner, total = where(is_inside, x, 0.5), psi(a + b)
    return is_inside, log(inner) + total - psi(a), log1p(-inner) + total - psi(b)


def _by_number(g, y, a, b, x, *, by_a, by_b):
    """The cotangent of x in betainc_slope: g times the density's derivative in a and b."""
    is_inside, level_a, level_b = _levels(a, b, x)
    first, second = (level_a if by_a else level_b), (level_b if by_b else level_a)
    if by_a + by_b == 1:
        factor = first
    else:
        zeta = PRIMITIVES["zeta"]
        factor = first * second + zeta(2.0, a + b)
        factor = factor - (zeta(2.0, a if by_a else b) if by_a != by_b else 0.0)
    return g * where(is_inside, factor, 0.0) * where(is_inside, beta_density(a, b, x), 0.0)


_THIRD = never("betainc has two derivatives with respect to a and b here, no third")


def _terms_of_slope(by_a: int, by_b: int) -> tuple:
    """The derivatives of betainc_slope of these orders, as ``diagonal_rules`` takes them."""

    def by_number(*operands):
        return _by_number(*operands, by_a=by_a, by_b=by_b)

    if by_a + by_b == 2:
        return _THIRD, _THIRD, by_number
    return (
        lambda g, y, a, b, x: g * betainc_slope(a, b, x, by_a=by_a + 1, by_b=by_b),
        lambda g, y, a, b, x: g * betainc_slope(a, b, x, by_a=by_a, by_b=by_b + 1),
        by_number,
    )


_ORDERS = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
_RULES = {orders: diagonal_rules(_terms_of_slope(*orders)) for orders in _ORDERS}
betainc_slope = define(
    "betainc_slope",
    _slope_impl,
    _slope_aval,
    vjp=lambda ct, y, a, b, x, *, by_a, by_b: _RULES[by_a, by_b][0](ct, y, a, b, x),
    jvp=lambda t, y, a, b, x, *, by_a, by_b: _RULES[by_a, by_b][1](t, y, a, b, x),
    batch=pointwise_rule("betainc_slope"),
    elementwise=True,
    onnx=never("ONNX has no derivative of the incomplete beta function"),
    source=copied_function(
        _slope_impl, _slope_below_mean, _beta_prefactor, _beta_fraction, _psi_step, _trigamma
    ),
)

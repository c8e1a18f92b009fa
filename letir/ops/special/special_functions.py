"""SciPy's special functions with their derivatives: error, gamma and beta functions, entropies.

Traced values passed to ``scipy.special`` record these operations. SciPy is imported when one is
computed or typed. A derivative without a closed form is ``NO_FORM``. Formulas are from Abramowitz
and Stegun, Handbook of mathematical functions (A&S), unless said otherwise.
"""

import math
from collections.abc import Callable
from typing import Any

from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.errors import MissingRule
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import cast_cotangent, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import abs_
from letir.ops.elementwise.ufuncs import cos, exp, log, sin
from letir.ops.special.beta_gradient import beta_density, betainc_slope
from letir.ops.special.define import NO_FORM, scipy_or_cupy_function, special, special_aval
from letir.ops.special.density_powers import log_of_power, power_at_zero
from letir.ops.special.gamma_gradient import gamma_slope

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


def unary_special(name: str, derivative: Callable, **fields: Any) -> Primitive:
    """Register a function of one array with its ``derivative(y, x)``, where y is the result."""
    return special(name, lambda g, y, x: g * derivative(y, x), **fields)


# ---- logistic functions ----

# expit(-x), not 1 - y, which is 0 where y is rounded to 1
expit: Primitive = unary_special("expit", lambda y, x: y * expit(-x), scalar="expit")
logit = special("logit", lambda g, y, x: g / (x * (1 - x)))
log_expit = unary_special("log_expit", lambda y, x: expit(-x), scalar="log_expit")


def _exprel_slope(y, x):
    """(exp(x) - y) / x; near 0, where the difference cancels, its series."""
    near = abs_(x) < 0.05
    t, series = where(near, x, 0), 0.0
    for k in range(10, 0, -1):
        series = series * t + k / math.factorial(k + 1)
    return where(near, series, (exp(x) - y) / where(near, 1, x))


exprel = unary_special("exprel", _exprel_slope)


# ---- the error function and the normal distribution ----


def _far_slope(is_far, x, sign: int):
    """The derivative of 1 / x + sign / (2 x**3) + 3 / (4 x**5) + ..., where x is far from 0.

    The asymptotic series of sqrt(pi) erfcx and of 2 dawsn, A&S 7.1.23.
    """
    square = 1 / where(is_far, x * x, 1e3)
    series = 0.0
    for k in range(12, 0, -1):
        series = (1.0 + series) * (sign * (k + 0.5) * square)
    return -(1.0 + series) * square


def _erfcx_slope(y, x):
    """2 x y - 2 / sqrt(pi); where the difference cancels, the derivative of the series."""
    if x.type is not None and x.dtype.kind == "c":
        return 2 * x * y - _TWO_OVER_ROOT_PI
    far = _far_slope(x > 12, x, -1) / math.sqrt(math.pi)
    return where(x > 12, far, 2 * x * y - _TWO_OVER_ROOT_PI)


def _dawsn_slope(y, x):
    """1 - 2 x y; where the difference cancels, the derivative of the series."""
    if x.type is not None and x.dtype.kind == "c":
        return 1 - 2 * x * y
    is_far = abs_(x) > 12
    return where(is_far, _far_slope(is_far, x, 1) / 2, 1 - 2 * x * y)


erf = unary_special("erf", lambda y, x: _TWO_OVER_ROOT_PI * exp(-x * x), scalar="erf")
erfc = unary_special("erfc", lambda y, x: -_TWO_OVER_ROOT_PI * exp(-x * x), scalar="erfc")
erfcx = unary_special("erfcx", _erfcx_slope)
erfi = unary_special("erfi", lambda y, x: _TWO_OVER_ROOT_PI * exp(x * x))
dawsn = unary_special("dawsn", _dawsn_slope)
wofz = unary_special("wofz", lambda y, x: _TWO_OVER_ROOT_PI * 1j - 2 * x * y)
erfinv = unary_special("erfinv", lambda y, x: exp(y * y) / _TWO_OVER_ROOT_PI)
erfcinv = unary_special("erfcinv", lambda y, x: exp(y * y) / -_TWO_OVER_ROOT_PI)
ndtr = unary_special("ndtr", lambda y, x: exp(x * x * -0.5) / _ROOT_TWO_PI, scalar="ndtr")
ndtri = unary_special("ndtri", lambda y, x: exp(y * y * 0.5) * _ROOT_TWO_PI)
# by erfcx: far to the left density and probability both underflow, their quotient does not
log_ndtr = special(
    "log_ndtr", lambda g, y, x: g * math.sqrt(2 / math.pi) / erfcx(x * -math.sqrt(0.5))
)
ndtri_exp = unary_special("ndtri_exp", lambda y, x: exp(x + y * y * 0.5) * _ROOT_TWO_PI)

# ---- gamma functions ----


def _polygamma_prepare(n, x):
    """The call of scipy.special.polygamma; the order is an attribute."""
    return (x,), {"n": int(n)}


def _polygamma_source(write, x, *, n):
    """The ``source``: a call of the function, which the module imports."""
    return f"{write.writer.module.imported('scipy.special', 'polygamma')}({n}, {x})"


polygamma: Primitive = define(
    "polygamma",
    # CuPy takes n as an array only
    lambda xp, x, *, n: scipy_or_cupy_function(xp, "special", "polygamma")(xp.asarray(n), x),
    lambda x, *, n: special_aval("zetac")(x).with_dtype(float),
    vjp=lambda ct, y, x, *, n: (unbroadcast(ct * polygamma(n + 1, x), x),),
    jvp=lambda t, y, x, *, n: cast_cotangent(t[0] * polygamma(n + 1, x), y.dtype),
    prepare=_polygamma_prepare,
    batch=pointwise_rule("polygamma"),
    elementwise=True,
    source=_polygamma_source,
)


def _trigamma(x: Value):
    """The derivative of psi, A&S 6.4.10; SciPy has none for complex numbers."""
    if x.type is not None and x.dtype.kind == "c":
        raise MissingRule("psi: SciPy has no derivative for complex numbers")
    return zeta(2.0, x)


psi = unary_special("psi", lambda y, x: _trigamma(x))
gamma = unary_special("gamma", lambda y, x: y * psi(x))
gammaln = unary_special("gammaln", lambda y, x: psi(x), scalar="gammaln")
loggamma = unary_special("loggamma", lambda y, x: psi(x))
gammasgn = special("gammasgn")


def _rgamma_slope(y, x):
    """-y * psi(x); to the left, where psi has poles, by reflection, A&S 6.1.17."""
    if x.type is not None and x.dtype.kind == "c":
        return -y * psi(x)
    is_left = x < 0.5
    mirror, angle = where(is_left, 1 - x, 1), math.pi * x  # y is gamma(1 - x) sin(pi x) / pi
    left = gamma(mirror) * (cos(angle) - psi(mirror) * sin(angle) / math.pi)
    return where(is_left, left, -y * psi(where(is_left, 1, x)))


rgamma = unary_special("rgamma", _rgamma_slope)
binom = special(
    "binom",
    lambda g, y, n, k: g * (y * (psi(n + 1) - psi(n - k + 1))),
    lambda g, y, n, k: g * (y * (psi(n - k + 1) - psi(k + 1))),
)
poch = special(
    "poch",
    lambda g, y, a, m: g * (y * (psi(a + m) - psi(a))),
    lambda g, y, a, m: g * (y * psi(a + m)),
)


def gamma_density(a: Any, x: Any) -> Any:
    """x**(a - 1) * exp(-x) / gamma(a), A&S 6.5.1; 0 at infinity."""
    is_end = x == math.inf
    inner = where(is_end, 1, x)
    level = log_of_power(inner, a - 1) - inner - gammaln(a)
    return where(is_end, 0, exp(level) * power_at_zero(inner, a - 1))


def gamma_by_shape(a: Any, x: Any) -> Any:
    """The derivative of gammaincc with respect to a, which is 0 at x = 0 and at infinity."""
    is_end = (x == math.inf) | (x == 0)
    inner = where(is_end, 1, x)
    return where(is_end, 0, gamma_density(a, inner) * gamma_slope(a, inner))


# With respect to a: gamma_slope is -(dP/da) / density, from the series A&S 6.5.29.
gammainc = special(
    "gammainc",
    lambda g, y, a, x: -g * gamma_by_shape(a, x),
    lambda g, y, a, x: g * gamma_density(a, x),
)
gammaincc = special(
    "gammaincc",
    lambda g, y, a, x: g * gamma_by_shape(a, x),
    lambda g, y, a, x: -g * gamma_density(a, x),
)
gammaincinv = special(
    "gammaincinv",
    lambda g, y, a, p: g * gamma_slope(a, y),
    lambda g, y, a, p: g / gamma_density(a, y),
)
gammainccinv = special(
    "gammainccinv",
    lambda g, y, a, p: g * gamma_slope(a, y),
    lambda g, y, a, p: -g / gamma_density(a, y),
)

# ---- beta and zeta functions ----

beta = special(
    "beta",
    lambda g, y, a, b: g * (y * (psi(a) - psi(a + b))),
    lambda g, y, a, b: g * (y * (psi(b) - psi(a + b))),
)
betaln = special(
    "betaln",
    lambda g, y, a, b: g * (psi(a) - psi(a + b)),
    lambda g, y, a, b: g * (psi(b) - psi(a + b)),
)


def _parameter_derivatives(sign: int) -> tuple:
    """The derivatives of betainc, times a sign, with respect to a and b."""
    return (
        lambda g, y, a, b, x: g * (sign * betainc_slope(a, b, x, by_a=1, by_b=0)),
        lambda g, y, a, b, x: g * (sign * betainc_slope(a, b, x, by_a=0, by_b=1)),
    )


def _inverse_by_parameters() -> tuple:
    """The derivatives of the inverse of betainc by a and b, at a fixed betainc; 0 at the ends."""

    def along(by_a, by_b):
        def term(g, y, a, b, p):
            is_inside = (y > 0) & (y < 1)
            y = where(is_inside, y, 0.5)
            slope = betainc_slope(a, b, y, by_a=by_a, by_b=by_b)
            return g * where(is_inside, -slope / beta_density(a, b, y), 0)

        return term

    return along(1, 0), along(0, 1)


betainc = special(
    "betainc", *_parameter_derivatives(1), lambda g, y, a, b, x: g * beta_density(a, b, x)
)
betaincc = special(
    "betaincc", *_parameter_derivatives(-1), lambda g, y, a, b, x: -g * beta_density(a, b, x)
)
betaincinv = special(
    "betaincinv", *_inverse_by_parameters(), lambda g, y, a, b, p: g / beta_density(a, b, y)
)
betainccinv = special(
    "betainccinv", *_inverse_by_parameters(), lambda g, y, a, b, p: -g / beta_density(a, b, y)
)
zeta: Primitive = special(
    "zeta", NO_FORM, lambda g, y, x, q: -g * (x * zeta(x + 1, q)), ufunc="_zeta"
)
riemann_zeta = special("riemann_zeta", NO_FORM, ufunc="_riemann_zeta")
zetac = special("zetac", NO_FORM)

# ---- entropies, whose derivatives make no nan at 0, where the functions are defined ----


def _safe_quotient(x, y):
    """x / y, and 0 where both are 0."""
    return x / where((x == 0) & (y == 0), 1, y)


xlogy: Primitive = special(
    "xlogy",
    lambda g, out, x, y: xlogy(g, y),  # 0 if g is 0, even for y = 0
    lambda g, out, x, y: g * _safe_quotient(x, y),
)
xlog1py: Primitive = special(
    "xlog1py",
    lambda g, out, x, y: xlog1py(g, y),
    lambda g, out, x, y: g * _safe_quotient(x, 1 + y),
)
entr = special("entr", lambda g, y, x: -xlogy(g, x) - g)
rel_entr = special(
    "rel_entr",
    lambda g, out, x, y: xlogy(g, x) - xlogy(g, y) + g,
    lambda g, out, x, y: -g * _safe_quotient(x, y),
)
special_kl_div = special(  # the name kl_div is taken by the loss
    "special_kl_div",
    lambda g, out, x, y: xlogy(g, x) - xlogy(g, y),
    lambda g, out, x, y: g - g * _safe_quotient(x, y),
    ufunc="kl_div",
)

# ---- losses ----


def _huber_by_delta(g, out, delta, r):
    """The derivative with respect to delta, times g: abs(r) - delta where abs(r) > delta."""
    return g * where(abs_(r) <= delta, 0, abs_(r) - delta)


huber = special(
    "huber",
    _huber_by_delta,
    lambda g, out, delta, r: g * where(abs_(r) <= delta, r, where(r > 0, delta, -delta)),
)
pseudo_huber = special(
    "pseudo_huber",
    lambda g, out, delta, r: g * (2 * out / delta - r * r / (delta + out / delta)),
    lambda g, out, delta, r: g * (r / (1 + out / (delta * delta))),
)

# ---- exponential integrals and others ----

expi = unary_special("expi", lambda y, x: exp(x) / x)
exp1 = unary_special("exp1", lambda y, x: -exp(-x) / x)
expn: Primitive = special("expn", NO_FORM, lambda g, y, n, x: -g * expn(n - 1, x))


def _spence_slope(y, x):
    """log(x) / (1 - x); near 1, where it is 0 / 0, its series."""
    near = abs_(x - 1) < 0.05
    t, series = where(near, 1 - x, 0), 0.0
    for k in range(12, 0, -1):
        series = (series + 1 / k) * t if k > 1 else series + 1
    return where(near, -series, log(x) / where(near, 1, 1 - x))


spence = unary_special("spence", _spence_slope)
wrightomega = unary_special("wrightomega", lambda y, x: y / (1 + y))
cosm1 = unary_special("cosm1", lambda y, x: -sin(x))
exp10 = unary_special("exp10", lambda y, x: math.log(10) * y)

# ---- angles in degrees ----

cosdg: Primitive = unary_special("cosdg", lambda y, x: sindg(x) * (-math.pi / 180))
sindg: Primitive = unary_special("sindg", lambda y, x: cosdg(x) * (math.pi / 180))
tandg = unary_special("tandg", lambda y, x: (1 + y * y) * (math.pi / 180))
cotdg = unary_special("cotdg", lambda y, x: (1 + y * y) * (-math.pi / 180))

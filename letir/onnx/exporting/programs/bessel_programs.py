"""Bessel functions of real arguments and orders, by series, integrals and expansions.

Schlaefli's integrals (DLMF 10.9.6, 10.9.7, 10.32.4, 10.32.9) are computed by Gauss' rule, whose
error is below rounding for orders and arguments up to about 60; beyond, Hankel's expansion (DLMF
10.17) holds where the order is small. Where none of them holds, the result is nan.
"""

import math
from typing import Any

import numpy as np

from letir.onnx.exporting.node_graph import computes_op
from letir.onnx.exporting.programs.gamma_programs import gammaln, gammasgn

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(240)
_PLACES, _SHARES = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS  # on the interval from 0 to 1
_FAR = 60.0


def _gauss_integral(f, length):
    """The integral of ``f`` from 0 to ``length``."""
    length = length[..., None]
    values = f(length * _PLACES.astype(length.dtype))
    return (values * _SHARES.astype(length.dtype)).sum(axis=-1) * length[..., 0]


def _integration_limit(x, v):
    """A bound: exp(-x sinh(t) + v t) is negligible for larger t."""
    return np.arcsinh((745 + 50 * np.abs(v)) / x)


def _power_series(v, x, sign: float, terms: int):
    """The power series, DLMF 10.2.2 and 10.25.2."""
    half = 0.5 * x
    pole = (v < 0) & (np.floor(v) == v)
    inner = np.where(pole, 0.5, v)
    start = gammasgn(inner + 1) * np.exp(inner * np.log(half) - gammaln(inner + 1))
    square, total, term = sign * half * half, 1.0 + 0 * half, 1.0 + 0 * half
    for k in range(1, terms):
        term = term * square / (k * (inner + k))
        total = total + term
    return np.where(pole, np.nan, start * total)


def _hankel_sums(v, x):
    """The sums P and Q of Hankel's expansion."""
    mu, term = 4 * v * v, 1.0 + 0 * x
    even, odd = term, 0 * term
    for k in range(1, 31):
        term = term * (mu - (2 * k - 1) ** 2) / (8 * k * x)
        if k % 2:
            odd = odd + (term if k % 4 == 1 else -term)
        else:
            even = even + (term if k % 4 == 0 else -term)
    return even, odd


def _hankel_expansion(v, x, is_first: bool):
    """Hankel's expansion of J or Y."""
    even, odd = _hankel_sums(v, x)
    angle = x - (0.5 * v + 0.25) * math.pi
    sine, cosine = np.sin(angle), np.cos(angle)
    wave = even * cosine - odd * sine if is_first else even * sine + odd * cosine
    return np.where(v * v < 2 * x, np.sqrt(2 / (math.pi * x)) * wave, np.nan)


def _value_at_negative(v, x, positive):
    """The value at x from the value at -x, where the order is an integer."""
    whole = np.floor(v) == v
    sign = np.where(np.floor(0.5 * v) * 2 == v, 1.0, -1.0)
    return np.where(x < 0, np.where(whole, sign * positive, np.nan), positive)


def _order_and_argument(v, x):
    """The order and a positive argument in one shape and dtype."""
    v = v + 0 * x
    return v, np.where(x == 0, 1e-300 if x.dtype == np.float64 else 1e-30, np.abs(x) + 0 * v)


@computes_op("jv")
def jv(v: Any, x: Any) -> Any:
    """The Bessel function of the first kind."""
    v, y = _order_and_argument(v, x)
    whole = np.floor(v) == v
    turned = np.where(whole & (np.floor(0.5 * v) * 2 != v) & (v < 0), -1.0, 1.0)
    v = np.where(whole, np.abs(v), v)
    is_near = y * y < 16 + 16 * np.maximum(v, 0.0)
    near = _power_series(v, np.where(is_near, y, 1.0), -1.0, 60)
    middle = np.where(is_near, 1.0, np.minimum(y, _FAR))
    angle = _gauss_integral(
        lambda t: np.cos(v[..., None] * t - middle[..., None] * np.sin(t)), math.pi + 0 * y
    )
    tail = _gauss_integral(
        lambda t: np.exp(-middle[..., None] * np.sinh(t) - v[..., None] * t),
        _integration_limit(middle, v),
    )
    result = (angle - np.where(whole, 0.0, np.sin(math.pi * v)) * tail) / math.pi
    result = np.where(
        is_near, near, np.where(y > _FAR, _hankel_expansion(v, np.maximum(y, _FAR), True), result)
    )
    result = np.where(x == 0, np.where(v == 0, 1.0, np.where(v > 0, 0.0, np.inf)), result)
    result = np.where(np.abs(v) > _FAR, np.nan, result)
    return _value_at_negative(v, x, turned * result)


@computes_op("yv", "yn")
def yv(v: Any, x: Any) -> Any:
    """The Bessel function of the second kind."""
    v, y = _order_and_argument(v, x)
    middle = np.minimum(y, _FAR)
    angle = _gauss_integral(
        lambda t: np.sin(middle[..., None] * np.sin(t) - v[..., None] * t), math.pi + 0 * y
    )
    factor = np.where(
        np.floor(v) == v, np.where(np.floor(0.5 * v) * 2 == v, 1.0, -1.0), np.cos(math.pi * v)
    )[..., None]
    order, at = v[..., None], middle[..., None]
    tail = _gauss_integral(
        lambda t: (
            np.exp(order * t - at * np.sinh(t)) + factor * np.exp(-order * t - at * np.sinh(t))
        ),
        _integration_limit(middle, v),
    )
    result = np.where(
        y > _FAR, _hankel_expansion(v, np.maximum(y, _FAR), False), (angle - tail) / math.pi
    )
    result = np.where(np.abs(v) > _FAR, np.nan, result)
    return np.where(x > 0, result, np.where(x == 0, -np.inf, np.nan))


@computes_op("kve")
def kve(v: Any, x: Any) -> Any:
    """The modified Bessel function of the second kind, times exp(x)."""
    v, y = _order_and_argument(v, x)
    order, at = np.abs(v)[..., None], y[..., None]

    def terms(t):
        drop = 2 * at * np.sinh(0.5 * t) ** 2  # at * (cosh(t) - 1)
        return 0.5 * (np.exp(order * t - drop) + np.exp(-order * t - drop))

    result = _gauss_integral(terms, _integration_limit(y, v))
    result = np.where(np.abs(v) > _FAR, np.nan, result)
    return np.where(x > 0, result, np.where(x == 0, np.inf, np.nan))


@computes_op("kv", "kn")
def kv(v: Any, x: Any) -> Any:
    """The modified Bessel function of the second kind."""
    return np.where(x > 0, kve(v, x) * np.exp(-x), kve(v, x))


@computes_op("ive")
def ive(v: Any, x: Any) -> Any:
    """The modified Bessel function of the first kind, times exp(-abs(x))."""
    v, y = _order_and_argument(v, x)
    v = np.where(np.floor(v) == v, np.abs(v), v)
    is_near = y < 60
    near = _power_series(v, np.where(is_near, y, 1.0), 1.0, 120) * np.exp(
        -np.where(is_near, y, 1.0)
    )
    far, term = np.where(is_near, 60.0, y), 1.0 + 0 * y
    order, at = v[..., None], far[..., None]
    result = _gauss_integral(
        lambda t: np.exp(-2 * at * np.sin(0.5 * t) ** 2) * np.cos(order * t), math.pi + 0 * y
    )
    result = result / math.pi  # the further integral is less than exp(-2 x)
    expansion = term
    for k in range(1, 21):
        term = -term * (4 * v * v - (2 * k - 1) ** 2) / (8 * k * far)
        expansion = expansion + term
    expansion = expansion / np.sqrt(2 * math.pi * far)
    result = np.where(far > 200, np.where(v * v < far, expansion, np.nan), result)
    result = np.where(v * v < 20 * far, result, np.nan)
    result = np.where(is_near, near, result)
    result = np.where(x == 0, np.where(v == 0, 1.0, np.where(v > 0, 0.0, np.inf)), result)
    return _value_at_negative(v, x, np.where(np.abs(v) > _FAR, np.nan, result))


@computes_op("iv")
def iv(v: Any, x: Any) -> Any:
    """The modified Bessel function of the first kind."""
    return ive(v, x) * np.exp(np.abs(x))


def _function_of_order(function, order: float):
    return lambda x: function(order + 0 * x, x)


for _name, _function in (("j", jv), ("y", yv), ("i", iv), ("k", kv)):
    for _number in (0, 1):
        _written = f"bessel_i{_number}" if _name + str(_number) == "i0" else f"{_name}{_number}"
        computes_op(_written)(_function_of_order(_function, float(_number)))
for _name, _function in (("i", ive), ("k", kve)):
    for _number in (0, 1):
        computes_op(f"{_name}{_number}e")(_function_of_order(_function, float(_number)))
computes_op("i0")(_function_of_order(iv, 0.0))
computes_op("i0_slope")(_function_of_order(iv, 1.0))

"""Elementary functions of complex numbers, written with their real and imaginary parts."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from letir.onnx.exporting.node_graph import registers_in

_programs: dict[str, Callable] = {}  # by operation: a function of pairs and real arrays


class Pair(NamedTuple):
    """The real and the imaginary part of an array."""

    re: Any
    im: Any


def as_pair(x: Any) -> Pair:
    """A pair, of zero imaginary part for real ``x``."""
    if type(x) is Pair:
        return x
    return Pair(x, np.zeros_like(x) if hasattr(x, "dtype") else 0.0)


def _computes_on_pairs(*names: str) -> Callable[[Callable], Callable]:
    """Register a program on pairs for operations."""
    return registers_in(_programs, names)


def program_on_pairs(name: str) -> Callable | None:
    """The program on pairs for an operation; None without one."""
    return _programs.get(name)


# ---- arithmetic ----


def product(x: Pair, y: Pair) -> Pair:
    """x * y."""
    return Pair(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


@_computes_on_pairs("div")
def quotient(x: Any, y: Any) -> Pair:
    """x / y, by the larger part of y (Smith, 1962), as NumPy computes it."""
    x = as_pair(x)
    if type(y) is not Pair:
        return Pair(x.re / y, x.im / y)
    large = np.abs(y.re) >= np.abs(y.im)
    big, small = np.where(large, y.re, y.im), np.where(large, y.im, y.re)
    ratio = small / big
    scale = 1 / (big + small * ratio)
    re = np.where(large, x.re + x.im * ratio, x.re * ratio + x.im)
    im = np.where(large, x.im - x.re * ratio, x.im * ratio - x.re)
    return Pair(re * scale, im * scale)


@_computes_on_pairs("quotient")
def _safe_quotient(x, y):
    x, y = as_pair(x), as_pair(y)
    is_zero = (x.re == 0) & (x.im == 0)
    result = quotient(x, Pair(np.where(is_zero, 1, y.re), np.where(is_zero, 0, y.im)))
    return Pair(*[np.where(is_zero, 0, part) for part in result])


@_computes_on_pairs("square")
def _square(x):
    return Pair(x.re * x.re - x.im * x.im, 2 * x.re * x.im)


@_computes_on_pairs("reciprocal")
def _reciprocal(x):
    return quotient(Pair(1.0, 0.0), x)


@_computes_on_pairs("abs")
def _abs(x):
    return np.hypot(x.re, x.im)


@_computes_on_pairs("sign")
def _sign(x):
    size = np.hypot(x.re, x.im)
    size = np.where(size == 0, 1, size)
    return Pair(x.re / size, x.im / size)


@_computes_on_pairs("power", "float_power")
def _power(x, y):
    exponent = y.re if type(y) is Pair and type(y.re) is float and y.im == 0 else y
    if type(exponent) in (int, float) and exponent == int(exponent) and abs(exponent) <= 64:
        return _integer_power(as_pair(x), int(exponent))
    x, y = as_pair(x), as_pair(y)
    is_zero = (x.re == 0) & (x.im == 0)
    result = exponential(product(logarithm(Pair(np.where(is_zero, 1, x.re), x.im)), y))
    one = np.where((y.re == 0) & (y.im == 0), 1, 0)
    return Pair(np.where(is_zero, one, result.re), np.where(is_zero, 0, result.im))


def _integer_power(x: Pair, count: int) -> Pair:
    """A power by squaring."""
    if count < 0:
        return _reciprocal(_integer_power(x, -count))
    result = Pair(1 + 0 * x.re, 0 * x.im)
    while count:
        result = product(result, x) if count & 1 else result
        x, count = product(x, x), count >> 1
    return result


# ---- comparisons ----


@_computes_on_pairs("equal")
def _equal(x, y):
    x, y = as_pair(x), as_pair(y)
    return (x.re == y.re) & (x.im == y.im)


@_computes_on_pairs("not_equal")
def _not_equal(x, y):
    return ~_equal(x, y)


@_computes_on_pairs("isnan")
def _isnan(x):
    return np.isnan(x.re) | np.isnan(x.im)


@_computes_on_pairs("isinf")
def _isinf(x):
    return np.isinf(x.re) | np.isinf(x.im)


@_computes_on_pairs("isfinite")
def _isfinite(x):
    return np.isfinite(x.re) & np.isfinite(x.im)


# ---- elementary functions ----


@_computes_on_pairs("exp")
def exponential(x: Any) -> Pair:
    """exp(x)."""
    size = np.exp(x.re)
    return Pair(size * np.cos(x.im), size * np.sin(x.im))


@_computes_on_pairs("expm1", "special_expm1")
def _expm1(x):
    half = np.sin(0.5 * x.im)
    return Pair(np.expm1(x.re) * np.cos(x.im) - 2 * half * half, np.exp(x.re) * np.sin(x.im))


@_computes_on_pairs("exp2")
def _exp2(x):
    return exponential(Pair(math.log(2) * x.re, math.log(2) * x.im))


@_computes_on_pairs("log")
def logarithm(x: Any) -> Pair:
    """log(x), with the imaginary part in [-pi, pi]."""
    return Pair(np.log(np.hypot(x.re, x.im)), np.arctan2(x.im, x.re))


@_computes_on_pairs("log1p", "special_log1p")
def _log1p(x):
    size = 0.5 * np.log1p(x.re * (2 + x.re) + x.im * x.im)
    return Pair(size, np.arctan2(x.im, 1 + x.re))


@_computes_on_pairs("log2")
def _log2(x):
    return Pair(*[part / math.log(2) for part in logarithm(x)])


@_computes_on_pairs("log10")
def _log10(x):
    return Pair(*[part / math.log(10) for part in logarithm(x)])


@_computes_on_pairs("sqrt")
def _sqrt(x):
    root = np.sqrt(0.5 * (np.hypot(x.re, x.im) + np.abs(x.re)))
    other = np.abs(x.im) / np.where(root == 0, 1, 2 * root)
    is_right = x.re >= 0
    return Pair(np.where(is_right, root, other), np.copysign(np.where(is_right, other, root), x.im))


@_computes_on_pairs("sin")
def _sin(x):
    return Pair(np.sin(x.re) * np.cosh(x.im), np.cos(x.re) * np.sinh(x.im))


@_computes_on_pairs("cos")
def _cos(x):
    return Pair(np.cos(x.re) * np.cosh(x.im), -(np.sin(x.re) * np.sinh(x.im)))


@_computes_on_pairs("sinh")
def _sinh(x):
    return Pair(np.sinh(x.re) * np.cos(x.im), np.cosh(x.re) * np.sin(x.im))


@_computes_on_pairs("cosh")
def _cosh(x):
    return Pair(np.cosh(x.re) * np.cos(x.im), np.sinh(x.re) * np.sin(x.im))


@_computes_on_pairs("tanh")
def _tanh(x):
    t, u = np.tanh(x.re), np.tan(x.im)
    scale = 1 + t * t * u * u
    sech = 1 / np.cosh(x.re)
    return Pair(t * (1 + u * u) / scale, u * (sech * sech) / scale)


@_computes_on_pairs("tan")
def _tan(x):
    turned = _tanh(Pair(-x.im, x.re))
    return Pair(turned.im, -turned.re)


# ---- systems of equations ----


@_computes_on_pairs("solve")
def _solve(a, b):
    """The solution of a complex system, computed from the real system of twice the size."""
    a, b = as_pair(a), as_pair(b)
    is_vector = b.re.ndim == 1
    stacked = np.concatenate(list(b), axis=0 if is_vector else -2)
    result = np.linalg.solve(_real_matrix(a), stacked)
    n = a.re.shape[-1]
    if is_vector:
        return Pair(result[:n], result[n:])
    return Pair(result[..., :n, :], result[..., n:, :])


@_computes_on_pairs("inv")
def _inv(a):
    n, result = a.re.shape[-1], np.linalg.inv(_real_matrix(a))
    return Pair(result[..., :n, :n], result[..., n:, :n])


def _real_matrix(a: Pair) -> Any:
    """The matrix that acts on real parts followed by imaginary parts."""
    rows = [np.concatenate(pair, axis=-1) for pair in ((a.re, -a.im), (a.im, a.re))]
    return np.concatenate(rows, axis=-2)

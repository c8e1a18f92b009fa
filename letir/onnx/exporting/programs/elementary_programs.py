"""Elementary functions that ONNX lacks, written with those that it has.

Each is accurate to a few units in the last place: where cancellation would lose digits, the error
of the inner step is divided out (Kahan).
"""

import math

import numpy as np

from letir.onnx.exporting.node_graph import computes_op


@computes_op("exp2", "special_exp2")
def _exp2(x):
    return np.power(np.asarray(2, x.dtype), x)


@computes_op("exp10")
def _exp10(x):
    return np.power(np.asarray(10, x.dtype), x)


@computes_op("expm1", "special_expm1")
def _expm1(x):
    u = np.exp(x)
    v = u - 1
    inner = np.where((u == 1) | (v == -1) | np.isinf(u), 2.0, u)
    return np.where(u == 1, x, np.where((v == -1) | np.isinf(u), v, v * x / np.log(inner)))


@computes_op("log1p", "special_log1p")
def _log1p(x):
    u = 1 + x
    plain = (u == 1) | np.isinf(u)
    factor = x / np.where(plain, 1, u - 1)
    return np.where(u == 1, x, np.where(np.isinf(u), u, np.log(u) * factor))


@computes_op("log2")
def _log2(x):
    return np.log(x) * (1 / math.log(2))


@computes_op("log10")
def _log10(x):
    return np.log(x) * (1 / math.log(10))


@computes_op("cbrt", "special_cbrt")
def _cbrt(x):
    size = np.abs(x)
    plain = (size == 0) | np.isinf(size) | np.isnan(size)
    y = np.power(np.where(plain, 1, size), np.asarray(1 / 3, x.dtype))
    y = y - (y - np.where(plain, 1, size) / (y * y)) * (1 / 3)
    return np.where(plain, x, np.copysign(y, x))


@computes_op("hypot")
def _hypot(x, y):
    x, y = np.abs(x), np.abs(y)
    large, small = np.maximum(x, y), np.minimum(x, y)
    plain = (large == 0) | np.isinf(large)
    ratio = small / np.where(plain, 1, large)
    infinite = np.isinf(x) | np.isinf(y)
    return np.where(infinite, np.inf, np.where(plain, large, large * np.sqrt(1 + ratio * ratio)))


@computes_op("arctan2")
def _arctan2(y, x):
    both = np.isinf(x) & np.isinf(y)  # two infinities: the angle of the diagonal
    x, y = np.where(both, np.sign(x), x), np.where(both, np.sign(y), y)
    steep = np.abs(y) > np.abs(x)
    zero = (x == 0) & (y == 0)
    below = np.where(steep, y, x)
    ratio = np.where(steep, x, y) / np.where(zero, 1, below)
    angle = np.arctan(np.abs(np.where(zero, 0, ratio)))
    angle = np.where(steep, math.pi / 2 - angle, angle)
    angle = np.where(np.signbit(x), math.pi - angle, angle)
    return np.copysign(angle, y)


@computes_op("logaddexp")
def _logaddexp(x, y):
    larger = np.maximum(x, y)
    gap = np.where(x == y, 0, -np.abs(x - y))
    return larger + np.log1p(np.exp(gap))


@computes_op("logaddexp2")
def _logaddexp2(x, y):
    larger = np.maximum(x, y)
    gap = np.where(x == y, 0, -np.abs(x - y))
    return larger + np.log1p(np.exp2(gap)) * (1 / math.log(2))


@computes_op("radians")
def _radians(x):
    return x * (math.pi / 180)


@computes_op("degrees")
def _degrees(x):
    return x * (180 / math.pi)


@computes_op("ldexp")
def _ldexp(x, n):
    half = n // 2  # in two steps: 2 ** n may overflow where the result does not
    half_scaled = x * np.power(np.asarray(2, x.dtype), half.astype(x.dtype))
    return half_scaled * np.power(np.asarray(2, x.dtype), (n - half).astype(x.dtype))


@computes_op("frexp")
def _frexp(x):
    plain = (x == 0) | ~np.isfinite(x)
    size = np.abs(np.where(plain, 1, x))
    tiny = size < 1e-300 if x.dtype == np.float64 else size < 1e-37
    size = np.where(tiny, size * 2.0**60, size)
    power = np.floor(np.log2(size)) + 1  # off by one at most, next to powers of two
    part = size * np.exp2(-np.round(0.5 * power)) * np.exp2(np.round(0.5 * power) - power)
    power = np.where(part >= 1, power + 1, np.where(part < 0.5, power - 1, power))
    part = np.where(part >= 1, part * 0.5, np.where(part < 0.5, part * 2, part))
    power = np.where(tiny, power - 60, power)
    result = np.where(plain, x, np.copysign(part, x))
    return result, np.where(plain, 0, power).astype(np.int32)


@computes_op("nan_to_num")
def _nan_to_num(x, *, nan=0.0, posinf=None, neginf=None):
    if x.dtype.kind != "f":
        return x * 1
    limits = np.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    x = np.where(np.isnan(x), np.asarray(nan, x.dtype), x)
    x = np.where(x == np.inf, np.asarray(high, x.dtype), x)
    return np.where(x == -np.inf, np.asarray(low, x.dtype), x)


@computes_op("isclose")
def _isclose(x, y, rtol=1e-5, atol=1e-8, *, equal_nan=False):
    near = np.abs(x - y) <= atol + rtol * np.abs(y)
    result = np.where(np.isfinite(y), near, x == y)
    return result | (np.isnan(x) & np.isnan(y)) if equal_nan else result


@computes_op("unwrap")
def _unwrap(x, *, discont=None, axis=-1, period=2 * math.pi):
    discont = period / 2 if discont is None else discont
    if type(x.shape[axis]) is int and x.shape[axis] < 2:
        return x * 1
    step = np.diff(x, axis=axis)
    half = period / 2
    wrapped = np.mod(step + half, period) - half
    wrapped = np.where((wrapped == -half) & (step > 0), half, wrapped)
    correction = np.where(np.abs(step) < discont, 0, wrapped - step)
    first = np.take(x, np.asarray([0]), axis=axis)
    return x + np.concatenate([first * 0, np.cumsum(correction, axis=axis)], axis=axis)


@computes_op("bitwise_count")
def _bitwise_count(x):
    rest, count = np.abs(x.astype(np.int64)), 0
    for _ in range(8 * x.dtype.itemsize):
        count = count + rest % 2
        rest = rest // 2
    return count


@computes_op("gcd")
def _gcd(x, y):
    x, y = np.abs(x) + 0 * y, np.abs(y) + 0 * x
    # Euclid: the numbers shrink by the golden ratio
    for _ in range(int(1.5 * 8 * x.dtype.itemsize)):
        x, y = np.where(y == 0, x, y), np.where(y == 0, 0, x % np.where(y == 0, 1, y))
    return x


@computes_op("lcm")
def _lcm(x, y):
    common = np.gcd(x, y)
    return np.abs(x // np.where(common == 0, 1, common) * y)


# ---- angles in degrees ----


def _sine_of_degrees(x, quarters: int):
    """The sine of an angle, ``quarters`` times 90 degrees further on.

    The angle is taken modulo 90 degrees before it is converted, so that zeros are exact.
    """
    turns = np.rint(x / 90)
    rest = (x - 90 * turns) * (math.pi / 180)
    place = np.remainder(turns + quarters, 4)
    value = np.where(np.remainder(place, 2) == 0, np.sin(rest), np.cos(rest))
    return np.where(place >= 2, -value, value)


@computes_op("sindg")
def _sindg(x):
    return _sine_of_degrees(x, 0)


@computes_op("cosdg")
def _cosdg(x):
    return _sine_of_degrees(x, 1)


@computes_op("tandg")
def _tandg(x):
    return _sine_of_degrees(x, 0) / _sine_of_degrees(x, 1)


@computes_op("cotdg")
def _cotdg(x):
    return _sine_of_degrees(x, 1) / _sine_of_degrees(x, 0)

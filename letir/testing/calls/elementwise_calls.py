"""Calls of ufuncs and of other functions that work element by element."""

import operator

from letir.testing.calls.call import (
    BITS,
    COUNTS,
    NAN,
    NumpyCall,
    V,
    W,
    X,
    Y,
    call_of,
    calls_of_names,
    real_call,
)

_UNIT = abs(V) / 4 + 0.1  # in the domain of all functions but arccosh
_ABOVE = abs(V) + 1.25  # in the domain of arccosh


def _call_by_name(name: str, *args, takes_complex: bool = True) -> NumpyCall:
    """The plain call of the function of this name."""
    call = operator.attrgetter(name)
    return (call_of if takes_complex else real_call)(lambda np, *args: call(np)(*args), *args)


_ANALYTIC = """
    sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh asin acos atan asinh atanh
    exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal negative positive sign abs absolute
    conj conjugate isfinite isinf isnan sinc angle real imag"""
_REAL = """
    cbrt deg2rad rad2deg degrees radians fabs floor ceil trunc signbit spacing i0 fix modf frexp"""
_BOTH = """
    add subtract multiply divide true_divide power pow float_power equal not_equal greater less
    greater_equal less_equal logical_and logical_or logical_xor maximum minimum fmax fmin isclose"""
_WHOLE = "allclose array_equal array_equiv"
_PAIRS = """
    arctan2 atan2 hypot copysign nextafter fmod mod remainder floor_divide divmod heaviside
    logaddexp logaddexp2"""
_INTEGER = "bitwise_count bitwise_invert bitwise_not invert"
_INTEGERS = """
    bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift left_shift right_shift
    gcd lcm"""

CALLS = {
    **calls_of_names(_ANALYTIC, lambda name: _call_by_name(name, _UNIT)),
    **calls_of_names(_REAL, lambda name: _call_by_name(name, V + 0.125, takes_complex=False)),
    **calls_of_names(_BOTH, lambda name: _call_by_name(name, _ABOVE, abs(W))),
    # times 1: a replay returns a Python bool as a NumPy one
    **calls_of_names(
        _WHOLE, lambda name: call_of(lambda np, x, y: 1 * getattr(np, name)(x, y), _ABOVE, abs(W))
    ),
    **calls_of_names(_PAIRS, lambda name: _call_by_name(name, V, W, takes_complex=False)),
    **calls_of_names(_INTEGER, lambda name: _call_by_name(name, BITS)),
    **calls_of_names(_INTEGERS, lambda name: _call_by_name(name, BITS, COUNTS[:3])),
    "arccosh": _call_by_name("arccosh", _ABOVE),
    "acosh": _call_by_name("acosh", _ABOVE),
    "logical_not": _call_by_name("logical_not", V),
    "rint": _call_by_name("rint", V + 0.125),
    "round": call_of(lambda np, x: np.round(x, 1), V + 0.03125),
    "around": call_of(lambda np, x: np.around(x, decimals=1), V + 0.03125),
    "ldexp": real_call(lambda np, x: np.ldexp(x, 2), V),
    "nan_to_num": call_of(lambda np, x: np.nan_to_num(x, nan=3.0) * x[0, 0], NAN),
    "clip": real_call(lambda np, x, y: np.clip(x, -0.5, y), V, abs(W) + 1),
    "real_if_close": call_of(lambda np, x: np.real_if_close(x), V),
    "iscomplex": _call_by_name("iscomplex", V),
    "isreal": _call_by_name("isreal", V),
    "isneginf": real_call(lambda np, x: np.isneginf(x), V),
    "isposinf": real_call(lambda np, x: np.isposinf(x), V),
    "unwrap": real_call(lambda np, x: np.unwrap(4 * x), V),
    "where": call_of(lambda np, x, y: np.where(x > y, x, 2 * y), X, Y),
}

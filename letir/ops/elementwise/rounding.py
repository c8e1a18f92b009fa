"""Operations on the precision of numbers: round, isclose, nan_to_num."""

import numpy as np

from letir.ast.builder import Value
from letir.ast.record_fields import SeveralBinds
from letir.ast.types import ArrayType, broadcast_shapes
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import (
    DISCRETE,
    FLAT,
    broadcast_tangent,
    cast_cotangent,
    define,
    unbroadcast,
)
from letir.ops.elementwise.comparisons_and_where import isfinite, isnan, where
from letir.ops.elementwise.rounding_sign_parts import imag, real
from letir.ops.shape.shape_and_creation import as_size

# ---- round ----


def _round_aval(x, *, decimals):
    """The dtype of the operand; float16 for booleans, as in NumPy."""
    return ArrayType(np.round(np.zeros(1, x.dtype), decimals).dtype, x.shape)


round_ = define(
    "round",
    lambda xp, x, *, decimals=0: xp.round(x, decimals),
    _round_aval,
    vjp=FLAT,
    jvp=FLAT,
    prepare=lambda a, decimals=0, out=None: ((a,), {"decimals": as_size(decimals)}),
    numpy=(np.round, np.around),
    batch=pointwise_rule("round"),
)

# ---- isclose ----


def _isclose_prepare(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """np.isclose, whose tolerances are operands too."""
    return (a, b, rtol, atol), {"equal_nan": bool(equal_nan)}


isclose = define(
    "isclose",
    lambda xp, x, y, rtol, atol, *, equal_nan=False: xp.isclose(
        x, y, rtol, atol, equal_nan=equal_nan
    ),
    lambda *types, equal_nan: ArrayType(bool, broadcast_shapes(*[aval.shape for aval in types])),
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=_isclose_prepare,
    numpy=(np.isclose,),
    batch=pointwise_rule("isclose"),
)

# ---- nan_to_num ----


def _finite_part(g: Value, x: Value) -> Value:
    """``g`` where ``x`` is finite and 0 elsewhere; real and imaginary parts separately."""
    if x.dtype.kind != "c":
        return where(isfinite(x), g, 0)
    by_real = where(isfinite(real(x)), real(g), 0)
    return by_real + 1j * where(isfinite(imag(x)), imag(g), 0)


def _nan_to_num_prepare(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """np.nan_to_num with ``copy=True`` and numbers as replacements."""
    fills = {"nan": nan, "posinf": posinf, "neginf": neginf}
    if not copy:
        raise SeveralBinds(lambda: _nan_to_num_in_place(x, fills))
    # type(...), not isinstance: traced numbers claim to be floats
    if all(issubclass(type(fill), int | float | np.generic | None) for fill in fills.values()):
        return (x,), fills
    raise SeveralBinds(lambda: _replace_by_values(x, **fills))


def _nan_to_num_in_place(x, fills: dict):
    """np.nan_to_num with ``copy=False``: the operand itself, changed in place."""
    new = nan_to_num(x, **fills)
    if x.is_scalar():
        raise ValueError("Unable to avoid copy while creating an array as requested.")  # NumPy's
    x[...] = new
    return x if x.shape else x[()]


def _replace_by_values(x, nan, posinf, neginf):
    """np.nan_to_num with traced or array replacements, which keep their derivative."""
    x = x if isinstance(x, Value) else np.asarray(x)
    if x.dtype.kind not in "fc":
        return nan_to_num(x)
    if x.dtype.kind == "c":
        parts = [_replace_by_values(part(x), nan, posinf, neginf) for part in (real, imag)]
        return parts[0] + 1j * parts[1]
    is_nan, is_most, is_least = isnan(x), x == np.inf, x == -np.inf
    result = nan_to_num(x)
    for mask, fill in ((is_nan, nan), (is_most, posinf), (is_least, neginf)):
        if fill is not None:
            is_traced = isinstance(fill, Value)
            result = where(
                mask, (cast_cotangent if is_traced else np.asarray)(fill, x.dtype), result
            )
    return result if x.shape else result[()]


nan_to_num = define(
    "nan_to_num",
    lambda xp, x, *, nan=0.0, posinf=None, neginf=None: xp.nan_to_num(
        x, nan=nan, posinf=posinf, neginf=neginf
    ),
    lambda x, **_: ArrayType(x.dtype, x.shape),
    vjp=lambda ct, y, x, **_: (unbroadcast(_finite_part(ct, x), x),),
    jvp=lambda t, y, x, **_: broadcast_tangent(_finite_part(t[0], x), y),
    prepare=_nan_to_num_prepare,
    numpy=(np.nan_to_num,),
    batch=pointwise_rule("nan_to_num"),
    memory="may_alias",
)

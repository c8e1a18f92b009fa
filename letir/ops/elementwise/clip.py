"""``clip``: elements between two bounds, each of which may be None."""

import numpy as np

from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import DTypeError, ShapeError
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import (
    add_terms,
    broadcast_tangent,
    define,
    dtypes_for_result,
    result_dtype,
    unbroadcast,
)
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.ufuncs import maximum

_MISSING = np._NoValue  # type: ignore[attr-defined]  # NumPy's private mark for "not given"


def _clip_aval(x, low, high):
    """The dtype and shape of the array promoted and broadcast with the bounds that are not None."""
    given = [aval for aval in (x, low, high) if aval is not None]
    return ArrayType(result_dtype(*given), broadcast_shapes(*[aval.shape for aval in given]))


def _clip_terms(g, out, x, low, high):
    """``g`` for the array, the lower and the upper bound: each element goes to the operand that it
    was taken from, the others get 0.
    """
    # np.clip is minimum(maximum(x, low), high), so the result is high where low > high
    above = False if high is None else (x > high if low is None else maximum(x, low) > high)
    below = False if low is None else x < low
    to_high = None if high is None else where(above, g, 0)
    rest = g if high is None else where(above, 0, g)
    to_low = None if low is None else where(below, rest, 0)
    return rest if low is None else where(below, 0, rest), to_low, to_high


def _clip_vjp(ct, out, x, low, high):
    """The cotangent of each operand where the result was taken from it, else 0."""
    terms = _clip_terms(ct, out, x, low, high)
    return tuple(
        None if t is None else unbroadcast(t, a) for t, a in zip(terms, (x, low, high), strict=True)
    )


def _clip_jvp(tangents, out, x, low, high):
    """The tangent of the operand from which each element was taken."""
    picked = (_clip_terms(g, out, x, low, high)[i] for i, g in enumerate(tangents) if g is not None)
    return broadcast_tangent(add_terms(picked), out)


def _clip_prepare(a, a_min=_MISSING, a_max=_MISSING, out=None, *, min=_MISSING, max=_MISSING):
    """np.clip, whose bounds have two names each; raises NumPy's errors for some of them."""
    if a_min is _MISSING is a_max:
        bounds = [None if bound is _MISSING else bound for bound in (min, max)]
    elif a_min is _MISSING or a_max is _MISSING:
        name = "a_min" if a_min is _MISSING else "a_max"
        raise DTypeError(
            f"clip: missing a required argument: {name!r}\n  pass both bounds, or {name}=None"
        )
    elif not min is _MISSING is max:
        raise ShapeError(
            "clip: min and max cannot be combined with a_min and a_max\n  pass each bound once"
        )
    else:
        bounds = [a_min, a_max]
    return (a, *bounds), {}


clip = define(
    "clip",
    lambda xp, x, low, high: xp.clip(x, low, high),
    _clip_aval,
    vjp=_clip_vjp,
    jvp=_clip_jvp,
    prepare=_clip_prepare,
    numpy=(np.clip,),
    batch=pointwise_rule("clip"),
    elementwise=True,
    scalar="clip",
    reusable=True,
    onnx="Clip",
    only_float_warnings=True,
    operand_dtypes=dtypes_for_result,
    cost="cheap",
)
